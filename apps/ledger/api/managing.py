"""REST for whoever manages models and limits: the forms of the settings, filled in by JSON; trials of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.ledger import catalogue, limits, spending, trials
from apps.ledger.forms import LimitsForm, ModelForm, PersonLimitForm
from apps.ledger.models import KeySource, LanguageModel, Limits, Trial
from apps.ledger.presentation import TrialShown
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.models import Person
from apps.people.permissions import Action, may


class ModelFields(serializers.Serializer[Any]):
    """What is kept of a model; of a change what is left out stays. `key` is taken and never given."""

    name = serializers.CharField(max_length=60, required=False, help_text="of a new one")
    model_id = serializers.CharField(max_length=200, required=False, help_text="PROVIDER/MODEL, as litellm names it")
    api_base = serializers.CharField(max_length=300, required=False, allow_blank=True)
    key_source = serializers.ChoiceField(choices=KeySource.choices, required=False)
    key_variable = serializers.CharField(max_length=100, required=False, allow_blank=True)
    key = serializers.CharField(max_length=4000, required=False, allow_blank=True, write_only=True)
    usd_per_million_in = serializers.DecimalField(12, 6, required=False, allow_null=True)
    usd_per_million_out = serializers.DecimalField(12, 6, required=False, allow_null=True)
    context_tokens = serializers.IntegerField(required=False, allow_null=True)
    answer_tokens = serializers.IntegerField(required=False, allow_null=True)
    temperatures = serializers.ListField(child=serializers.FloatField(), required=False)
    silence_seconds = serializers.IntegerField(required=False)
    call_seconds = serializers.IntegerField(required=False)
    at_once = serializers.IntegerField(required=False, help_text="questions that one run may ask at the same time")
    enabled = serializers.BooleanField(required=False)


def kept(given: Mapping[str, Any], by: Person, model: LanguageModel | None = None) -> LanguageModel:
    """A new model, or one with what is given changed. Raises `ValidationError` with the form's own words."""
    now = model or LanguageModel()
    before = {name: getattr(now, name) for name in (*ModelForm.Meta.fields, "temperatures")}
    data = {**before, **given}
    data["temperatures"] = ", ".join(f"{one:g}" for one in data["temperatures"])
    return catalogue.keep(_valid(ModelForm(data, instance=model)), by)


def _valid(form: Any) -> Any:
    """The form, if it is. Raises `ValidationError`."""
    assert isinstance(form, forms.BaseForm)
    if form.is_valid():
        return form
    raise serializers.ValidationError({name: list(map(str, said)) for name, said in form.errors.items()})


class TrialSerializer(serializers.ModelSerializer[Trial]):
    """A test of a model. `fault` is what is wrong (empty: nothing), `message` says it; `state` done: that is all."""

    model = serializers.SlugRelatedField[LanguageModel](slug_field="name", read_only=True)
    well = serializers.BooleanField(source="is_well", read_only=True)
    message = serializers.SerializerMethodField()

    class Meta:
        model = Trial
        fields = (
            "id", "model", "state", "well", "fault", "message", "seconds", "first_text_seconds", "asked_at", "ended_at",
        )  # fmt: skip

    def get_message(self, trial: Trial) -> str:
        """As the page says it: also that no worker has taken it."""
        return TrialShown.of(trial).detail


class NewTrial(serializers.Serializer[Any]):
    """Which model to ask."""

    model = serializers.SlugRelatedField[LanguageModel](slug_field="name", queryset=LanguageModel.objects.all())


class TrialViews(mixins.RetrieveModelMixin, AskingViews):
    """Tests of models: an agents worker asks one word. Ask again until `state` is done."""

    serializer_class = TrialSerializer
    queryset = Trial.objects.select_related("model")

    @extend_schema(request=NewTrial, responses={202: TrialSerializer, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Have a model tested."""
        ask(self.person, Action.LAUNCH)
        trial = trials.begin(self.read(NewTrial).validated_data["model"], self.person)
        return Response(TrialSerializer(trial).data, status=status.HTTP_202_ACCEPTED)


class LimitFields(serializers.ModelSerializer[Limits]):
    """What may be spent, in USD; null is no limit. Of a change what is left out stays."""

    class Meta:
        model = Limits
        fields = ("team_month_usd", "person_month_usd", "run_usd")


class SpentOfPerson(serializers.Serializer[Any]):
    """A person's month: spent, set aside for calls on their way, and the limit that holds (`own`: theirs alone)."""

    username = serializers.CharField(source="person.username")
    spent_usd = serializers.DecimalField(14, 8, source="spent.usd")
    reserved_usd = serializers.DecimalField(14, 8, source="spent.reserved")
    unpriced_calls = serializers.IntegerField(source="spent.unpriced")
    limit_usd = serializers.DecimalField(12, 2, source="limit", allow_null=True)
    own_limit_usd = serializers.DecimalField(12, 2, source="own_limit", allow_null=True)


class LimitsTold(serializers.Serializer[Any]):
    """The limits, and this month (UTC) beside them: of all people for whoever sets limits, else of oneself."""

    limits = LimitFields()
    month = serializers.DateField()
    people = SpentOfPerson(many=True)


class PersonLimitFields(serializers.Serializer[Any]):
    """A person's own limit a month; null: the one that holds for everyone."""

    month_usd = serializers.DecimalField(12, 2, allow_null=True)


class LimitViews(AskingViews):
    """What may be spent."""

    queryset = Person.objects.none()
    pagination_class = None
    lookup_field = "username"

    @extend_schema(responses=forced_singular_serializer(LimitsTold))
    def list(self, request: Request) -> Response:
        """The limits and this month."""
        return Response(self._told())

    @extend_schema(request=LimitFields, responses={200: LimitsTold, 400: Complaint})
    def change(self, request: Request) -> Response:
        """Set limits of the team, of each person, of each run."""
        ask(self.person, Action.MANAGE_LIMITS)
        given = self.read(LimitFields).validated_data
        now = limits.current()
        before = {name: getattr(now, name) for name in LimitsForm.Meta.fields}
        catalogue.set_limits(_valid(LimitsForm({**before, **given}, instance=now)), self.person)
        return Response(self._told())

    @extend_schema(request=PersonLimitFields, responses={200: LimitsTold, 400: Complaint})
    def change_person(self, request: Request, username: str) -> Response:
        """Set one person's own limit."""
        ask(self.person, Action.MANAGE_LIMITS)
        whose = get_object_or_404(Person, username=username)
        form = _valid(PersonLimitForm(self.read(PersonLimitFields).validated_data))
        catalogue.set_person_limit(whose, form.cleaned_data["month_usd"], self.person)
        return Response(self._told())

    def _told(self) -> dict[str, Any]:
        now, current = timezone.now(), limits.current()
        active = Person.objects.filter(is_active=True).order_by("username")
        people = list(active) if may(self.person, Action.MANAGE_LIMITS) else [self.person]
        spent = spending.by_person(current, people, now)
        return dict(LimitsTold({"limits": current, "month": limits.month_of(now), "people": spent}).data)
