"""Proposals, what people say of them, what was decided, and the kernels that were accepted.

Changes of state are functions of service modules (`proposing.py`, `comments.py`, `votes.py`, `accepting.py`,
`revoking.py`, `verifying.py`): each checks the old state, writes the new one and appends its `Decision` in one
transaction. Revisions, decisions and checks are written once.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone

from apps.hosts.models import Device
from apps.people.append_only import AppendOnly, AppendOnlyRows
from apps.runs.models import Measurement, Problem, Sizing, Version

PERSON = settings.AUTH_USER_MODEL
APPROVALS_LIMIT = 9


class Rules(models.Model):
    """What the team asks of a review; one row. What was in force when something was decided stands in that decision."""

    approvals = models.PositiveSmallIntegerField(
        default=1, validators=[MinValueValidator(1), MaxValueValidator(APPROVALS_LIMIT)]
    )
    own_approval = models.BooleanField(default=False, help_text="whether one may approve what one proposed oneself")
    changed_by = models.ForeignKey(PERSON, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "rules"

    def __str__(self) -> str:
        return f"{self.approvals} approval{'s' * (self.approvals != 1)}"


class ProposalState(models.TextChoices):
    OPEN = "open", "Open"
    ACCEPTED = "accepted", "Accepted"
    DECLINED = "declined", "Declined"
    WITHDRAWN = "withdrawn", "Withdrawn"


class Standing(models.TextChoices):
    """How the votes for the content now proposed stand."""

    WAITING = "waiting", "Waits for votes"
    CHANGES = "changes", "Changes requested"
    APPROVED = "approved", "Approved"


class Proposal(models.Model):
    """A version put up for review, to be used for one problem at one choice of sizes on one device.

    `version`, `digest` and `revision` are those of its latest revision; `standing` follows from the votes for that digest.
    """

    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="proposals")
    sizing = models.ForeignKey(Sizing, on_delete=models.PROTECT, related_name="+")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="+")
    language = models.CharField(max_length=8)
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="proposals")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the source now proposed")
    revision = models.PositiveSmallIntegerField(default=1)
    note = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=ProposalState, default=ProposalState.OPEN)
    standing = models.CharField(max_length=10, choices=Standing, default=Standing.WAITING)
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="proposals")
    asked: models.ManyToManyField[Any, Any] = models.ManyToManyField(PERSON, blank=True, related_name="asked_to_review")
    created_at = models.DateTimeField(auto_now_add=True)
    moved_at = models.DateTimeField(default=timezone.now, help_text="when anything of it changed last")

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["state", "-moved_at"], name="proposal_queue")]

    def __str__(self) -> str:
        return f"Review {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("review", args=[self.pk])

    @property
    def is_open(self) -> bool:
        """Whether it may still be voted on."""
        return self.state == ProposalState.OPEN


class Revisions(AppendOnlyRows["Revision"]):
    """Rows of `Revision`."""


class Revision(AppendOnly):
    """What a proposal proposed at one time: a version, its content's hash, and the measurement that spoke for it then."""

    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveSmallIntegerField()
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    measurement = models.ForeignKey(Measurement, on_delete=models.PROTECT, related_name="+")
    note = models.TextField(blank=True)
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = Revisions.as_manager()

    class Meta:
        ordering: ClassVar = ["proposal_id", "number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["proposal", "number"], name="revision_of_proposal")]

    def __str__(self) -> str:
        return f"revision {self.number}"


class Side(models.TextChoices):
    """Which text of a diff a comment's lines are lines of."""

    NEW = "new", "what is proposed"
    OLD = "old", "what it was compared with"


class Comment(models.Model):
    """What a person says of a proposal, of lines, or in reply. Its author's alone until `published_at`.

    Lines are counted from 1: on the new side in the revision's source, on the old side in that of `base` (the problem's
    reference where it is empty). A thread is a comment without `parent` and its replies.
    """

    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="comments")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="comments")
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="replies")
    side = models.CharField(max_length=3, choices=Side, default=Side.NEW)
    base = models.ForeignKey(Version, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    first_line = models.PositiveIntegerField(null=True, blank=True)
    last_line = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    written_at = models.DateTimeField(default=timezone.now)
    published_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey(PERSON, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def is_draft(self) -> bool:
        """Whether its author alone sees it."""
        return self.published_at is None

    @property
    def is_on_old_side(self) -> bool:
        """Whether it is about lines of what the proposal was compared with."""
        return self.side == Side.OLD

    @property
    def about(self) -> str:
        """The text that its lines are lines of."""
        if not self.is_on_old_side:
            return self.revision.version.source
        return self.base.source if self.base is not None else self.proposal.problem.source


class DecisionKind(models.TextChoices):
    PROPOSED = "proposed", "proposed it"
    REVISED = "revised", "proposed a new version"
    ASKED = "asked", "asked for a review"
    APPROVED = "approved", "approved"
    CHANGES = "changes", "requested changes"
    COMMENTED = "commented", "commented"
    RESOLVED = "resolved", "resolved a thread"
    REOPENED = "reopened", "reopened a thread"
    ACCEPTED = "accepted", "accepted it"
    DECLINED = "declined", "declined it"
    WITHDRAWN = "withdrawn", "withdrew it"
    SUPERSEDED = "superseded", "superseded it"
    REVOKED = "revoked", "revoked it"
    DOUBTED = "doubted", "flagged it"
    VERIFIED = "verified", "verified it again"


VOTES = (DecisionKind.APPROVED, DecisionKind.CHANGES)


class Decisions(AppendOnlyRows["Decision"]):
    """Rows of `Decision`."""


class Decision(AppendOnly):
    """One thing that was decided or happened to a proposal and its kernel. `by` is empty where PRAGMA itself found it."""

    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="decisions")
    kind = models.CharField(max_length=10, choices=DecisionKind)
    revision = models.PositiveSmallIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the source it was decided about")
    by = models.ForeignKey(PERSON, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    text = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)

    objects = Decisions.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["proposal", "digest", "kind"], name="decision_votes")]

    def __str__(self) -> str:
        return f"{self.proposal_id} {self.kind}"


