"""Changes of models and limits by people: one function for each, one entry in the audit log for each. No key is in it."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from apps.ledger import sealing
from apps.ledger.forms import LimitsForm, ModelForm
from apps.ledger.limits import dollars, locked
from apps.ledger.models import KeySource, LanguageModel, Limits, PersonLimit
from apps.people import audit
from apps.people.models import Person
from apps.people.refusals import Refused


def keep(form: ModelForm, by: Person) -> LanguageModel:
    """Write a valid form's model. A key that is no longer used is forgotten."""
    is_new = form.instance.pk is None
    model: LanguageModel = form.save(commit=False)
    data = form.cleaned_data
    model.temperatures, model.changed_by = data["temperatures"], by
    if "key_sealed" in data:
        model.key_sealed, model.key_kept_at = data["key_sealed"], timezone.now()
    if model.key_source != KeySource.KEPT:
        model.key_sealed, model.key_kept_at = "", None
    if model.key_source != KeySource.VARIABLE:
        model.key_variable = ""
    if {"model_id", "api_base"} & set(form.changed_data):
        model.listed = None  # what litellm listed was another model's
    with transaction.atomic():
        model.save()
        audit.record("model.added" if is_new else "model.changed", by, model, detail=_changed(form))
    return model


def _changed(form: ModelForm) -> str:
    """Which fields a form changes; of the key only that it does."""
    names = {"key": "a new key", "model_id": "name at litellm", "api_base": "address"}
    return ", ".join(names.get(name, name.replace("_", " ")) for name in form.changed_data)


def switch(model: LanguageModel, *, on: bool, by: Person) -> None:
    """Switch a model on or off. Runs that use it now end when they ask next."""
    with transaction.atomic():
        LanguageModel.objects.filter(pk=model.pk).update(enabled=on, changed_by=by, changed_at=timezone.now())
        audit.record("model.switched_on" if on else "model.switched_off", by, model)


def forget(model: LanguageModel, by: Person) -> None:
    """Remove a model that was never called. Raises `Refused` for one whose calls are accounted for."""
    with transaction.atomic():
        if model.calls.exists():
            raise Refused(f"{model} has been called, and those calls are accounted for. Switch it off instead.")
        audit.record("model.removed", by, model.name, detail=model.model_id)
        model.delete()


def set_limits(form: LimitsForm, by: Person) -> Limits:
    """Write a valid form's limits, under the lock of reservations."""
    with transaction.atomic():
        locked()
        limits: Limits = form.save()
        said = {name.removesuffix("_usd").replace("_", " "): getattr(limits, name) for name in form.changed_data}
        words = ", ".join(f"{name}: {_amount(value)}" for name, value in said.items())
        audit.record("limits.changed", by, "limits", detail=words)
        return limits


def set_person_limit(person: Person, month_usd: Decimal | None, by: Person) -> None:
    """Give a person a limit of their own, or (None) the one that holds for everyone."""
    with transaction.atomic():
        locked()
        if month_usd is None:
            PersonLimit.objects.filter(person=person).delete()
        else:
            PersonLimit.objects.update_or_create(person=person, defaults={"month_usd": month_usd})
        said = "as everyone" if month_usd is None else f"{_amount(month_usd)} a month"
        audit.record("limits.person_changed", by, person.username, detail=said)


def _amount(value: Decimal | None) -> str:
    return "no limit" if value is None else dollars(value)


def reseal() -> tuple[int, list[str]]:
    """Write every kept key anew under the present `PRAGMA_KEY`; how many, and why not the others."""
    done, refused = 0, []
    for model in LanguageModel.objects.filter(key_source=KeySource.KEPT):
        try:
            fresh = sealing.resealed(model.key_sealed, model.name)
        except sealing.CannotOpen as refusal:
            refused.append(refusal.message)
            continue
        LanguageModel.objects.filter(pk=model.pk, key_sealed=model.key_sealed).update(key_sealed=fresh)
        done += 1
    return done, refused
