"""Launching a run: the form, what is known of its problem while it is filled in, and the launch itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.contrib.sessions.backends.base import SessionBase
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.ledger import limits, registry
from apps.ledger.limits import Account
from apps.ledger.presentation import price_words
from apps.people.models import Person
from apps.people.permissions import Action
from apps.runs import launch as launching
from apps.runs import problems, seeding, waiting_launches
from apps.runs.forms import SIZE, LaunchForm, overrides_of
from apps.runs.launch import LaunchOrder
from apps.runs.models import Origin, Problem, Run, SizingState
from apps.runs.presentation import estimates, launch_page
from apps.runs.presentation.estimates import Size
from apps.runs.refusals import LaunchRefused, Refused
from apps.runs.views.asking import person_who_may

BOXES = ("builtin_best", "seeds_like", "go")
OWN_FILE = "candidate.py"  # what a person's own candidate is called where the launch stands as a command
DEFAULTS = {
    "how": "choose",
    "language": "cpp",
    "policy": "library",
    "coder": "builtin",
    "iterations": "8",
    "candidates": "1",
    "profile": "on",
    "minutes": "10",
}


def launch(request: HttpRequest) -> HttpResponse:
    """The form, filled in from the address (or from another run); launches when sent."""
    person = person_who_may(request, Action.LAUNCH)
    if request.method != "POST":
        return render(request, "runs/launch.html", _context(request, _initial(request.session, request.GET)))
    sent = _with_files(request)
    form = LaunchForm(sent, request.FILES)
    if form.is_valid():
        try:
            problem = _problem(request, form)
            if sent.get("do") == "take" or not _ready(problem, sent):
                return _wait_for_facts(request, problem, sent)
            run = launching.launch(person, _with_seeds(person, form, form.order(problem, overrides_of(sent))))
            waiting_launches.forget(request.session, sent.get("draft", ""))
            return redirect(run.twin if sent.get("open") == "twin" and run.twin else run)
        except Refused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.message)
    return render(request, "runs/launch.html", _context(request, sent, form), status=422)


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """What the form as it stands would do: facts, hosts, estimate, command."""
    person_who_may(request, Action.LAUNCH)
    context = _context(request, request.POST)
    fresh = context["sized"] != request.POST.get("sized", "")
    asked = context["model"].name if context["model"] else ""
    other = asked != request.POST.get("tested", "")
    return render(request, "runs/launch_preview.html", context | {"new_problem": fresh, "new_coder": other})


def _with_seeds(person: Person, form: LaunchForm, order: LaunchOrder) -> LaunchOrder:
    """The order with what it starts from. A file takes the place of the pasted candidate. Raises `Refused`."""
    upload = form.cleaned_data["own_file"]
    if upload is not None and upload.size > seeding.LARGEST:
        raise LaunchRefused(f"The file has {upload.size} bytes; a candidate may have {seeding.LARGEST}.", seeding.FIELD)
    text = upload.read() if upload is not None else form.cleaned_data["own"]
    return seeding.asked(person, order, builtin=form.cleaned_data["builtin_best"], text=text)


def _initial(session: SessionBase, query: QueryDict) -> QueryDict:
    """Defaults, then another run's settings where `copy` (or `from`) names one, then the address's own words, then the
    form that waits under `draft`."""
    values = QueryDict(mutable=True)
    values.update(DEFAULTS)
    run = _run_numbered(query.get("copy") or query.get("from"))
    if run is not None:
        _take_over(values, run)
    for name in query:
        if name != "go":  # a link must not launch anything
            values[name] = str(query[name])
    waiting = waiting_launches.kept(session, query.get("draft", ""))
    if waiting:
        for box in BOXES:
            values.pop(box, None)
    for name, value in waiting.items():
        values[name] = value
    return values


def _with_files(request: HttpRequest) -> QueryDict:
    """What was sent, with the text of a candidate's file in its field: shown again where the launch is refused or waits.

    (A problem's file is read by the form; both are, where no script has put them into the fields before.)
    """
    sent = request.POST.copy()
    for field, upload in (("own", request.FILES.get("own_file")), ("source", request.FILES.get("file"))):
        if isinstance(upload, UploadedFile) and (upload.size or 0) <= seeding.LARGEST:
            raw = upload.read()
            upload.seek(0)
            with suppress(UnicodeDecodeError):  # then it is refused, and there is nothing to show
                sent[field] = raw.decode()
            if field == "source":
                sent["how"] = "paste"
    return sent


def _take_over(values: QueryDict, run: Run) -> None:
    order = launching.order_of(run)
    values["problem"] = order.problem.slug
    values["profile"] = "twins" if run.twin else "on" if order.profile else "off"
    values["minutes"] = f"{order.seconds / 60:g}" if order.seconds else ""
    values["goal"], values["notes"] = f"{order.goal:g}" if order.goal else "", order.notes
    values["money"] = f"{order.money_usd.normalize():f}" if order.money_usd is not None else ""
    values["tokens"] = str(order.tokens or "")
    values["temperatures"] = ", ".join(f"{one:g}" for one in order.temperatures)
    if order.seeds:
        values["seeds_like"] = str(run.pk)
    for name in ("device", "language", "policy", "coder", "iterations", "candidates"):
        values[name] = str(getattr(order, name))
    for name, value in order.overrides.items():
        values[SIZE + name] = str(value)


def _problem(request: HttpRequest, form: LaunchForm) -> Problem:
    """The problem chosen, or the pasted one taken in. Raises `Refused`."""
    data = form.cleaned_data
    if data["how"] == "paste":
        person = person_who_may(request, Action.ADD_PROBLEM)
        origin = Origin.UPLOADED if data.get("file") else Origin.PASTED
        return problems.add(person, data["source"], title=data["title"], origin=origin)
    found = Problem.objects.filter(slug=data["problem"]).first()
    if found is None:
        raise Refused("There is no such problem any more. Choose another.", "problem")
    return found


def _ready(problem: Problem, posted: QueryDict) -> bool:
    return problems.sizing_for(problem, overrides_of(posted)).state in (SizingState.READY, SizingState.REFUSED)


def _wait_for_facts(request: HttpRequest, problem: Problem, sent: QueryDict) -> HttpResponse:
    """Back to the form with everything kept: a host has to look at the problem first, which takes seconds.

    The page then goes on by itself where the launch was asked for, and waits for a click where a look was.
    """
    waiting = {name: str(value) for name, value in sent.items() if name not in ("source", "title", "go")}
    waiting |= {"problem": problem.slug, "how": "choose"}
    if sent.get("do") != "take":
        waiting["go"] = "on"
    waiting_launches.forget(request.session, sent.get("draft", ""))
    draft = waiting_launches.keep(request.session, waiting)
    messages.info(request, f"{problem.title} is taken in; a host looks at it now. All you typed is kept.", "run")
    return redirect(f"{reverse('launch')}?problem={problem.slug}&draft={draft}")


def _context(request: HttpRequest, values: QueryDict, form: LaunchForm | None = None) -> dict[str, Any]:
    pasted = values.get("how") == "paste"
    problem = None if pasted else Problem.objects.filter(slug=values.get("problem", "")).first()
    overrides = overrides_of(values)
    text = launch_page.look_at_text(values.get("source", "") if pasted else problem.source if problem else "")
    sized = launch_page.identity(problem, text)
    if values.get("sized", sized) != sized:
        overrides = {}  # the sizes typed belonged to another problem
    looked = launch_page.look_at(problem, overrides) if problem else text
    devices = launch_page.device_choices(values.get("language", "cpp"))
    device = values.get("device") or next((one.name for one in devices if not one.why_not), "")
    checked = form or LaunchForm(_complete(values, device))
    order = checked.order(problem, overrides) if problem and checked.is_valid() else None
    seed = checked.cleaned_data.get("seed") if order else None
    like = _run_numbered(values.get("seeds_like"))
    judged = launch_page.judged_seeds(like) if like else []
    seed_versions = ([seed] if seed else []) + (judged if order else [])
    seeds = list(dict.fromkeys(launch_page.file_of(one) for one in seed_versions))
    best = bool(order and checked.cleaned_data["builtin_best"])
    seeds += [OWN_FILE] if order and values.get("own", "").strip() else []
    models = registry.enabled()
    model = next((one for one in models if one.name == values.get("coder")), None)
    size = Size(
        iterations=_number(values.get("iterations"), 8),
        candidates=_number(values.get("candidates"), 1),
        twins=values.get("profile") == "twins",
        minutes=_float(values.get("minutes")),
        money=_float(values.get("money")),
    )
    return {
        "values": values,
        "form": form,
        "problems": Problem.objects.filter(hidden=False),
        "recent": Run.objects.select_related("problem")[:8],
        "problem": problem,
        "looked": looked,
        "sized": sized,
        "tensors": launch_page.tensors(looked.facts) if looked and looked.facts else (),
        "devices": devices,
        "languages": launch_page.language_choices(devices),
        "device": device,
        "chosen": next((one for one in devices if one.name == device), None),
        "models": [(one, price_words(registry.terms_of(one))) for one in models],
        "model": model,
        "estimate": estimates.estimate(problem, device, model, size),
        "room": limits.tightest(Account(None, request.user.pk), timezone.now()) if model else None,
        "command": launch_page.command(problem, order, seeds, builtin_best=best),
        "seed_version": seed,
        "seed_versions": seed_versions,
        "seeds_like": like,
        "seeds_missing": like is not None and len(judged) < len(like.seeds),
        "own_file": OWN_FILE,
    }


def _run_numbered(number: str | None) -> Run | None:
    """The run that an address or a form names, with what its order is read from."""
    if not number or not number.isdecimal() or len(number) >= 12:
        return None
    return Run.objects.select_related("problem", "sizing", "device__host", "twin").filter(pk=number).first()


def _complete(values: QueryDict, device: str) -> QueryDict:
    whole = values.copy()
    whole.setdefault("device", device)
    return whole


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() else default


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