class KernelState(models.TextChoices):
    CURRENT = "current", "In use"
    SUPERSEDED = "superseded", "Superseded"
    REVOKED = "revoked", "Revoked"


class Doubt(models.TextChoices):
    """Why an accepted kernel should be looked at again."""

    NONE = "", "None"
    ENVIRONMENT = "environment", "Its host has changed"
    FAILED = "failed", "It no longer holds"


class AcceptedKernel(models.Model):
    """What the team has agreed to use for a problem at these sizes on a device, in a language: one is current at a time.

    `measurement` is the evidence it was accepted on, `environment` what the host was when that evidence (or the last
    check that held) was gathered.
    """

    proposal = models.OneToOneField(Proposal, on_delete=models.PROTECT, related_name="kernel")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="kernels")
    sizing = models.ForeignKey(Sizing, on_delete=models.PROTECT, related_name="+")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="kernels")
    language = models.CharField(max_length=8)
    version = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="kernels")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the source")
    measurement = models.ForeignKey(Measurement, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=KernelState, default=KernelState.CURRENT)
    by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="supersedes"
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="why it was revoked")
    environment = models.JSONField(default=dict)
    doubt = models.CharField(max_length=12, choices=Doubt, blank=True, default=Doubt.NONE)
    doubt_detail = models.TextField(blank=True)
    verified_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["problem", "sizing", "device", "language"],
                condition=models.Q(state="current"),
                name="one_current_kernel",
            )
        ]

    def __str__(self) -> str:
        return f"Kernel {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("kernel", args=[self.pk])

    @property
    def is_current(self) -> bool:
        """Whether it is what the team uses now."""
        return self.state == KernelState.CURRENT


class Checks(AppendOnlyRows["Check"]):
    """Rows of `Check`."""


class Check(AppendOnly):
    """An accepted kernel judged once more on its device: whether it held, and what was found."""

    kernel = models.ForeignKey(AcceptedKernel, on_delete=models.PROTECT, related_name="checks")
    measurement = models.OneToOneField(Measurement, on_delete=models.PROTECT, related_name="+")
    held = models.BooleanField()
    detail = models.TextField(blank=True)
    at = models.DateTimeField(default=timezone.now)

    objects = Checks.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return f"{self.kernel} {'held' if self.held else 'did not hold'}"


class Duels(AppendOnlyRows["Duel"]):
    """Rows of `Duel`."""


class Duel(AppendOnly):
    """A version timed against an accepted one, in pairs on one device: how many times as fast it is, with its interval."""

    version = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="duels")
    rival = models.ForeignKey(Version, on_delete=models.CASCADE, related_name="+")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=14)
    outcome = models.CharField(max_length=14, blank=True)
    ratio = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    evaluation = models.JSONField()
    asked_by = models.ForeignKey(PERSON, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    objects = Duels.as_manager()

    class Meta:
        ordering: ClassVar = ["id"]
        indexes: ClassVar = [models.Index(fields=["version", "rival", "device"], name="duel_of_versions")]

    def __str__(self) -> str:
        return f"{self.version_id} against {self.rival_id}"


class Circumstances(models.Model):
    """What the host was when a full measurement came in (`environment.py`): what its result depends on."""

    measurement = models.OneToOneField(Measurement, on_delete=models.CASCADE, related_name="circumstances")
    environment = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "circumstances"

    def __str__(self) -> str:
        return f"circumstances of measurement {self.measurement_id}"
