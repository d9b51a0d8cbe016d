"""What REST shows of proposals and accepted kernels, and what it takes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.hosts.models import Device
from apps.people.models import Person
from apps.reviews.comments import OldSide
from apps.reviews.models import AcceptedKernel, Check, Comment, Proposal, Side
from apps.runs.models import Problem, Version


@extend_schema_field(OpenApiTypes.OBJECT)
class PlainJson(serializers.JSONField):
    """JSON whose shape a dataclass describes (`apps/reviews/record.py`)."""


class VersionKey(serializers.StringRelatedField[Version]):
    """`RUN.NUMBER`."""

    def to_representation(self, value: Any) -> str:
        """As addresses name it."""
        return f"{value.run_id}.{value.number}"


class ProposalSerializer(serializers.ModelSerializer[Proposal]):
    """A proposal. `version` is RUN.NUMBER, `digest` the SHA-256 of the source that is proposed now."""

    problem = serializers.SlugRelatedField[Problem](slug_field="slug", read_only=True)
    overrides = PlainJson(source="sizing.overrides")
    device = serializers.StringRelatedField[Device]()
    version = VersionKey()
    by = serializers.StringRelatedField[Person]()
    asked = serializers.StringRelatedField[Person](many=True)

    class Meta:
        model = Proposal
        fields = (
            "id", "problem", "overrides", "device", "language", "version", "digest", "revision", "note", "state", "standing",
            "by", "asked", "created_at", "moved_at",
        )  # fmt: skip


class WholeProposal(ProposalSerializer):
    """A proposal with everything that is known of it."""

    source = serializers.CharField(source="version.source")  # type: ignore[assignment]
    record = PlainJson()
    evidence = PlainJson()
    approvals = serializers.IntegerField()
    approvals_needed = serializers.IntegerField()

    class Meta(ProposalSerializer.Meta):
        fields = (  # type: ignore[assignment]
            *ProposalSerializer.Meta.fields, "source", "approvals", "approvals_needed", "evidence", "record",
        )  # fmt: skip


class NewProposal(serializers.Serializer[Any]):
    """A version to put up for review. `device` is HOST/DEVICE, its run's where it is left out; `asked` are user names."""

    run = serializers.IntegerField()
    version = serializers.IntegerField()
    device = serializers.CharField(default="", allow_blank=True)
    note = serializers.CharField(default="", allow_blank=True)
    asked = serializers.ListField(child=serializers.CharField(), default=list)


class NewRevision(serializers.Serializer[Any]):
    """Another version to propose in place of the one under review."""

    run = serializers.IntegerField()
    version = serializers.IntegerField()
    note = serializers.CharField(default="", allow_blank=True)


class NewAsk(serializers.Serializer[Any]):
    """User names of those who are to review it."""

    asked = serializers.ListField(child=serializers.CharField())


class NewComment(serializers.Serializer[Any]):
    """A comment: on lines, on the whole, or in reply. It stays a draft until the vote unless `publish`.

    Lines are the proposed source's; with `side` old they are those of `base`: RUN.NUMBER, or reference.
    """

    text = serializers.CharField()
    side = serializers.ChoiceField(Side.values, default=Side.NEW.value)
    base = serializers.CharField(default=None, allow_null=True)
    first_line = serializers.IntegerField(default=None, allow_null=True)
    last_line = serializers.IntegerField(default=None, allow_null=True)
    revision = serializers.IntegerField(default=None, allow_null=True)
    reply_to = serializers.IntegerField(default=None, allow_null=True)
    publish = serializers.BooleanField(default=False)


class ChangedComment(serializers.Serializer[Any]):
    """What becomes of a comment: new text of one's own draft, or `publish`, `resolve`, `reopen`."""

    text = serializers.CharField(required=False)
    do = serializers.ChoiceField(["publish", "resolve", "reopen"], required=False)


