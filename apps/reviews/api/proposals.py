"""The REST views of proposals: each parses, asks `may`, calls one service and answers."""

from __future__ import annotations

from typing import Any, cast

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.hosts.models import Device
from apps.kernels.plain import to_plain
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.models import Person
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import accepting, evidence, measuring, proposing, rules, votes
from apps.reviews.api import serializers as shapes
from apps.reviews.api.kernels import RELATED, whole
from apps.reviews.models import Proposal
from apps.reviews.presentation.queue import waiting_for
from apps.reviews.record import record_of
from apps.runs.api.serializers import JobTicket, MeasurementSerializer
from apps.runs.models import Version


class ProposalFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of proposals; `waiting=true` leaves those that wait for whoever asks."""

    problem = django_filters.CharFilter(field_name="problem__slug")
    by = django_filters.CharFilter(field_name="by__username")
    waiting = django_filters.BooleanFilter(method="leave_waiting")

    class Meta:
        model = Proposal
        fields = ("state", "standing", "language")

    def leave_waiting(self, found: QuerySet[Proposal], name: str, value: bool) -> QuerySet[Proposal]:
        """Those that wait for the person asking."""
        mine = waiting_for(self.request.user).values("pk")
        return found.filter(pk__in=mine) if value else found.exclude(pk__in=mine)


_CHANGED = {200: shapes.WholeProposal, 400: Complaint, 409: Complaint}


class ReviewViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Proposals: list, look, propose, revise, comment, vote, accept, decline, withdraw."""

    filterset_class = ProposalFilter
    lookup_value_regex = r"\d+"
    queryset = Proposal.objects.none()

    def get_queryset(self) -> QuerySet[Proposal]:
        """All proposals, the newest first."""
        return Proposal.objects.select_related(*RELATED).prefetch_related("asked")

    def get_serializer_class(self) -> type[Any]:
        """Lists leave source and record out."""
        return shapes.ProposalSerializer if self.action == "list" else shapes.WholeProposal

    @extend_schema(responses=shapes.WholeProposal)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One proposal with its source, its evidence and its record."""
        return self._told(self.get_object())

    @extend_schema(request=shapes.NewProposal, responses={201: shapes.WholeProposal, 400: Complaint, 409: Complaint})
    def create(self, request: Request) -> Response:
        """Put a version up for review. Without a full and correct measurement on the device it is refused."""
        fields = self.read(shapes.NewProposal).validated_data
        version = _version(fields["run"], fields["version"])
        ask(self.person, Action.PROPOSE, version)
        device = _device(fields["device"]) if fields["device"] else None
        made = proposing.propose(self.person, version, device, fields["note"], _people(fields["asked"]))
        return self._told(made, status.HTTP_201_CREATED)

    @extend_schema(request=shapes.NewRevision, responses=_CHANGED)
    @action(detail=True, methods=["post"], filterset_class=None)
    def revise(self, request: Request, pk: str) -> Response:
        """Propose another version in its place: votes for other content no longer hold."""
        fields = self.read(shapes.NewRevision).validated_data
        proposal = self._asked(Action.PROPOSE)
        proposing.revise(proposal.pk, self.person, _version(fields["run"], fields["version"]), fields["note"])
        return self._told(proposal)

    @extend_schema(request=shapes.NewAsk, responses=_CHANGED)
    @action(detail=True, methods=["post"], filterset_class=None)
    def ask(self, request: Request, pk: str) -> Response:
        """Ask more people to review it."""
        proposal = self._asked(Action.PROPOSE)
        proposing.ask(proposal.pk, self.person, _people(self.read(shapes.NewAsk).validated_data["asked"]))
        return self._told(proposal)

    @extend_schema(request=shapes.NewVote, responses=_CHANGED)
    @action(detail=True, methods=["post"], filterset_class=None)
    def vote(self, request: Request, pk: str) -> Response:
        """Approve, request changes or comment, for one content; drafts go out with it."""
        fields = self.read(shapes.NewVote).validated_data
        proposal = self._asked(Action.COMMENT)
        votes.vote(proposal.pk, self.person, fields["vote"], fields["digest"], fields["text"])
        return self._told(proposal)

    @extend_schema(
        request=shapes.NewMeasurements, responses={202: JobTicket(many=True), 400: Complaint, 409: Complaint}
    )
    @action(detail=True, methods=["post"], filterset_class=None, pagination_class=None)
    def measure(self, request: Request, pk: str) -> Response:
        """Have what is proposed measured again on devices of one's choice, before deciding."""
        fields = self.read(shapes.NewMeasurements).validated_data
        proposal = cast("Proposal", self.get_object())
        ask(self.person, Action.REMEASURE, proposal.version)
        devices = [_device(named) for named in dict.fromkeys(fields["devices"])]
        jobs = measuring.measure(self.person, proposal, devices, against_accepted=fields["against_accepted"])
        return Response(JobTicket([{"job": job.pk, "state": job.state} for job in jobs], many=True).data, status=202)

    @extend_schema(request=shapes.NewAcceptance, responses={201: shapes.WholeKernel, 400: Complaint, 409: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def accept(self, request: Request, pk: str) -> Response:
        """Put the proposed content to use."""
        fields = self.read(shapes.NewAcceptance).validated_data
        proposal = self._asked(Action.ACCEPT)
        kernel = accepting.accept(proposal.pk, self.person, fields["digest"], fields["text"])
        return Response(whole(request, kernel), status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.Words, responses=_CHANGED)
    @action(detail=True, methods=["post"], filterset_class=None)
    def decline(self, request: Request, pk: str) -> Response:
        """Close it without putting it to use; `text` says why."""
        proposal = self._asked(Action.ACCEPT)
        accepting.decline(proposal.pk, self.person, self.read(shapes.Words).validated_data["text"])
        return self._told(proposal)

    @extend_schema(request=shapes.Words, responses=_CHANGED)
    @action(detail=True, methods=["post"], filterset_class=None)
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take one's own proposal back."""
        proposal = self._asked(Action.PROPOSE)
        proposing.withdraw(proposal.pk, self.person, self.read(shapes.Words).validated_data["text"])
        return self._told(proposal)

    @extend_schema(responses=shapes.RulesSerializer)
    @action(detail=False, methods=["get"], pagination_class=None, filterset_class=None)
    def rules(self, request: Request) -> Response:
        """The team's rules for reviews."""
        return Response(shapes.RulesSerializer(rules.current()).data)

    @extend_schema(request=shapes.RulesSerializer, responses={200: shapes.RulesSerializer, 400: Complaint})
    @rules.mapping.put
    def set_rules(self, request: Request) -> Response:
        """Set them."""
        ask(self.person, Action.ADMINISTER)
        fields = self.read(shapes.RulesSerializer).validated_data
        return Response(shapes.RulesSerializer(rules.change(self.person, **fields)).data)

    def _asked(self, wanted: Action) -> Proposal:
        proposal = cast("Proposal", self.get_object())
        ask(self.person, wanted, proposal)
        return proposal

    def _told(self, proposal: Proposal, code: int = status.HTTP_200_OK) -> Response:
        now = self.get_queryset().get(pk=proposal.pk)
        found, tally = evidence.evidence_of(now.version, now.device), votes.tally(now)
        told: Any = now
        told.record = to_plain(record_of(now))
        told.evidence = MeasurementSerializer(found.measurement).data if found.measurement else None
        told.approvals, told.approvals_needed = len(tally.approvals), tally.needed
        return Response(shapes.WholeProposal(told).data, status=code)


def _version(run: int, number: int) -> Version:
    related = ("run__problem", "run__sizing", "run__device__host")
    found = Version.objects.select_related(*related).filter(run_id=run, number=number).first()
    if found is None:
        raise Refused(f"There is no version {number} of run {run}.", "version")
    return found


def _device(named: str) -> Device:
    host, _, name = named.partition("/")
    found = Device.objects.select_related("host").filter(host__name=host, name=name).first()
    if found is None:
        raise Refused(f"There is no device {named!r}. /api/v1/hosts/ lists them.", "device")
    return found


def _people(names: list[str]) -> list[Person]:
    found = {person.username: person for person in Person.objects.filter(username__in=names, is_active=True)}
    if missing := [name for name in names if name not in found]:
        raise Refused(f"There is nobody named {missing[0]!r} to ask.", "asked")
    return [found[name] for name in names]
