"""Launching a run: an order is checked as a whole, then the run (and its twin) is created, or nothing is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from apps.agents.coders import BUILTIN
from apps.agents.words import Agent, CannotWrite, Seed
from apps.agents.writers.prompts import Prompts
from apps.hosts.models import Device
from apps.kernels.evaluation import Language, Policy
from apps.kernels.plain import Plain, to_plain
from apps.ledger import limits, registry
from apps.people.models import Person
from apps.runs import events, queue
from apps.runs.events import Entry
from apps.runs.models import Problem, Run, Sizing, SizingState
from apps.runs.problems import Overrides, sizing_for
from apps.runs.refusals import LaunchRefused, Refused
from apps.runs.spending import account_of
from apps.runs.steering import ITERATIONS_LIMIT

CANDIDATES_LIMIT = 8


@dataclass(frozen=True)
class LaunchOrder:
    """What a person asks for. `device` is HOST/DEVICE; with `twins` the run gets a twin with the profile off."""

    problem: Problem
    device: str
    overrides: Overrides = field(default_factory=dict)
    language: str = Language.CPP.value
    policy: str = Policy.LIBRARY.value
    coder: str = BUILTIN
    iterations: int = 8
    candidates: int = 1
    profile: bool = True
    twins: bool = False
    goal: float | None = None
    seconds: float | None = None
    money_usd: Decimal | None = None
    tokens: int | None = None
    temperatures: tuple[float, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: str = ""


def launch(person: Person | None, order: LaunchOrder) -> Run:
    """Create the run the order asks for and put it into the queue. Raises `LaunchRefused`; then nothing was created.

    With `order.twins` the run returned has the profile on and `run.twin` is the same with it off.
    """
    check_order(order)
    check_money(person, order)
    device = _device(order.device, Language(order.language))
    sizing = ready_sizing(order.problem, order.overrides)
    with transaction.atomic():
        run = create(person, order, sizing, device)
        queue.wake_on_commit(run.pk)
        if run.twin is not None:
            queue.wake_on_commit(run.twin.pk)
    return run


def check_order(order: LaunchOrder) -> None:
    """Raise `LaunchRefused` for what no device could make possible."""
    _check_words(order)
    _check_numbers(order)
    _check_coder(order)


def create(person: Person | None, order: LaunchOrder, sizing: Sizing, device: Device) -> Run:
    """The rows of a checked order: the run, its twin, and what their logs say of it."""
    with transaction.atomic():
        run = _row(person, order, sizing, device)
        twin = _row(person, replace(order, profile=False), sizing, device) if order.twins else None
        if twin is not None:
            run.twin = twin
            run.save(update_fields=["twin"])
            _announce(twin, person, twin=run)
        _announce(run, person, twin=twin)
    return run


def again(run: Run, by: Person | None) -> Run:
    """Launch the same run once more."""
    return launch(by, order_of(run))


def order_of(run: Run) -> LaunchOrder:
    """The order that would launch this run again; for the page that lets a person change it first."""
    return LaunchOrder(
        problem=run.problem,
        device="" if run.imported else str(run.device),  # one that is none of ours
        overrides=run.sizing.overrides,
        language=run.language,
        policy=run.policy,
        coder=run.coder,
        iterations=run.iterations,
        candidates=run.candidates,
        profile=run.profile,
        goal=run.goal,
        seconds=run.seconds_limit,
        money_usd=run.money_limit_usd,
        tokens=run.tokens_limit,
        temperatures=tuple(run.temperatures),
        seeds=tuple(Seed(**seed) for seed in run.seeds),
        notes=run.notes,
    )


def ready_sizing(problem: Problem, overrides: Overrides) -> Sizing:
    """The problem at those sizes, once a host has found its facts. Raises `LaunchRefused` saying what to wait for."""
    try:
        sizing = sizing_for(problem, overrides)
    except Refused as refusal:
        raise LaunchRefused(refusal.message, refusal.field or "overrides") from None
    if sizing.state == SizingState.READY:
        return sizing
    if sizing.state == SizingState.REFUSED:
        raise LaunchRefused(f"{problem.title} can't be judged at these sizes: {sizing.refusal}", "problem")
    raise LaunchRefused(
        f"{problem.title} is still being looked at by a host at these sizes; launch it once its facts are there.",
        "problem",
    )


def _row(person: Person | None, order: LaunchOrder, sizing: Sizing, device: Device) -> Run:
    return Run.objects.create(
        problem=order.problem,
        sizing=sizing,
        device=device,
        language=order.language,
        policy=order.policy,
        coder=order.coder,
        iterations=order.iterations,
        candidates=order.candidates,
        profile=order.profile,
        goal=order.goal,
        seconds_limit=order.seconds,
        money_limit_usd=order.money_usd,
        tokens_limit=order.tokens,
        temperatures=list(order.temperatures),
        seeds=[to_plain(seed) for seed in order.seeds],
        notes=order.notes,
        owner=person,
    )


def _announce(run: Run, person: Person | None, twin: Run | None) -> None:
    data: dict[str, Plain] = {
        "coder": run.coder,
        "language": run.language,
        "policy": run.policy,
        "device": str(run.device),
        "iterations": run.iterations,
        "profile": run.profile,
        "twin": twin.pk if twin else None,
        "by": str(person) if person else "",
    }
    profile = "" if run.profile else ", profile off"
    by = f" by {person}" if person else ""
    text = f"Launched{by}: {run.problem} on {run.device} in {run.language}, coder {run.coder}{profile}"
    events.append(run.pk, [Entry("launched", text, Agent.RUN, data=data)])


# --- checks -----------------------------------------------------------------------------------------------------


def _check_words(order: LaunchOrder) -> None:
    if order.language not in list(Language):
        known = ", ".join(Language)
        raise LaunchRefused(f"{order.language!r} is no language PRAGMA knows. It knows {known}.", "language")
    if order.policy not in list(Policy):
        raise LaunchRefused(f"{order.policy!r} is no policy. Choose one of {', '.join(Policy)}.", "policy")


def _check_numbers(order: LaunchOrder) -> None:
    if not 1 <= order.iterations <= ITERATIONS_LIMIT:
        raise LaunchRefused(f"Iterations must lie between 1 and {ITERATIONS_LIMIT}.", "iterations")
    if not 1 <= order.candidates <= CANDIDATES_LIMIT:
        raise LaunchRefused(f"Candidates an iteration must lie between 1 and {CANDIDATES_LIMIT}.", "candidates")
    if order.goal is not None and order.goal <= 1:
        raise LaunchRefused("The goal is a speed-up, so it must be more than 1.", "goal")
    if order.seconds is not None and order.seconds <= 0:
        raise LaunchRefused("The time limit must be more than 0 seconds.", "seconds")
    if order.money_usd is not None and order.money_usd < 0:
        raise LaunchRefused("The money limit can't be less than 0.", "money_usd")
    if order.tokens is not None and order.tokens <= 0:
        raise LaunchRefused("The limit of tokens must be more than 0.", "tokens")
    if any(not 0 <= one <= 2 for one in order.temperatures) or len(order.temperatures) > CANDIDATES_LIMIT:
        raise LaunchRefused(
            f"Temperatures lie between 0 and 2, one for each candidate: at most {CANDIDATES_LIMIT}.", "temperatures"
        )
    if order.twins and not order.profile:
        raise LaunchRefused("Twins are one run with the profile on and one with it off: leave it on.", "profile")


def _check_coder(order: LaunchOrder) -> None:
    if order.coder == BUILTIN:
        return
    try:
        model = registry.usable(order.coder)
        if order.temperatures and len(model.temperatures) == 1:
            raise LaunchRefused(
                f"{model.name} is asked at one temperature only, {model.temperatures[0]:g}: so it stands under Settings › "
                "Models. Leave temperatures empty.",
                "temperatures",
            )
        Prompts("1").house(Language(order.language))
    except registry.ModelRefused as refusal:
        raise LaunchRefused(refusal.message, "coder") from None
    except CannotWrite as cannot:
        raise LaunchRefused(f"{cannot} Choose cpp, or the builtin coder.", "coder") from None


def check_money(person: Person | None, order: LaunchOrder) -> None:
    """Raise `LaunchRefused` where a model's very first call would be refused for its money."""
    if order.coder == BUILTIN:
        return
    model = registry.usable(order.coder)
    terms = registry.terms_of(model)
    would_be = Run(owner=person, money_limit_usd=order.money_usd, tokens_limit=order.tokens)
    for room in limits.rooms(limits.current(), replace(account_of(would_be), run=0), timezone.now()):
        if terms.tried and not terms.is_priced:
            raise LaunchRefused(
                f"{room.whose} is {limits.dollars(room.limit)}, and the price of {model.name} is unknown, so it can't be kept "
                "to. An admin can type the price in under Settings › Models.",
                "coder",
            )
        if terms.cost(1, 1) != 0 and room.left <= 0:
            raise LaunchRefused(f"{room.whose} of {limits.dollars(room.limit)} is used up. {room.remedy}", "coder")


