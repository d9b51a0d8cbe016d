"""What REST shows of problems, runs, versions, measurements and hosts, and what it takes."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.agents.coders import BUILTIN
from apps.agents.words import Seed
from apps.hosts.models import Device, Host
from apps.kernels.evaluation import Language, Policy, Tier
from apps.runs import annotating
from apps.runs.launch import LaunchOrder
from apps.runs.models import Event, Measurement, Problem, Run, Sizing, Version


@extend_schema_field(OpenApiTypes.OBJECT)
class AnyJson(serializers.JSONField):
    """JSON whose shape a dataclass of the judge describes."""


class OverridesField(serializers.DictField):
    """Size constants by name: numbers, booleans and texts."""

    child = serializers.JSONField()

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """The overrides, or a refusal of what is no scalar."""
        values = super().to_internal_value(data)
        for name, value in values.items():
            if not isinstance(value, int | float | bool | str):
                raise serializers.ValidationError({name: "A size constant is a number, a boolean or a text."})
        return values


class SizingSerializer(serializers.ModelSerializer[Sizing]):
    """A problem at one choice of sizes. `facts` are there once `state` is ready."""

    overrides = AnyJson()
    facts = AnyJson()

    class Meta:
        model = Sizing
        fields = ("id", "overrides", "state", "refusal", "facts", "checked_at")


class ProblemSerializer(serializers.ModelSerializer[Problem]):
    """A problem without its source, for lists."""

    class Meta:
        model = Problem
        fields = ("slug", "title", "level", "category", "description", "origin", "digest", "created_at")


class ProblemWithSource(ProblemSerializer):
    """A problem with its source and what is known of it at each choice of sizes."""

    sizings = SizingSerializer(many=True, read_only=True)

    class Meta(ProblemSerializer.Meta):
        fields = (*ProblemSerializer.Meta.fields, "source", "sizings")  # type: ignore[assignment]


class NewProblem(serializers.Serializer[Any]):
    """A problem to take in."""

    source = serializers.CharField(trim_whitespace=False)  # type: ignore[assignment]
    title = serializers.CharField(required=False, default="", max_length=120, allow_blank=True)
    category = serializers.CharField(required=False, default="", max_length=40, allow_blank=True)
    level = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=1, max_value=9)


class Sizes(serializers.Serializer[Any]):
    """A choice of sizes to have looked at."""

    overrides = OverridesField(default=dict)


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run. `best` and `result` are version numbers, `twin` a run's id."""

    problem = serializers.SlugRelatedField[Problem](slug_field="slug", read_only=True)
    overrides = AnyJson(source="sizing.overrides")
    device = serializers.StringRelatedField[Device]()
    best = serializers.SlugRelatedField[Version](slug_field="number", read_only=True)
    result = serializers.SlugRelatedField[Version](slug_field="number", read_only=True)
    owner = serializers.StringRelatedField[Any]()
    lost = serializers.BooleanField(source="is_lost", read_only=True)
    live = serializers.BooleanField(source="is_live", read_only=True)
    imported = AnyJson(read_only=True)
    tags = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = (
            "id", "problem", "overrides", "device", "language", "policy", "coder", "iterations", "candidates", "profile",
            "goal", "seconds_limit", "money_limit_usd", "tokens_limit", "temperatures", "twin", "tags", "notes",
            "imported", "state", "lost", "live", "reason", "doing", "iteration",
            "attempt", "last_seq", "best", "result", "speedup", "speedup_low", "speedup_high",
            "compiled_speedup", "outcome", "tokens_in", "tokens_out", "cost_usd", "cost_unknown", "cost_estimated",
            "owner", "created_at", "started_at", "finished_at",
        )  # fmt: skip

    def get_tags(self, run: Run) -> list[str]:
        """Words that people find it by."""
        return annotating.tags_of(run)


class Annotation(serializers.Serializer[Any]):
    """What people write on a run; what is left out stays."""

    tags = serializers.ListField(child=serializers.CharField(), required=False)
    notes = serializers.CharField(required=False, allow_blank=True)


class TranscriptFile(serializers.Serializer[Any]):
    """A transcript's file."""

    file = serializers.FileField(allow_empty_file=True)


class SeedSerializer(serializers.Serializer[Any]):
    """A version to start from."""

    source = serializers.CharField(trim_whitespace=False)  # type: ignore[assignment]
    author = serializers.CharField(max_length=120, default="a person")


class RoomSerializer(serializers.Serializer[Any]):
    """A limit of money: whose it is in words, its dollars, and what is left of it."""

    whose = serializers.CharField()
    limit_usd = serializers.DecimalField(12, 6, source="limit")
    left_usd = serializers.DecimalField(12, 6, source="left")


