"""Hosts, their devices, and the jobs that wait for them: the row is the queue, the broker carries only what is due now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.kernels.machine import HostReport
from apps.kernels.plain import BadPlain, from_plain

# A station says every few seconds what it is doing; after this long without a word it counts as silent.
SILENT_AFTER = timedelta(seconds=30)
# The host that stands for all that are none of ours: what was judged there came to us as a record. In no list of hosts.
ELSEWHERE = "elsewhere"


class Host(models.Model):
    """A machine that judges. It joins by reporting; `enabled` False drains it: what runs ends, nothing new is sent."""

    name = models.SlugField(max_length=40, unique=True)
    enabled = models.BooleanField(default=True)
    station = models.CharField(max_length=64, blank=True, help_text="identity of the station process heard last")
    report = models.JSONField(null=True, blank=True)
    reported_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    weak_isolation_allowed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def facts(self) -> HostReport | None:
        """The host's last report of itself, or None before its first."""
        return from_plain(HostReport, self.report) if self.report else None

    @property
    def refuses_candidates(self) -> bool:
        """Whether it isolates less than it requires, and no admin has allowed that.

        What an older or newer station says can't be read; then the station itself refuses.
        """
        try:
            facts = self.facts
        except BadPlain:
            return False
        return facts is not None and not facts.isolates_enough and self.weak_isolation_allowed_by_id is None

    def is_online(self, now: datetime | None = None) -> bool:
        """Whether its station was heard within `SILENT_AFTER`."""
        return self.seen_at is not None and (now or timezone.now()) - self.seen_at < SILENT_AFTER


class Device(models.Model):
    """One device of a host: its CPU or a GPU. It judges one job at a time."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="devices")
    name = models.SlugField(max_length=20)
    kind = models.CharField(max_length=8)
    model = models.CharField(max_length=120, blank=True)
    memory_bytes = models.BigIntegerField(default=0)
    languages = models.JSONField(default=list)
    retired = models.BooleanField(default=False, help_text="no longer in the host's report")

    class Meta:
        ordering: ClassVar = ["host__name", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["host", "name"], name="device_of_host")]

    def __str__(self) -> str:
        return f"{self.host.name}/{self.name}"

    @property
    def queue(self) -> str:
        """The broker's queue that this device alone consumes."""
        return f"host.{self.host.name}.{self.name}"


class JobKind(models.TextChoices):
    EVALUATE = "evaluate", "Evaluate"  # EvaluationRequest -> Evaluation
    INSPECT = "inspect", "Inspect"  # problem source and overrides -> ProblemFacts
    MEASURE = "measure", "Measure host"  # nothing -> HostReport


class JobState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"  # says nothing of the candidate
    CANCELLED = "cancelled", "Cancelled"


LIVE_JOB_STATES = (JobState.WAITING, JobState.SENT, JobState.RUNNING)


class Job(models.Model):
    """One piece of work for one device. `key` makes asking twice the same as asking once.

    A report takes effect only when its attempt is the present one and its number `n` is larger than `heard_n`.
    """

    key = models.CharField(max_length=120, unique=True)
    kind = models.CharField(max_length=12, choices=JobKind)
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="jobs")
    state = models.CharField(max_length=12, choices=JobState, default=JobState.WAITING)
    priority = models.SmallIntegerField(default=0, help_text="larger goes first: a person waits for it")
    origin = models.CharField(max_length=120, blank=True, help_text="what asked, for people: 'run 12 v3'")
    request = models.JSONField()
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    losses = models.PositiveSmallIntegerField(default=0)
    losses_in_jail = models.PositiveSmallIntegerField(default=0)
    in_jail = models.BooleanField(default=False, help_text="the candidate's jail was running when last heard")
    heard_n = models.PositiveIntegerField(default=0)
    stage = models.CharField(max_length=40, blank=True)
    message = models.CharField(max_length=300, blank=True)
    fraction = models.FloatField(null=True, blank=True)
    deadline_seconds = models.FloatField(default=600.0)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [
            models.Index(fields=["device", "state", "-priority", "id"], name="job_queue"),
            models.Index(fields=["state", "heard_at"], name="job_silent"),
            models.Index(fields=["device", "finished_at"], name="job_last"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in LIVE_JOB_STATES


class Fault(models.Model):
    """Something that went wrong on a host, kept for its page: a lost job, a crashed station, a device in quarantine."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="faults")
    device = models.ForeignKey(Device, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    what = models.CharField(max_length=300)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return self.what
