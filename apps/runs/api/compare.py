"""REST of Compare: two versions of a problem, metric by metric, with what is beyond noise, and the difference of their code."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents import profiler
from apps.kernels.evaluation import Evaluation
from apps.people.api.asking import AskingViews
from apps.people.api.errors import Complaint
from apps.people.refusals import Refused
from apps.runs.models import Version
from apps.runs.presentation import comparison, extensions, metrics, versions_table
from apps.runs.presentation.comparison import Side
from apps.runs.presentation.measured import Measured
from apps.runs.presentation.versions_table import Column


class ComparedSide(serializers.Serializer[Any]):
    """One side: RUN.NUMBER, or `reference`."""

    key = serializers.CharField()
    name = serializers.CharField()
    verdict = serializers.CharField(allow_null=True)
    speedup = serializers.FloatField(allow_null=True)
    speedup_low = serializers.FloatField(allow_null=True)
    speedup_high = serializers.FloatField(allow_null=True)


class ComparedMetric(serializers.Serializer[Any]):
    """One metric of both sides. `better` is more, less or null (a fact, not a merit); `beyond_noise` null without two values;
    `change` is b over a, null without two values or where a is 0.
    """

    name = serializers.CharField()
    unit = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    a = serializers.FloatField(allow_null=True)
    b = serializers.FloatField(allow_null=True)
    change = serializers.FloatField(allow_null=True)
    better = serializers.CharField(allow_null=True)
    beyond_noise = serializers.BooleanField(allow_null=True)


class ComparedFact(serializers.Serializer[Any]):
    """One circumstance of both sides, as pages say it."""

    name = serializers.CharField()
    left = serializers.CharField()
    right = serializers.CharField()
    differs = serializers.BooleanField()


class Comparison(serializers.Serializer[Any]):
    """Two versions held against each other; `diff` is unified, `verdict` says how they stand in time. `environment` is where
    both were measured, what differs first; empty against the reference.
    """

    problem = serializers.CharField()
    a = ComparedSide()
    b = ComparedSide()
    verdict = serializers.CharField()
    facts = ComparedFact(many=True)
    environment = ComparedFact(many=True)
    metrics = ComparedMetric(many=True)
    diff = serializers.CharField()


class ComparedVersion(ComparedSide):
    """One of several versions; `against_first` says how it stands in time against the first, empty for that one."""

    against_first = serializers.CharField(allow_blank=True)


class ValueOfMany(serializers.Serializer[Any]):
    """A metric of one version; `change` is over the first one's, and null with `beyond_noise` where there are no two values."""

    value = serializers.FloatField(allow_null=True)
    change = serializers.FloatField(allow_null=True)
    beyond_noise = serializers.BooleanField(allow_null=True)


class MetricOfMany(serializers.Serializer[Any]):
    """One metric of several versions, in their order. `better` is more, less or null."""

    name = serializers.CharField()
    unit = serializers.CharField()
    better = serializers.CharField(allow_null=True)
    values = ValueOfMany(many=True)


class CircumstanceOfMany(serializers.Serializer[Any]):
    """One circumstance in which several versions were measured, as pages say it."""

    name = serializers.CharField()
    values = serializers.ListField(child=serializers.CharField())


class ComparisonOfMany(serializers.Serializer[Any]):
    """Several versions of a problem, each held against the first; `environment` is what differs between any two."""

    problem = serializers.CharField()
    versions = ComparedVersion(many=True)
    metrics = MetricOfMany(many=True)
    environment = CircumstanceOfMany(many=True)


_WAYS = ("parent", "best", comparison.REFERENCE)


