"""The REST views: each parses, asks `may`, calls one service and answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents.coders import BUILTIN
from apps.hosts.models import Device
from apps.kernels.evaluation import Tier
from apps.ledger import limits
from apps.ledger.limits import Account
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.permissions import Action
from apps.runs import annotating, launch, problems, remeasure, seeding, steering
from apps.runs.api import serializers as shapes
from apps.runs.live.reading import PAGE
from apps.runs.models import Event, Measurement, Problem, Run, RunState, Version
from apps.runs.presentation import estimates
from apps.runs.refusals import TranscriptRefused
from apps.runs.transcripts import exporting, importing, transcript


class ProblemFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of problems."""

    search = django_filters.CharFilter(field_name="title", lookup_expr="icontains")

    class Meta:
        model = Problem
        fields = ("level", "category", "origin")


class ProblemViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Problems: list, look, take in, have looked at in other sizes."""

    lookup_field = "slug"
    filterset_class = ProblemFilter

    def get_queryset(self) -> QuerySet[Problem]:
        """Those in the lists."""
        return Problem.objects.filter(hidden=False)

    def get_serializer_class(self) -> type[Any]:
        """Lists leave the source out."""
        return shapes.ProblemSerializer if self.action == "list" else shapes.ProblemWithSource

    @extend_schema(request=shapes.NewProblem, responses={201: shapes.ProblemWithSource, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Take a problem in; the same source again answers with the problem that is there."""
        ask(self.person, Action.ADD_PROBLEM)
        fields = self.read(shapes.NewProblem).validated_data
        problem = problems.add(self.person, fields.pop("source"), **fields)
        return Response(shapes.ProblemWithSource(problem).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.Sizes, responses={200: shapes.SizingSerializer, 400: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def sizings(self, request: Request, slug: str) -> Response:
        """What is known of the problem at these sizes; a host looks at it if nothing is yet. Ask again until ready."""
        problem = self.get_object()
        ask(self.person, Action.LAUNCH, problem)
        overrides = self.read(shapes.Sizes).validated_data["overrides"]
        return Response(shapes.SizingSerializer(problems.sizing_for(problem, overrides)).data)


class RunFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of runs."""

    state = django_filters.MultipleChoiceFilter(choices=RunState.choices)
    problem = django_filters.CharFilter(field_name="problem__slug")
    host = django_filters.CharFilter(field_name="device__host__name")
    owner = django_filters.CharFilter(field_name="owner__username")
    tag = django_filters.CharFilter(method="with_tag")

    class Meta:
        model = Run
        fields = ("language", "policy", "coder", "outcome")

    def with_tag(self, runs: QuerySet[Run], name: str, tag: str) -> QuerySet[Run]:
        """Those that carry the tag."""
        return runs.filter(tags__contains=f" {tag.strip().lower()} ")


_ORDER = {200: shapes.RunSerializer, 409: Complaint}


class RunViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Runs: list, look, launch, steer, and their events."""

    serializer_class = shapes.RunSerializer
    filterset_class = RunFilter

    def get_queryset(self) -> QuerySet[Run]:
        """All runs, newest first."""
        return Run.objects.select_related("problem", "sizing", "device__host", "best", "result", "owner")

    @extend_schema(request=shapes.NewRun, responses={201: shapes.RunSerializer, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Launch a run; with `twins` its twin too."""
        asked = self.read(shapes.NewRun)
        order = asked.order()
        ask(self.person, Action.LAUNCH, order.problem)
        if asked.validated_data["builtin_best"]:
            order = seeding.asked(self.person, order, builtin=True, text="")
        return self._told(launch.launch(self.person, order), status.HTTP_201_CREATED)

    @extend_schema(request=shapes.NewRun, responses={200: shapes.EstimateSerializer, 400: Complaint})
    @action(detail=False, methods=["post"], filterset_class=None, pagination_class=None)
    def estimate(self, request: Request) -> Response:
        """What a run would take, from runs like it, else from its model's price; takes what launching takes and launches
        nothing."""
        order = self.read(shapes.NewRun).order()
        ask(self.person, Action.LAUNCH, order.problem)
        found = estimates.of_order(order)
        room = limits.tightest(Account(None, self.person.pk), timezone.now()) if order.coder != BUILTIN else None
        return Response(shapes.EstimateSerializer({**asdict(found), "limit": room}).data)

    @extend_schema(request=shapes.Annotation, responses={200: shapes.RunSerializer, 400: Complaint})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Write tags and notes on a run; neither changes what it does."""
        run = self._steered()
        fields = self.read(shapes.Annotation).validated_data
        tags = " ".join(fields["tags"]) if "tags" in fields else run.tags
        annotating.annotate(run, tags=tags, notes=fields.get("notes", run.notes))
        return self._told(run)

    @extend_schema(request=shapes.StopOrderSerializer, responses=_ORDER)
    @action(detail=True, methods=["post"], filterset_class=None)
    def stop(self, request: Request, pk: str) -> Response:
        """Stop, keeping the best; it is still judged in full unless `at_once`."""
        run = self._steered()
        steering.stop(run, self.person, at_once=self.read(shapes.StopOrderSerializer).validated_data["at_once"])
        return self._told(run)

    @extend_schema(request=None, responses=_ORDER)
    @action(detail=True, methods=["post"], filterset_class=None)
    def pause(self, request: Request, pk: str) -> Response:
        """Wait after the step in hand."""
        run = self._steered()
        steering.pause(run, self.person)
        return self._told(run)

    @extend_schema(request=None, responses=_ORDER)
    @action(detail=True, methods=["post"], filterset_class=None)
    def resume(self, request: Request, pk: str) -> Response:
        """Go on after a pause."""
        run = self._steered()
        steering.resume(run, self.person)
        return self._told(run)

    @extend_schema(request=shapes.NewHint, responses=_ORDER)
    @action(detail=True, methods=["post"], filterset_class=None)
    def hint(self, request: Request, pk: str) -> Response:
        """Tell the run something that joins its next prompt."""
        run = self._steered()
        steering.hint(run, self.person, self.read(shapes.NewHint).validated_data["text"])
        return self._told(run)

    @extend_schema(request=shapes.NewLimits, responses=_ORDER)
    @action(detail=True, methods=["post"], filterset_class=None)
    def limits(self, request: Request, pk: str) -> Response:
        """Change limits of a live run."""
        run = self._steered()
        steering.change_limits(run, self.person, steering.Limits(**self.read(shapes.NewLimits).validated_data))
        return self._told(run)

    @extend_schema(request=None, responses={201: shapes.RunSerializer, 400: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def again(self, request: Request, pk: str) -> Response:
        """Launch the same run once more."""
        run = self.get_object()
        ask(self.person, Action.LAUNCH, run.problem)
        return self._told(launch.again(run, self.person), status.HTTP_201_CREATED)

    @extend_schema(
        responses=shapes.EventPage,
        parameters=[OpenApiParameter("after", int, description="number of the last event seen")],
    )
    @action(detail=True, methods=["get"], filterset_class=None, pagination_class=None)
    def events(self, request: Request, pk: str) -> Response:
        """The events after a number, in order, at most 500."""
        run = self.get_object()
        given = request.query_params.get("after", "0")
        after = int(given) if given.isdecimal() and len(given) < 12 else 0
        page = Event.objects.filter(run=run, seq__gt=after).order_by("seq")[:PAGE]
        return Response(shapes.EventPage({"last_seq": run.last_seq, "events": page}).data)

    @extend_schema(responses={200: OpenApiTypes.OBJECT, 409: Complaint})
    @action(detail=True, methods=["get"], filterset_class=None, pagination_class=None)
    def transcript(self, request: Request, pk: str) -> HttpResponse:
        """The run as one JSON, free of secrets: taken in elsewhere, it is gone through again without model, judge or host."""
        text = transcript.written(exporting.transcript_of(self.get_object()))
        return HttpResponse(text, content_type="application/json; charset=utf-8")

    @extend_schema(
        request={"multipart/form-data": shapes.TranscriptFile},
        responses={201: shapes.RunSerializer, 400: Complaint},
    )
    @action(detail=False, methods=["post"], url_path="import", filterset_class=None, parser_classes=[MultiPartParser])
    def take_in(self, request: Request) -> Response:
        """Take a transcript in (`file`) as a run that is marked imported; all of it, or nothing."""
        ask(self.person, Action.ADD_PROBLEM)
        upload = self.read(shapes.TranscriptFile).validated_data["file"]
        if upload.size > transcript.LARGEST:
            raise TranscriptRefused(transcript.too_large(upload.size), "file")
        return self._told(importing.take_in(self.person, upload.read()), status.HTTP_201_CREATED)

    def _steered(self) -> Run:
        run = cast("Run", self.get_object())
        ask(self.person, Action.STEER, run)
        return run

    def _told(self, run: Run, code: int = status.HTTP_200_OK) -> Response:
        return Response(shapes.RunSerializer(self.get_queryset().get(pk=run.pk)).data, status=code)


class VersionViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Versions of a run, and their measurements."""

    serializer_class = shapes.VersionSerializer
    lookup_field = "number"
    lookup_value_regex = r"\d+"
    queryset = Version.objects.none()

    def get_queryset(self) -> QuerySet[Version]:
        """Those of the run in the address."""
        run = get_object_or_404(Run, pk=self.kwargs["run_pk"]) if "run_pk" in self.kwargs else None
        found = Version.objects.filter(run=run).select_related("parent", "measurement", "run__problem", "run__sizing")
        large = ("plan", "parent__source", "parent__plan", "measurement__evaluation", "run__problem__source")
        return found.defer(*large) if self.action == "list" else found

    @extend_schema(responses=shapes.MeasurementSerializer(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def measurements(self, request: Request, run_pk: str, number: str) -> Response:
        """All measurements of the version, oldest first."""
        rows = Measurement.objects.filter(version=self.get_object()).select_related("device__host", "asked_by")
        return Response(shapes.MeasurementSerializer(rows, many=True).data)

    @extend_schema(request=shapes.NewMeasurement, responses={202: shapes.JobTicket, 400: Complaint})
    @measurements.mapping.post
    def measure_again(self, request: Request, run_pk: str, number: str) -> Response:
        """Have the version measured again; the result joins its measurements."""
        version = self.get_object()
        ask(self.person, Action.REMEASURE, version)
        fields = self.read(shapes.NewMeasurement).validated_data
        host, _, name = fields["device"].partition("/")
        device = get_object_or_404(Device.objects.select_related("host"), host__name=host, name=name, retired=False)
        job = remeasure.measure_again(self.person, version, device, Tier(fields["tier"]))
        ticket = shapes.JobTicket({"job": job.pk, "state": job.state})
        return Response(ticket.data, status=status.HTTP_202_ACCEPTED)
