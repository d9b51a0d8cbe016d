"""REST about one's saved lists of runs."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.people.api.asking import AskingViews
from apps.people.api.errors import Complaint
from apps.people.permissions import Action
from apps.runs import annotating
from apps.runs.models import SavedView


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    """A list under a name; `query` is what stands behind the `?` of its address."""

    query = serializers.CharField(max_length=1000, allow_blank=True)

    class Meta:
        model = SavedView
        fields = ("id", "name", "query", "created_at")
        read_only_fields = ("id", "created_at")


class NewSavedView(serializers.Serializer[Any]):
    """A list to keep; the same name again takes its place."""

    name = serializers.CharField(max_length=60)
    query = serializers.CharField(max_length=2000, allow_blank=True, default="")


class SavedViewViews(mixins.ListModelMixin, AskingViews):
    """One's own saved lists. They are part of one's account: sign in for that."""

    looks = Action.KEEP_ACCOUNT
    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()
    lookup_value_regex = r"\d{1,12}"

    def get_queryset(self) -> QuerySet[SavedView]:
        """Those of the person who asks."""
        return SavedView.objects.filter(owner=self.person)

    @extend_schema(request=NewSavedView, responses={201: SavedViewSerializer, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Keep a list under a name."""
        fields = self.read(NewSavedView).validated_data
        made = annotating.save_view(self.person, fields["name"], fields["query"])
        return Response(SavedViewSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Forget one."""
        annotating.forget_view(self.person, self.get_object().pk)
        return Response(status=status.HTTP_204_NO_CONTENT)
