"""The REST views of reviews and kernels: each parses, asks `may`, calls one service and answers."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiTypes, extend_schema
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
from apps.reviews import accepting, comments, evidence, measuring, proposing, revoking, rules, verifying, votes
from apps.reviews.api import serializers as shapes
from apps.reviews.export import fetching
from apps.reviews.export.bundle import bundle
from apps.reviews.export.contents import contents_of
from apps.reviews.export.standalone import standalone
from apps.reviews.models import AcceptedKernel, Comment, Proposal, Side
from apps.reviews.presentation.queue import waiting_for
from apps.reviews.record import record_of
from apps.runs.api.serializers import JobTicket, MeasurementSerializer
from apps.runs.models import Problem, Version
from apps.runs.presentation import figures

_RELATED = ("problem", "sizing", "device__host", "by", "version__run")


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
        return Proposal.objects.select_related(*_RELATED).prefetch_related("asked")

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
        return Response(_whole(request, kernel), status=status.HTTP_201_CREATED)

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


class CommentViews(AskingViews):
    """Comments of a review."""

    serializer_class = shapes.CommentSerializer
    queryset = Comment.objects.none()
    lookup_value_regex = r"\d+"

    @extend_schema(responses=shapes.CommentSerializer(many=True))
    def list(self, request: Request, review_pk: str) -> Response:
        """What is published, and one's own drafts."""
        proposal = self._proposal(review_pk)
        found = proposal.comments.select_related("by", "revision", "resolved_by", "base")
        mine = [one for one in found if not one.is_draft or one.by_id == self.person.pk]
        return Response(shapes.CommentSerializer(mine, many=True).data)

    @extend_schema(request=shapes.NewComment, responses={201: shapes.CommentSerializer, 400: Complaint})
    def create(self, request: Request, review_pk: str) -> Response:
        """Write one: on lines, on the whole, or in reply."""
        proposal = self._proposal(review_pk)
        ask(self.person, Action.COMMENT, proposal)
        fields = self.read(shapes.NewComment).validated_data
        first, last = fields["first_line"], fields["last_line"]
        lines = (first, last if last is not None else first) if first is not None else None
        comment = comments.write(
            proposal.pk,
            self.person,
            fields["text"],
            lines=lines,
            old=self._old_side(fields, lines),
            parent=fields["reply_to"],
            revision=fields["revision"],
        )
        if fields["publish"]:
            comment = comments.publish(comment.pk, self.person)
        return Response(shapes.CommentSerializer(comment).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.ChangedComment, responses={200: shapes.CommentSerializer, 409: Complaint})
    def partial_update(self, request: Request, review_pk: str, pk: str) -> Response:
        """Change one's own draft, or publish it; resolve or reopen a thread."""
        comment = self._comment(review_pk, pk)
        fields = self.read(shapes.ChangedComment).validated_data
        if "text" in fields:
            comment = comments.rewrite(comment.pk, self.person, fields["text"])
        deeds = {"publish": comments.publish, "resolve": comments.resolve, "reopen": comments.reopen}
        if deed := deeds.get(fields.get("do", "")):
            comment = deed(comment.pk, self.person)
        return Response(shapes.CommentSerializer(comment).data)

    @extend_schema(responses={204: None, 409: Complaint})
    def destroy(self, request: Request, review_pk: str, pk: str) -> Response:
        """Throw one's own draft away."""
        comments.discard(self._comment(review_pk, pk).pk, self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _old_side(self, fields: dict[str, Any], lines: tuple[int, int] | None) -> comments.OldSide | None:
        if fields["side"] == Side.NEW:
            return None
        if lines is None:
            raise Refused("A side has lines: give first_line.", "first_line")
        return comments.OldSide.named(fields["base"] or "")

    def _proposal(self, pk: str) -> Proposal:
        return get_object_or_404(Proposal, pk=pk)

    def _comment(self, review_pk: str, pk: str) -> Comment:
        proposal = self._proposal(review_pk)
        ask(self.person, Action.COMMENT, proposal)
        found = get_object_or_404(proposal.comments.select_related("revision", "by"), pk=pk)
        if found.is_draft and found.by_id != self.person.pk:
            raise Refused("There is no such draft of yours.")
        return found


class KernelFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the catalogue; `device` is HOST/DEVICE."""

    problem = django_filters.CharFilter(field_name="problem__slug")
    device = django_filters.CharFilter(method="on_device")

    class Meta:
        model = AcceptedKernel
        fields = ("state", "language", "digest", "doubt")

    def on_device(self, found: QuerySet[AcceptedKernel], name: str, value: str) -> QuerySet[AcceptedKernel]:
        """Those accepted on it."""
        host, _, device = value.partition("/")
        return found.filter(device__host__name=host, device__name=device)


class KernelViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Accepted kernels: list, look, fetch the one in use, verify, revoke, files."""

    serializer_class = shapes.KernelSerializer
    filterset_class = KernelFilter
    lookup_value_regex = r"\d+"
    queryset = AcceptedKernel.objects.none()

    def get_queryset(self) -> QuerySet[AcceptedKernel]:
        """All of them, the newest first."""
        found = AcceptedKernel.objects.select_related(*_RELATED, "measurement", "proposal")
        return found.defer("measurement__evaluation") if self.action == "list" else found

    @extend_schema(responses=shapes.WholeKernel)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One kernel with its source and its file."""
        return Response(_whole(request, self.get_object()))

    @extend_schema(parameters=[shapes.Wanted], responses={200: shapes.WholeKernel, 404: Complaint})
    @action(detail=False, methods=["get"], url_path="in-use", pagination_class=None, filterset_class=None)
    def in_use(self, request: Request) -> Response:
        """The kernel in use for a problem on a device, as the small client fetches it."""
        wanted = shapes.Wanted(data=request.query_params)
        wanted.is_valid(raise_exception=True)
        fields = wanted.validated_data
        problem = Problem.objects.filter(slug=fields["problem"]).first()
        try:
            if problem is None:
                raise fetching.NoneInUse(
                    f"There is no problem {fields['problem']}. /api/v1/problems/ lists them.", "problem"
                )
            kernel = fetching.in_use(problem, fields["device"], fields["language"])
        except fetching.NoneInUse as none:
            told = {"message": none.message, "field": none.field, "errors": {none.field: [none.message]}}
            return Response(told, status=status.HTTP_404_NOT_FOUND)
        return Response(_whole(request, kernel))

    @extend_schema(request=shapes.Reason, responses={200: shapes.WholeKernel, 400: Complaint, 409: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def revoke(self, request: Request, pk: str) -> Response:
        """Take it out of use; nothing takes its place by itself."""
        kernel = self.get_object()
        ask(self.person, Action.REVOKE, kernel)
        revoking.revoke(kernel.pk, self.person, self.read(shapes.Reason).validated_data["reason"])
        return Response(_whole(request, self.get_object()))

    @extend_schema(request=None, responses={202: JobTicket, 400: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def verify(self, request: Request, pk: str) -> Response:
        """Have it judged in full once more on its device."""
        kernel = self.get_object()
        ask(self.person, Action.REMEASURE, kernel.version)
        job = verifying.verify(kernel, self.person)
        return Response(JobTicket({"job": job.pk, "state": job.state}).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    @action(detail=True, methods=["get"], filterset_class=None)
    def bundle(self, request: Request, pk: str) -> HttpResponse:
        """The kernel with everything that is known of it, as a zip."""
        kernel = self.get_object()
        packed = bundle(kernel, request.build_absolute_uri(kernel.get_absolute_url()))
        answer = HttpResponse(packed.content, content_type="application/zip")
        answer["Content-Disposition"] = f'attachment; filename="{packed.name}"'
        return answer


def _whole(request: Request, kernel: AcceptedKernel) -> Any:
    contents = contents_of(kernel, request.build_absolute_uri(kernel.get_absolute_url()))
    file, told = standalone(contents), cast("Any", kernel)
    told.file, told.file_name = file.text, file.name
    told.file_digest = hashlib.sha256(file.text.encode()).hexdigest()
    row = kernel.measurement
    told.speedup_text = figures.speedup(row.speedup, row.speedup_low, row.speedup_high)
    return shapes.WholeKernel(told).data


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
