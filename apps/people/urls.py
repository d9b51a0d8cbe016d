"""Addresses about people."""

from __future__ import annotations

from django.urls import path

from apps.people import views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("theme/", views.theme, name="theme"),
    path("link/", views.link, name="link"),
]
