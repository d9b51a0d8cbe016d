"""Models the team may call, trials of them, limits of money, and every call that was made.

A run and its owner are named by a number and a person: runs are a room above. Money is USD; None is unknown, never 0.
"""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class KeySource(models.TextChoices):
    NONE = "none", "No key is sent"
    VARIABLE = "variable", "In an environment variable"
    KEPT = "kept", "Kept here, encrypted"


class LanguageModel(models.Model):
    """A model as the team calls it. `model_id` is litellm's name, PROVIDER/MODEL.

    The key itself is in the environment of the agents worker, or here as `apps.ledger.sealing` wrote it. `listed` is what
    litellm's own list said of context and prices when the model was last tried (`apps.ledger.registry.Listed`).
    """

    name = models.CharField(max_length=60, unique=True, help_text="what runs, pages and the command line call it")
    model_id = models.CharField(max_length=200)
    api_base = models.CharField(max_length=300, blank=True)
    key_source = models.CharField(max_length=8, choices=KeySource, default=KeySource.NONE)
    key_variable = models.CharField(max_length=100, blank=True)
    key_sealed = models.TextField(blank=True, editable=False)
    key_kept_at = models.DateTimeField(null=True, blank=True, editable=False)
    usd_per_million_in = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    usd_per_million_out = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    context_tokens = models.PositiveIntegerField(null=True, blank=True)
    answer_tokens = models.PositiveIntegerField(null=True, blank=True)
    temperatures = models.JSONField(default=list, blank=True)
    silence_seconds = models.PositiveIntegerField(default=300)
    call_seconds = models.PositiveIntegerField(default=1200)
    at_once = models.PositiveSmallIntegerField(default=4, help_text="questions that one run may ask at the same time")
    enabled = models.BooleanField(default=True)
    listed = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering: ClassVar = ["-enabled", "name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("settings-model", args=[self.pk])

    @property
    def has_price(self) -> bool:
        """Whether somebody typed a price."""
        return self.usd_per_million_in is not None and self.usd_per_million_out is not None


class TrialState(models.TextChoices):
    WAITING = "waiting", "Waits for a worker"
    RUNNING = "running", "Being asked"
    DONE = "done", "Done"


class Trial(models.Model):
    """One press of a model's test button: asked for by a page, carried out by an agents worker. `fault` empty: it is well."""

    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="trials")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=8, choices=TrialState, default=TrialState.WAITING)
    fault = models.CharField(max_length=12, blank=True)
    message = models.TextField(blank=True)
    seconds = models.FloatField(null=True, blank=True)
    first_text_seconds = models.FloatField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"Trial {self.pk} of {self.model_id}"

    @property
    def is_over(self) -> bool:
        """Whether there is a result."""
        return self.state == TrialState.DONE

    @property
    def is_well(self) -> bool:
        """Whether the model answered."""
        return self.is_over and not self.fault


class Limits(models.Model):
    """What may be spent, in one row, which every reservation locks. None is no limit. Months are of UTC."""

    team_month_usd = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    person_month_usd = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    run_usd = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)

    class Meta:
        verbose_name_plural = "limits"

    def __str__(self) -> str:
        return "Limits of the team"


class PersonLimit(models.Model):
    """A person's own limit a month, in place of everyone's."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="spending_limit")
    month_usd = models.DecimalField(max_digits=12, decimal_places=2)

    def __str__(self) -> str:
        return f"{self.person}: {self.month_usd} USD"


class Outcome(models.TextChoices):
    OPEN = "open", "on its way"
    ANSWERED = "answered", "answered"
    CUT = "cut", "cut short"
    FAILED = "failed", "failed"
    STOPPED = "stopped", "ended by us"
    LOST = "lost", "worker lost"


class Call(models.Model):
    """One call of a model, from before it is made: a reservation, then what came of it.

    `counted_usd` and `counted_tokens` are what it takes from limits: the most it can take while it is on its way, what it took
    once that is known, nothing where the worker died (what the call took then is unknown). `retries` counts the tries of
    the same question that failed before this one, `number` the calls of its step.
    """

    model = models.ForeignKey(LanguageModel, on_delete=models.PROTECT, related_name="calls")
    run = models.PositiveBigIntegerField(null=True, blank=True, help_text="a run's number; none for a trial")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    month = models.DateField(help_text="first day of the UTC month it began in")
    claim = models.UUIDField(null=True, blank=True, help_text="the claim of the worker that makes it")
    agent = models.CharField(max_length=10)
    step = models.CharField(max_length=60, blank=True)
    iteration = models.PositiveSmallIntegerField(null=True, blank=True)
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(null=True, blank=True)
    number = models.PositiveSmallIntegerField(default=1)
    retries = models.PositiveSmallIntegerField(default=0)
    outcome = models.CharField(max_length=8, choices=Outcome, default=Outcome.OPEN)
    fault = models.CharField(max_length=12, blank=True)
    failure = models.TextField(blank=True)
    reserved_usd = models.DecimalField(max_digits=16, decimal_places=8, null=True, blank=True)
    cost_usd = models.DecimalField(max_digits=16, decimal_places=8, null=True, blank=True)
    counted_usd = models.DecimalField(max_digits=16, decimal_places=8, default=Decimal(0))
    reserved_tokens = models.PositiveBigIntegerField(default=0)
    counted_tokens = models.PositiveBigIntegerField(default=0)
    estimated = models.BooleanField(default=False, help_text="tokens were estimated: the server counted none")
    tokens_in = models.PositiveIntegerField(null=True, blank=True)
    tokens_out = models.PositiveIntegerField(null=True, blank=True)
    tokens_cached = models.PositiveIntegerField(null=True, blank=True)
    tokens_reasoning = models.PositiveIntegerField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    began_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(help_text="from then on nobody can still be making it")

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [
            models.Index(fields=["month", "person"], name="ledger_month"),
            models.Index(fields=["run", "step"], name="ledger_run"),
            models.Index(fields=["outcome", "expires_at"], name="ledger_open"),
        ]

    def __str__(self) -> str:
        return f"Call {self.pk} of run {self.run}"

    @property
    def is_open(self) -> bool:
        """Whether it is still being made."""
        return self.outcome == Outcome.OPEN
