"""The server side's Celery app: queue `runs` (agents workers) and queue `reports` (the server worker, with the beat).

JSON only, no result backend. `python -m pragma_web.worker` sets what differs between the two kinds of worker.
"""

from __future__ import annotations

import os

from celery import Celery
from django.conf import settings

from apps.station.app import queue
from apps.station.broker import celery_url, shared_settings, transport_options

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pragma_web.settings")

RUNS, REPORTS = "runs", "reports"

# Reports are handled in milliseconds and acknowledged afterwards: what a worker had in hand when it died is handed out
# again after this long. They take effect once, so that twice does no harm.
REPORTS_VISIBILITY_SECONDS = 10
RUNS_VISIBILITY_SECONDS = 3600

app = Celery("pragma")
app.conf.update(shared_settings())
app.conf.update(
    broker_url=celery_url(settings.REDIS_URL),
    broker_transport_options=transport_options(RUNS_VISIBILITY_SECONDS, "pragma"),
    task_queues=[queue(RUNS), queue(REPORTS)],
    task_default_queue=REPORTS,
    beat_schedule={
        "hosts": {"task": "hosts.look", "schedule": 2.0, "options": {"expires": 6.0}},
        "lost-runs": {"task": "runs.find_lost", "schedule": 3.0, "options": {"expires": 9.0}},
        "notices": {"task": "notices.deliver", "schedule": 5.0, "options": {"expires": 10.0}},
        "unchecked-problems": {"task": "runs.catch_up", "schedule": 10.0, "options": {"expires": 20.0}},
    },
)
app.autodiscover_tasks(["apps.hosts", "apps.ledger", "apps.runs", "apps.notices"])
