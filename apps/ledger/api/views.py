"""REST: the models that may be chosen, and every call with what it took. Keys and addresses are not part of it."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.ledger import catalogue, registry
from apps.ledger.api.managing import ModelFields, kept
from apps.ledger.models import Call, LanguageModel
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.permissions import Action


class ModelSerializer(serializers.ModelSerializer[LanguageModel]):
    """A model; prices are USD for a million tokens, null where nobody knows them."""

    usd_per_million_in = serializers.SerializerMethodField()
    usd_per_million_out = serializers.SerializerMethodField()
    context_tokens = serializers.SerializerMethodField()

    class Meta:
        model = LanguageModel
        fields = (
            "name",
            "model_id",
            "enabled",
            "context_tokens",
            "usd_per_million_in",
            "usd_per_million_out",
            "temperatures",
        )

    def get_usd_per_million_in(self, model: LanguageModel) -> float | None:
        """Typed, else as litellm lists it."""
        price = registry.terms_of(model).usd_per_million_in
        return None if price is None else float(price)

    def get_usd_per_million_out(self, model: LanguageModel) -> float | None:
        """Typed, else as litellm lists it."""
        price = registry.terms_of(model).usd_per_million_out
        return None if price is None else float(price)

    def get_context_tokens(self, model: LanguageModel) -> int | None:
        """Typed, else as litellm lists it."""
        return registry.terms_of(model).context_tokens


class CallSerializer(serializers.ModelSerializer[Call]):
    """One call. `cost_usd` is null where the price is unknown, or while the call is on its way (`reserved_usd` at most)."""

    model = serializers.SlugRelatedField[LanguageModel](slug_field="name", read_only=True)
    person = serializers.StringRelatedField[Any]()

    class Meta:
        model = Call
        fields = (
            "id", "run", "model", "person", "agent", "step", "iteration", "slot", "attempt", "number", "retries", "outcome",
            "fault", "failure", "reserved_usd", "cost_usd", "estimated", "tokens_in", "tokens_out", "tokens_cached",
            "tokens_reasoning", "seconds", "began_at", "ended_at",
        )  # fmt: skip


class ModelViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Models by name, as `coder` of a run takes them; for admins add, change, remove."""

    serializer_class = ModelSerializer
    lookup_field = "name"
    lookup_value_regex = r"[^?&]+"

    def get_queryset(self) -> QuerySet[LanguageModel]:
        """Those that may be called first."""
        return LanguageModel.objects.all()

    @extend_schema(request=ModelFields, responses={201: ModelSerializer, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Add a model."""
        ask(self.person, Action.MANAGE_MODELS)
        model = kept(self.read(ModelFields).validated_data, self.person)
        return Response(ModelSerializer(model).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=ModelFields, responses={200: ModelSerializer, 400: Complaint})
    def partial_update(self, request: Request, name: str) -> Response:
        """Change a model, or switch it on or off (`enabled`)."""
        ask(self.person, Action.MANAGE_MODELS)
        model = kept(self.read(ModelFields).validated_data, self.person, self.get_object())
        return Response(ModelSerializer(model).data)

    @extend_schema(responses={204: None, 409: Complaint})
    def destroy(self, request: Request, name: str) -> Response:
        """Remove a model that was never called."""
        ask(self.person, Action.MANAGE_MODELS)
        catalogue.forget(self.get_object(), self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class CallFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of calls."""

    model = django_filters.CharFilter(field_name="model__name")
    person = django_filters.CharFilter(field_name="person__username")

    class Meta:
        model = Call
        fields = ("run", "agent", "outcome", "iteration")


class CallViews(mixins.ListModelMixin, AskingViews):
    """Calls of models, in order."""

    serializer_class = CallSerializer
    filterset_class = CallFilter

    def get_queryset(self) -> QuerySet[Call]:
        """All of them."""
        return Call.objects.select_related("model", "person")
