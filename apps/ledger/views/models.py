"""Settings › Models: the list, one model's form, its test button."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from apps.ledger import catalogue, trials
from apps.ledger.forms import ModelForm
from apps.ledger.models import LanguageModel, Trial
from apps.ledger.presentation import TrialShown, model_rows
from apps.people.asking import person_who_may
from apps.people.permissions import Action
from apps.people.refusals import Refused


def models(request: HttpRequest) -> HttpResponse:
    """Every model, by name; what it is, and how its last trial went."""
    person_who_may(request, Action.VIEW)
    return render(request, "ledger/models.html", {"rows": model_rows()})


@sensitive_post_parameters("key")
@sensitive_variables("form")
def model(request: HttpRequest, pk: int | None = None) -> HttpResponse:
    """The form of one model, or of a new one."""
    admin = person_who_may(request, Action.MANAGE_MODELS)
    found = get_object_or_404(LanguageModel, pk=pk) if pk is not None else None
    form = ModelForm(request.POST or None, instance=found)
    if request.method == "POST" and form.is_valid():
        kept = catalogue.keep(form, admin)
        messages.success(request, f"{kept} is saved. Test it, to see whether it answers.", "good")
        return redirect("settings-models")
    context = {"form": form, "model": LanguageModel.objects.filter(pk=pk).first() if pk else None}
    return render(request, "ledger/model.html", context, status=422 if form.errors else 200)


@require_POST
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Switches a model on or off, or removes one that was never called."""
    admin = person_who_may(request, Action.MANAGE_MODELS)
    found = get_object_or_404(LanguageModel, pk=pk)
    try:
        match request.POST.get("do"):
            case "on" | "off" as word:
                catalogue.switch(found, on=word == "on", by=admin)
                messages.success(request, f"{found} is switched {word}.", "good")
            case "remove":
                catalogue.forget(found, admin)
                messages.success(request, f"{found} is removed.", "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect("settings-models")


@require_POST
def try_out(request: HttpRequest, pk: int) -> HttpResponse:
    """The test button: has an agents worker ask the model, and answers with a piece of page that asks again."""
    person = person_who_may(request, Action.LAUNCH)
    found = get_object_or_404(LanguageModel, pk=pk)
    return _shown(request, trials.begin(found, person))


def trial(request: HttpRequest, pk: int) -> HttpResponse:
    """A trial as it stands."""
    person_who_may(request, Action.VIEW)
    return _shown(request, get_object_or_404(Trial.objects.select_related("model"), pk=pk))


def _shown(request: HttpRequest, one: Trial) -> HttpResponse:
    one.refresh_from_db()
    if request.headers.get("HX-Request") != "true":
        return redirect("settings-models")
    return render(request, "ledger/trial.html", {"trial": TrialShown.of(one)})
