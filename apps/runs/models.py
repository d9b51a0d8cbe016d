"""Problems, runs, versions, what was measured of them, and the log of events.

Changes of state are functions of service modules (`problems.py`, `launch.py`, `claims.py`, `steering.py`,
`recorder.py`): each checks the old state, writes the new one and appends its event in one transaction.
"""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from apps.hosts.models import Device, Job
from apps.kernels.evaluation import Language, Outcome, Policy, Tier, Verdict


def _choices(words: type[StrEnum]) -> list[tuple[str, str]]:
    """An enum of the judge's words as choices of a column."""
    return [(word.value, word.value.replace("_", " ")) for word in words]


class Origin(models.TextChoices):
    STARTER = "starter", "Comes with PRAGMA"
    PASTED = "pasted", "Pasted"
    UPLOADED = "uploaded", "Uploaded"


class Problem(models.Model):
    """A PyTorch reference in KernelBench's format. Its source never changes; another text is another problem."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    source = models.TextField()
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the source")
    level = models.PositiveSmallIntegerField(null=True, blank=True)
    category = models.CharField(max_length=40, blank=True)
    description = models.TextField(blank=True)
    origin = models.CharField(max_length=12, choices=Origin, default=Origin.PASTED)
    hidden = models.BooleanField(default=False, help_text="out of the lists, kept for its runs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["level", "title"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("problem", args=[self.slug])


class SizingState(models.TextChoices):
    UNCHECKED = "unchecked", "Not looked at yet"
    CHECKING = "checking", "Being looked at"
    READY = "ready", "Ready"
    REFUSED = "refused", "Can't be judged"


class Sizing(models.Model):
    """A problem at one choice of sizes, with the facts a host found for it (`apps.kernels.facts.ProblemFacts`)."""

    problem = models.ForeignKey(Problem, on_delete=models.CASCADE, related_name="sizings")
    overrides = models.JSONField(default=dict, blank=True)
    digest = models.CharField(max_length=64, help_text="of the overrides, names sorted")
    state = models.CharField(max_length=12, choices=SizingState, default=SizingState.UNCHECKED)
    facts = models.JSONField(null=True, blank=True)
    refusal = models.TextField(blank=True)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    checked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["problem", "digest"], name="sizing_of_problem")]

    def __str__(self) -> str:
        return f"{self.problem} {self.overrides or ''}".strip()


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"
    STOPPING = "stopping", "Stopping"
    FINISHED = "finished", "Finished"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"


LIVE_RUN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


class Run(models.Model):
    """One optimisation. A worker owns it while `claim` is its own and `claim_expires_at` lies ahead.

    `last_seq` numbers its events: it is raised in the transaction that appends them, which locks this row, so that the
    order of commits is the order of numbers. *Lost* is shown while the claim has expired and attempts remain.
    """

    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="runs")
    sizing = models.ForeignKey(Sizing, on_delete=models.PROTECT, related_name="runs")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="runs")
    language = models.CharField(max_length=8, choices=_choices(Language), default=Language.CPP.value)
    policy = models.CharField(max_length=8, choices=_choices(Policy), default=Policy.LIBRARY.value)
    coder = models.CharField(max_length=120, default="builtin")
    iterations = models.PositiveSmallIntegerField(default=8)
    candidates = models.PositiveSmallIntegerField(default=1)
    profile = models.BooleanField(default=True)
    goal = models.FloatField(null=True, blank=True)
    seconds_limit = models.FloatField(null=True, blank=True)
    money_limit_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    tokens_limit = models.PositiveBigIntegerField(null=True, blank=True)
    temperatures = models.JSONField(default=list, blank=True, help_text="of the candidates; empty: the model's own")
    prompts = models.CharField(max_length=20, default="1", help_text="version of the prompts, pinned at launch")
    seeds = models.JSONField(default=list, blank=True)
    twin = models.OneToOneField("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="twin_of")
    notes = models.TextField(blank=True)
    tags = models.CharField(max_length=300, blank=True, help_text="words, each with a blank before and behind it")
    imported = models.JSONField(
        null=True, blank=True, help_text="apps.runs.transcripts.Imported: the run came out of a transcript"
    )

    state = models.CharField(max_length=10, choices=RunState, default=RunState.QUEUED)
    reason = models.TextField(blank=True, help_text="why it ended, for people")
    claim = models.UUIDField(null=True, blank=True)
    claim_expires_at = models.DateTimeField(null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    fruitless = models.PositiveSmallIntegerField(default=0, help_text="attempts in a row that journalled no new step")
    last_seq = models.PositiveIntegerField(default=0)
    iteration = models.PositiveSmallIntegerField(default=0)
    doing = models.CharField(max_length=120, blank=True, help_text="the step in flight, for people")

    best = models.ForeignKey("Version", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    result = models.ForeignKey("Version", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    speedup = models.FloatField(null=True, blank=True, help_text="of the best; 1.0 at the end if the reference stays")
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    compiled_speedup = models.FloatField(null=True, blank=True, help_text="torch.compile's own over eager")
    outcome = models.CharField(max_length=14, choices=_choices(Outcome), blank=True)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    cost_unknown = models.BooleanField(default=False)
    cost_estimated = models.BooleanField(default=False, help_text="some server counted no tokens")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="runs")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["state", "claim_expires_at"], name="run_claims"),
            models.Index(fields=["problem", "-speedup"], name="run_best_of_problem"),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("run", args=[self.pk])

    @property
    def is_live(self) -> bool:
        """Whether it may still change by itself."""
        return self.state in LIVE_RUN_STATES

    @property
    def is_lost(self) -> bool:
        """Whether its worker has gone silent while the run should be going on."""
        expires = self.claim_expires_at
        return self.state in (RunState.RUNNING, RunState.STOPPING) and expires is not None and expires < timezone.now()


class Version(models.Model):
    """A candidate as its run keeps it. The verdict and speed-up shown are those of its latest measurement."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveSmallIntegerField()
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    iteration = models.PositiveSmallIntegerField()
    slot = models.PositiveSmallIntegerField(default=0)
    repair = models.PositiveSmallIntegerField(default=0)
    author = models.CharField(max_length=120)
    advice = models.PositiveSmallIntegerField(null=True, blank=True)
    source = models.TextField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the source")
    summary = models.TextField(blank=True)
    plan = models.JSONField(null=True, blank=True)
    measurement = models.ForeignKey("Measurement", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["run_id", "number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "number"], name="version_of_run")]
        indexes: ClassVar = [models.Index(fields=["digest"], name="version_content")]

    def __str__(self) -> str:
        return f"v{self.number}"

    def get_absolute_url(self) -> str:
        return reverse("version", args=[self.run_id, self.number])


class Purpose(models.TextChoices):
    LOOP = "loop", "In the loop"
    REAL_HEADERS = "real_headers", "With Torch's own headers"
    RIVAL = "rival", "Against the other contender"
    FINAL = "final", "Judged in full"
    AGAIN = "again", "Measured again"


class Measurement(models.Model):
    """One evaluation of one version on one device (`apps.kernels.evaluation.Evaluation` in `evaluation`)."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="measurements")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="+")
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    purpose = models.CharField(max_length=12, choices=Purpose, default=Purpose.LOOP)
    tier = models.CharField(max_length=5, choices=_choices(Tier))
    verdict = models.CharField(max_length=14, choices=_choices(Verdict))
    outcome = models.CharField(max_length=14, choices=_choices(Outcome), blank=True)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    evaluation = models.JSONField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["verdict", "tier"], name="measurement_verdicts")]

    def __str__(self) -> str:
        return f"{self.version} {self.purpose}"


class AdviceRow(models.Model):
    """An advice of a run (`apps.agents.ports.Advice`) and, once known, what became of it (`ports.Holding`)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="advices")
    number = models.PositiveSmallIntegerField()
    advice = models.JSONField()
    holding = models.JSONField(null=True, blank=True)
    held = models.BooleanField(null=True, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["run_id", "number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "number"], name="advice_of_run")]

    def __str__(self) -> str:
        return f"Advice {self.number}"


class Level(models.TextChoices):
    DEBUG = "debug", "debug"
    INFO = "info", "info"
    WARNING = "warning", "warning"
    ERROR = "error", "error"


class Event(models.Model):
    """One thing that happened in a run. Numbered by one, never altered. `kind` names a fact of `apps.agents.ports`
    in snake case (step_began, version_kept ...) or one of the run's own (launched, claimed, stop_asked, log ...)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=24)
    agent = models.CharField(max_length=10, blank=True)
    step = models.CharField(max_length=60, blank=True)
    iteration = models.PositiveSmallIntegerField(null=True, blank=True)
    level = models.CharField(max_length=8, choices=Level, default=Level.INFO)
    text = models.TextField(blank=True, help_text="one line for people")
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["run_id", "seq"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "seq"], name="event_of_run")]
        indexes: ClassVar = [models.Index(fields=["run", "kind", "iteration"], name="event_kind")]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.seq} {self.kind}"


class Draft(models.Model):
    """Text of a step while it streams: not an event. It goes in the transaction that appends the whole message."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="drafts")
    step = models.CharField(max_length=60)
    agent = models.CharField(max_length=10)
    iteration = models.PositiveSmallIntegerField(default=0)
    text = models.TextField(blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "step"], name="draft_of_step")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.step}"


class JournalEntry(models.Model):
    """A step that is done and paid for. `inputs` is the digest of what it was done from."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="journal")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=60)
    inputs = models.CharField(max_length=64)
    result = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["run_id", "position"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "key"], name="journal_of_run")]
        verbose_name_plural = "journal entries"

    def __str__(self) -> str:
        return f"{self.run_id} {self.key}"


class Exchange(models.Model):
    """One call of a model as a person may want to read it: what was asked and what came, free of secrets.

    `content` is `apps.runs.exchanges.Told` as JSON, compressed with zlib.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="exchanges")
    step = models.CharField(max_length=60)
    content = models.BinaryField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["run", "step"], name="exchanges_of_step")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.step}"


class SavedView(models.Model):
    """A list of runs that a person wants to see again: the query of its address under a name."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "name"], name="saved_view_of_person")]

    def __str__(self) -> str:
        return self.name


class Hint(models.Model):
    """What a person tells a running run; it joins the next prompt."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="hints")
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    at = models.DateTimeField(default=timezone.now)
    taken = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.text[:60]


class Artefact(models.Model):
    """A large piece (profiler output, disassembly, log) by the SHA-256 of its content, compressed with zlib."""

    digest = models.CharField(max_length=64, primary_key=True)
    media_type = models.CharField(max_length=60, default="text/plain; charset=utf-8")
    size = models.PositiveBigIntegerField(help_text="bytes before compression")
    content = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest[:12]


def new_claim() -> uuid.UUID:
    """A claim no other worker has."""
    return uuid.uuid4()