class CommentSerializer(serializers.ModelSerializer[Comment]):
    """A comment. Drafts are shown to their author alone. `base` (RUN.NUMBER or reference) is what lines of the old side
    are lines of, null on the new side."""

    by = serializers.StringRelatedField[Person]()
    revision = serializers.IntegerField(source="revision.number")
    reply_to = serializers.IntegerField(source="parent_id", allow_null=True)
    resolved_by = serializers.StringRelatedField[Person]()
    base = serializers.SerializerMethodField()
    draft = serializers.BooleanField(source="is_draft")

    class Meta:
        model = Comment
        fields = (
            "id", "revision", "side", "base", "first_line", "last_line", "reply_to", "text", "by", "draft", "written_at",
            "published_at", "resolved_by", "resolved_at",
        )  # fmt: skip

    def get_base(self, comment: Comment) -> str | None:
        """What the old side is."""
        return OldSide(comment.base).key if comment.is_on_old_side else None


class NewVote(serializers.Serializer[Any]):
    """A vote for the content with that `digest`; drafts go out with it."""

    vote = serializers.ChoiceField(["approve", "changes", "comment"])
    digest = serializers.CharField()
    text = serializers.CharField(default="", allow_blank=True)


class NewMeasurements(serializers.Serializer[Any]):
    """HOST/DEVICE of those that are to judge it in full again, or to time it against the accepted kernel."""

    devices = serializers.ListField(child=serializers.CharField(), allow_empty=False)
    against_accepted = serializers.BooleanField(default=False)


class NewAcceptance(serializers.Serializer[Any]):
    """Accepting the content with that `digest`."""

    digest = serializers.CharField()
    text = serializers.CharField(default="", allow_blank=True)


class Words(serializers.Serializer[Any]):
    """Why."""

    text = serializers.CharField(default="", allow_blank=True)


class KernelSerializer(serializers.ModelSerializer[AcceptedKernel]):
    """An accepted kernel without its source. `proposal` and `superseded_by` are ids, `version` is RUN.NUMBER."""

    problem = serializers.SlugRelatedField[Problem](slug_field="slug", read_only=True)
    overrides = PlainJson(source="sizing.overrides")
    device = serializers.StringRelatedField[Device]()
    device_model = serializers.CharField(source="device.model")
    version = VersionKey()
    speedup = serializers.FloatField(source="measurement.speedup")
    speedup_low = serializers.FloatField(source="measurement.speedup_low")
    speedup_high = serializers.FloatField(source="measurement.speedup_high")
    accepted_by = serializers.StringRelatedField[Person](source="by")
    accepted_at = serializers.DateTimeField(source="at")
    environment = PlainJson()

    class Meta:
        model = AcceptedKernel
        fields = (
            "id", "problem", "overrides", "device", "device_model", "language", "version", "digest", "state", "speedup",
            "speedup_low", "speedup_high", "proposal", "superseded_by", "accepted_by", "accepted_at", "ended_at", "reason",
            "environment", "doubt", "doubt_detail", "verified_at",
        )  # fmt: skip


class CheckSerializer(serializers.ModelSerializer[Check]):
    """The kernel judged once more."""

    class Meta:
        model = Check
        fields = ("measurement", "held", "detail", "at")


class WholeKernel(KernelSerializer):
    """A kernel with its source, and with the file that runs with torch and a compiler alone."""

    source = serializers.CharField(source="version.source")  # type: ignore[assignment]
    speedup_text = serializers.CharField()
    file_name = serializers.CharField()
    file = serializers.CharField()
    file_digest = serializers.CharField()
    checks = CheckSerializer(many=True)

    class Meta(KernelSerializer.Meta):
        fields = (  # type: ignore[assignment]
            *KernelSerializer.Meta.fields, "speedup_text", "source", "file_name", "file", "file_digest", "checks",
        )  # fmt: skip


class Reason(serializers.Serializer[Any]):
    """Why a kernel is revoked."""

    reason = serializers.CharField()


class Wanted(serializers.Serializer[Any]):
    """Which kernel in use is looked for. `device` is HOST/DEVICE or a device's model."""

    problem = serializers.SlugField()
    device = serializers.CharField()
    language = serializers.CharField(default="cpp")


class RulesSerializer(serializers.Serializer[Any]):
    """The team's rules."""

    approvals = serializers.IntegerField()
    own_approval = serializers.BooleanField()