class NewRun(serializers.Serializer[Any]):
    """A run to launch. `device` is HOST/DEVICE; `twins` launches the same with the profile off beside it; `builtin_best`
    starts it from the built-in coder's best of this problem too."""

    problem = serializers.SlugRelatedField[Problem](slug_field="slug", queryset=Problem.objects.all())
    device = serializers.CharField()
    overrides = OverridesField(default=dict)
    language = serializers.CharField(default=Language.CPP.value)
    policy = serializers.CharField(default=Policy.LIBRARY.value)
    coder = serializers.CharField(default=BUILTIN)
    iterations = serializers.IntegerField(default=8)
    candidates = serializers.IntegerField(default=1)
    profile = serializers.BooleanField(default=True)
    twins = serializers.BooleanField(default=False)
    goal = serializers.FloatField(default=None, allow_null=True)
    seconds = serializers.FloatField(default=None, allow_null=True)
    money_usd = serializers.DecimalField(12, 6, default=None, allow_null=True)
    tokens = serializers.IntegerField(default=None, allow_null=True)
    temperatures = serializers.ListField(child=serializers.FloatField(), default=list)
    seeds = SeedSerializer(many=True, default=list)
    builtin_best = serializers.BooleanField(default=False)
    notes = serializers.CharField(default="", allow_blank=True)

    def order(self) -> LaunchOrder:
        """The order that valid data describes."""
        data = dict(self.validated_data)
        seeds = tuple(Seed(**seed) for seed in data.pop("seeds"))
        data.pop("builtin_best")
        data["temperatures"] = tuple(data["temperatures"])
        return LaunchOrder(**data, seeds=seeds)


class EstimateSerializer(serializers.Serializer[Any]):
    """What a run would take, twin included. `seconds` and `money_usd` are the figures, null where nothing is known; `time` and
    `money` say them in words, each with what it rests on. `limit` is the limit of money that leaves least, null without one.
    """

    seconds = serializers.FloatField(allow_null=True)
    money_usd = serializers.FloatField(allow_null=True)
    time = serializers.CharField()
    time_basis = serializers.CharField()
    money = serializers.CharField()
    money_basis = serializers.CharField(allow_blank=True)
    limit = RoomSerializer(allow_null=True)


class StopOrderSerializer(serializers.Serializer[Any]):
    """How to stop: `at_once` leaves the best unjudged."""

    at_once = serializers.BooleanField(default=False)


class NewHint(serializers.Serializer[Any]):
    """What to tell the run."""

    text = serializers.CharField(allow_blank=True)


class NewLimits(serializers.Serializer[Any]):
    """Limits to change; those left out stay."""

    iterations = serializers.IntegerField(default=None, allow_null=True)
    seconds = serializers.FloatField(default=None, allow_null=True)
    money_usd = serializers.DecimalField(12, 6, default=None, allow_null=True)
    tokens = serializers.IntegerField(default=None, allow_null=True)


class EventSerializer(serializers.ModelSerializer[Event]):
    """One event, as the websocket sends it."""

    data = AnyJson()  # type: ignore[assignment]

    class Meta:
        model = Event
        fields = ("seq", "at", "kind", "agent", "step", "iteration", "level", "text", "data")


class EventPage(serializers.Serializer[Any]):
    """Events in order, and the run's last number."""

    last_seq = serializers.IntegerField()
    events = EventSerializer(many=True)


class MeasurementSerializer(serializers.ModelSerializer[Measurement]):
    """One evaluation of a version; `evaluation` is all of it."""

    device = serializers.StringRelatedField[Device]()
    evaluation = AnyJson()
    asked_by = serializers.StringRelatedField[Any]()

    class Meta:
        model = Measurement
        fields = (
            "id", "device", "purpose", "tier", "verdict", "outcome", "speedup", "speedup_low", "speedup_high", "asked_by",
            "at", "evaluation",
        )  # fmt: skip


class VersionSerializer(serializers.ModelSerializer[Version]):
    """A version with its source and the figures of the measurement that is shown for it."""

    parent = serializers.SlugRelatedField[Version](slug_field="number", read_only=True)  # type: ignore[assignment]
    verdict = serializers.CharField(source="measurement.verdict", default=None)
    outcome = serializers.CharField(source="measurement.outcome", default=None)
    tier = serializers.CharField(source="measurement.tier", default=None)
    speedup = serializers.FloatField(source="measurement.speedup", default=None)
    speedup_low = serializers.FloatField(source="measurement.speedup_low", default=None)
    speedup_high = serializers.FloatField(source="measurement.speedup_high", default=None)

    class Meta:
        model = Version
        fields = (
            "number", "parent", "iteration", "slot", "repair", "author", "advice", "summary", "verdict", "outcome", "tier",
            "speedup", "speedup_low", "speedup_high", "digest", "source", "created_at",
        )  # fmt: skip


class NewMeasurement(serializers.Serializer[Any]):
    """Where to measure a version again, and how much."""

    device = serializers.CharField()
    tier = serializers.ChoiceField([tier.value for tier in Tier], default=Tier.FULL.value)


class JobTicket(serializers.Serializer[Any]):
    """The job that will bring the measurement."""

    job = serializers.IntegerField()
    state = serializers.CharField()


class DeviceSerializer(serializers.ModelSerializer[Device]):
    """One device of a host."""

    languages = AnyJson()

    class Meta:
        model = Device
        fields = ("name", "kind", "model", "memory_bytes", "languages", "retired")


class HostSerializer(serializers.ModelSerializer[Host]):
    """A host; `report` is all it says of itself."""

    devices = DeviceSerializer(many=True, read_only=True)
    online = serializers.SerializerMethodField()
    weak_isolation_allowed = serializers.SerializerMethodField()
    report = AnyJson()

    class Meta:
        model = Host
        fields = ("name", "enabled", "online", "weak_isolation_allowed", "seen_at", "reported_at", "devices", "report")

    def get_online(self, host: Host) -> bool:
        """Whether its station was heard lately."""
        return host.is_online(timezone.now())

    def get_weak_isolation_allowed(self, host: Host) -> bool:
        """Whether an admin allowed candidates there though it can't isolate them well."""
        return host.weak_isolation_allowed_by_id is not None
