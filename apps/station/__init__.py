"""The process on a host that judges: its Celery app, the task that evaluates, its reports. No Django."""
