"""What other rooms may listen to. Rooms above this one take a job's result in without being imported from here."""

from __future__ import annotations

from django.dispatch import Signal

# Sent with `job` inside the transaction that ends it (done, failed or cancelled), so that what a listener writes is
# committed with the job's own row or not at all.
job_over = Signal()

# Sent with `host` inside the transaction that keeps what a host says of itself, once it is kept.
host_reported = Signal()
