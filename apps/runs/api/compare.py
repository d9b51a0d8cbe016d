"""REST of Compare: two versions of a problem, metric by metric, with what is beyond noise, and the difference of their code."""

from __future__ import annotations

import difflib
from dataclasses import asdict
from typing import Any

from django.http import Http404
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents import profiler
from apps.kernels.evaluation import Evaluation
from apps.people.api.asking import AskingViews
from apps.people.api.errors import Complaint
from apps.people.refusals import Refused
from apps.runs.models import Version
from apps.runs.presentation import comparison, extensions, metrics
from apps.runs.presentation.comparison import Side


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
    row = side.measured.measurement if side.measured else None
    figures = {name: getattr(row, name, None) for name in ("verdict", "speedup", "speedup_low", "speedup_high")}
    return {"key": side.key, "name": side.name, **figures}


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