def device_named(name: str) -> Device:
    """The device HOST/DEVICE. Raises `LaunchRefused` with those that are there."""
    host_name, _, device_name = name.partition("/")
    device = Device.objects.select_related("host").filter(host__name=host_name, name=device_name, retired=False).first()
    if device is None:
        there = ", ".join(str(one) for one in Device.objects.select_related("host").filter(retired=False)) or "none yet"
        raise LaunchRefused(f"There is no device {name!r}. Devices: {there}.", "device")
    return device


def _device(name: str, language: Language) -> Device:
    device = device_named(name)
    if refusal := why_not(device, language):
        raise LaunchRefused(refusal, "device" if language.value in device.languages else "language")
    return device


def why_not(device: Device, language: Language) -> str | None:
    """Why that device can't take a run in that language now, with what to do; None where it can."""
    host = device.host
    if not host.is_online():
        return f"Host {host.name} is offline: its station has not been heard lately. Start it there, or choose another."
    if not host.enabled:
        return f"Host {host.name} is drained. Enable it on its page, or choose another."
    if language.value not in device.languages:
        return can_not_judge(device, language)
    if host.refuses_candidates:
        return (
            f"Host {host.name} can't isolate generated code well enough. "
            "See on its page what is missing; an admin can allow it there."
        )
    return None


def can_not_judge(device: Device, language: Language) -> str:
    """That a device can't judge a language, and what it can."""
    can = ", ".join(device.languages) or "nothing yet: its host's page says what is missing"
    return f"{device} can't judge {language.value}. It can judge {can}."
