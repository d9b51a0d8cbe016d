"""The web process: pages and API through Django, live runs through websockets."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pragma_web.settings")
application = get_asgi_application()
