"""Addresses of the websockets."""

from __future__ import annotations

from django.urls import path

from apps.runs.live.consumers import ListSocket, NoticeSocket, RunSocket

urlpatterns = [
    path("ws/notices", NoticeSocket.as_asgi()),
    path("ws/runs", ListSocket.as_asgi()),
    path("ws/runs/<int:run_id>", RunSocket.as_asgi()),
]
