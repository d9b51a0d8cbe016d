"""Logging of the product's own processes: one line a record, with the run it is about where there is one."""

from __future__ import annotations

import logging
import threading
from typing import Any

FORMAT = "%(asctime)s %(levelname)s %(run)s%(name)s: %(message)s"

_about = threading.local()


def speak_of(run: object | None) -> None:
    """From now on this thread's lines carry the run's number; None ends that."""
    _about.run = run


class _Run(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        run = getattr(_about, "run", None)
        record.run = f"[run {run}] " if run is not None else ""
        return True


def set_up(level: int = logging.INFO) -> None:
    """Log to stderr, which the supervisor keeps in var/log, or whoever runs the process."""
    handler = logging.StreamHandler()
    handler.addFilter(_Run())
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for quiet in ("httpx", "LiteLLM"):
        logging.getLogger(quiet).setLevel(logging.WARNING)


def follow_tasks() -> None:
    """Lines written while a run's task is worked on carry that run's number."""
    from celery.signals import task_postrun, task_prerun

    @task_prerun.connect(weak=False)
    def begin(task: Any = None, args: Any = (), **_: Any) -> None:
        speak_of(args[0] if args and task is not None and str(task.name) == "runs.work" else None)

    @task_postrun.connect(weak=False)
    def finish(**_: Any) -> None:
        speak_of(None)
