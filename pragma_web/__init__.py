"""The building: settings, addresses, the ASGI and Celery apps, and the processes that make it up."""

from __future__ import annotations

from pragma_web.celery import app as celery_app

__all__ = ["celery_app"]
