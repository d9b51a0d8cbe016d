"""Addresses of hosts."""

from __future__ import annotations

from django.urls import path

from apps.hosts import views

urlpatterns = [
    path("hosts/", views.hosts, name="hosts"),
    path("hosts/<slug:name>/", views.host, name="host"),
    path("hosts/<slug:name>/operate/", views.operate, name="host-operate"),
]
