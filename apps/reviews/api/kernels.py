"""The REST views of accepted kernels."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiTypes, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.permissions import Action
from apps.reviews import revoking, verifying
from apps.reviews.api import serializers as shapes
from apps.reviews.export import fetching
from apps.reviews.export.bundle import bundle
from apps.reviews.export.contents import contents_of
from apps.reviews.export.standalone import standalone
from apps.reviews.models import AcceptedKernel
from apps.runs.api.serializers import JobTicket
from apps.runs.models import Problem
from apps.runs.presentation import figures

RELATED = ("problem", "sizing", "device__host", "by", "version__run")  # what a line about a proposal or kernel names


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
        found = AcceptedKernel.objects.select_related(*RELATED, "measurement", "proposal")
        return found.defer("measurement__evaluation") if self.action == "list" else found

    @extend_schema(responses=shapes.WholeKernel)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One kernel with its source and its file."""
        return Response(whole(request, self.get_object()))

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
        return Response(whole(request, kernel))

    @extend_schema(request=shapes.Reason, responses={200: shapes.WholeKernel, 400: Complaint, 409: Complaint})
    @action(detail=True, methods=["post"], filterset_class=None)
    def revoke(self, request: Request, pk: str) -> Response:
        """Take it out of use; nothing takes its place by itself."""
        kernel = self.get_object()
        ask(self.person, Action.REVOKE, kernel)
        revoking.revoke(kernel.pk, self.person, self.read(shapes.Reason).validated_data["reason"])
        return Response(whole(request, self.get_object()))

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


def whole(request: Request, kernel: AcceptedKernel) -> Any:
    """A kernel with its source and the file it leaves as."""
    contents = contents_of(kernel, request.build_absolute_uri(kernel.get_absolute_url()))
    file, told = standalone(contents), cast("Any", kernel)
    told.file, told.file_name = file.text, file.name
    told.file_digest = hashlib.sha256(file.text.encode()).hexdigest()
    row = kernel.measurement
    told.speedup_text = figures.speedup(row.speedup, row.speedup_low, row.speedup_high)
    return shapes.WholeKernel(told).data
