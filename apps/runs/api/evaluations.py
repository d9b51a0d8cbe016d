"""REST about evaluations: every measurement of every version, found by what it is of and what came out."""

from __future__ import annotations

import django_filters
from django.db.models import QuerySet
from rest_framework import mixins, serializers

from apps.hosts.models import Device
from apps.people.api.asking import AskingViews
from apps.runs.api import serializers as shapes
from apps.runs.models import Measurement


class EvaluationFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of evaluations. `digest` is the SHA-256 of the candidate's source."""

    run = django_filters.NumberFilter(field_name="version__run_id")
    version = django_filters.NumberFilter(field_name="version__number")
    problem = django_filters.CharFilter(field_name="version__run__problem__slug")
    digest = django_filters.CharFilter(field_name="version__digest")
    host = django_filters.CharFilter(field_name="device__host__name")
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")

    class Meta:
        model = Measurement
        fields = ("purpose", "tier", "verdict", "outcome")


class EvaluationLine(serializers.ModelSerializer[Measurement]):
    """An evaluation's figures. The whole of it is at its own address."""

    run = serializers.IntegerField(source="version.run_id")
    version = serializers.IntegerField(source="version.number")
    problem = serializers.CharField(source="version.run.problem.slug")
    digest = serializers.CharField(source="version.digest")
    device = serializers.StringRelatedField[Device]()

    class Meta:
        model = Measurement
        fields = (
            "id", "run", "version", "problem", "digest", "device", "purpose", "tier", "verdict", "outcome", "speedup",
            "speedup_low", "speedup_high", "at",
        )  # fmt: skip


class WholeEvaluation(EvaluationLine):
    """All a host found out: checks, timing, profile, environment (`apps.kernels.evaluation.Evaluation`)."""

    evaluation = shapes.AnyJson()

    class Meta(EvaluationLine.Meta):
        fields = (*EvaluationLine.Meta.fields, "evaluation")  # type: ignore[assignment]


class EvaluationViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Evaluations, newest first."""

    filterset_class = EvaluationFilter
    queryset = Measurement.objects.none()

    def get_queryset(self) -> QuerySet[Measurement]:
        """All of them; a list leaves out the large part."""
        found = Measurement.objects.select_related("version__run__problem", "device__host").order_by("-id")
        return found.defer("evaluation") if self.action == "list" else found

    def get_serializer_class(self) -> type[EvaluationLine]:
        """Figures in a list, all of it alone."""
        return EvaluationLine if self.action == "list" else WholeEvaluation