class CompareViews(AskingViews):
    """Two versions of one problem, across runs."""

    queryset = Version.objects.none()
    pagination_class = None

    @extend_schema(
        responses={200: forced_singular_serializer(Comparison), 400: Complaint},
        parameters=[
            OpenApiParameter("a", str, description="RUN.NUMBER or `reference`"),
            OpenApiParameter("b", str, required=True, description="RUN.NUMBER"),
            OpenApiParameter("against", str, description="in place of `a`: parent, best, accepted or reference"),
        ],
    )
    def list(self, request: Request) -> Response:
        """How `b` compares with `a`."""
        keys = request.query_params
        anchor = comparison.find(keys.get("b", ""))
        if anchor is None:
            raise Refused("Name a version that is there, as RUN.NUMBER.", "b")
        against = keys.get("against", "")
        if not against and keys.get("a", comparison.REFERENCE) != comparison.REFERENCE:
            other = comparison.find(keys["a"])
            if other is None:
                raise Refused("Name a version that is there, as RUN.NUMBER, or reference.", "a")
        elif not against or against in (*_WAYS, *extensions.anchors):
            other = comparison.other_side(anchor, against)
            if other is None and against in extensions.anchors:
                raise Refused(f"There is none for this version: {extensions.anchors[against].title}.", "against")
        else:
            ways = ", ".join((*_WAYS, *extensions.anchors))
            raise Refused(f"A version is compared against one of these: {ways}.", "against")
        if other is not None and other.run.problem_id != anchor.run.problem_id:
            raise Refused("Two versions are compared that solve the same problem; these don't.", "a")
        return Response(Comparison(_compared(comparison.side(other, anchor), comparison.side(anchor, anchor))).data)

    @extend_schema(
        responses={200: forced_singular_serializer(ComparisonOfMany), 400: Complaint},
        parameters=[
            OpenApiParameter(
                "v", str, many=True, required=True, description="RUN.NUMBER, two to twelve: repeated, or with commas"
            )
        ],
    )
    @action(detail=False, methods=["get"])
    def versions(self, request: Request) -> Response:
        """How two to twelve versions of one problem compare with the first of them."""
        named = [key.strip() for part in request.query_params.getlist("v") for key in part.split(",")]
        keys = list(dict.fromkeys(filter(None, named)))
        if not 2 <= len(keys) <= versions_table.MOST:
            raise Refused(f"Name two to {versions_table.MOST} versions, each as RUN.NUMBER.", "v")
        shown = versions_table.columns(keys)
        there = {column.key for column in shown}
        for key in keys:
            if key not in there:
                why = f"solves another problem than {keys[0]}" if comparison.find(key) else "is not there"
                raise Refused(f"Versions of one problem are compared, each as RUN.NUMBER; {key} {why}.", "v")
        return Response(ComparisonOfMany(_of_many(shown)).data)


def _of_many(shown: Sequence[Column]) -> dict[str, Any]:
    evaluations = [column.measured.evaluation for column in shown]
    told = [{row["name"]: row for row in _metrics(evaluations[0], one)} for one in evaluations]
    return {
        "problem": shown[0].measured.version.run.problem.slug,
        "versions": [
            {**_figures(column.key, column.name, column.measured), "against_first": column.against_first}
            for column in shown
        ],
        "metrics": [_metric_of_many(name, told) for name in dict.fromkeys(name for rows in told for name in rows)],
        "environment": [
            {"name": row.label, "values": [cell.value for cell in row.cells]}
            for row in versions_table.environment_of(shown)
        ],
    }


def _metric_of_many(name: str, told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = next(rows[name] for rows in told if name in rows)
    values = []
    for place, rows in enumerate(told):
        row = rows.get(name, {})
        held = row if place else {}
        one = {"value": row.get("b"), "change": held.get("change"), "beyond_noise": held.get("beyond_noise")}
        values.append(one)
    return {"name": name, "unit": first["unit"], "better": first["better"], "values": values}


def _compared(left: Side, right: Side) -> dict[str, Any]:
    problem = right.measured.version.run.problem if right.measured else None
    if problem is None:
        raise Http404
    before, after = (one.measured.evaluation if one.measured else None for one in (left, right))
    lines = difflib.unified_diff(
        left.source.splitlines(keepends=True), right.source.splitlines(keepends=True), left.name, right.name
    )
    return {
        "problem": problem.slug,
        "a": _side(left),
        "b": _side(right),
        "verdict": comparison.verdict(left, right),
        "facts": [asdict(fact) for fact in comparison.facts(left, right)],
        "environment": _environment(left, right),
        "metrics": _metrics(before, after),
        "diff": "".join(lines),
    }


def _environment(left: Side, right: Side) -> list[dict[str, Any]]:
    if not (left.measured and right.measured):
        return []
    told = comparison.environments(left, right)
    return [asdict(fact) for fact in (*told.differ, *told.same)]


def _side(side: Side) -> dict[str, Any]:
    return _figures(side.key, side.name, side.measured)


def _figures(key: str, name: str, measured: Measured | None) -> dict[str, Any]:
    row = measured.measurement if measured else None
    figures = {column: getattr(row, column, None) for column in ("verdict", "speedup", "speedup_low", "speedup_high")}
    return {"key": key, "name": name, **figures}


def _metrics(before: Evaluation | None, after: Evaluation | None) -> list[dict[str, Any]]:
    earlier = profiler.metrics(before) if before else {}
    later = profiler.metrics(after) if after else {}
    told = []
    for row in metrics.rows_against(before, after):
        a, b = earlier.get(row.name), later.get(row.name)
        shown = b or a
        change = b.value / a.value if a is not None and b is not None and a.value else None
        told.append(
            {
                "name": row.name,
                "unit": shown.unit if shown else "",
                "source": row.source,
                "a": a.value if a else None,
                "b": b.value if b else None,
                "change": change,
                "better": {1: "more", -1: "less"}.get(metrics.better_when(row.name)),
                "beyond_noise": row.beyond_noise,
            }
        )
    return told
