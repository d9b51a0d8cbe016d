"""The process on a host that judges. Celery and `apps.kernels`, no Django: it sees the broker and nothing else."""
