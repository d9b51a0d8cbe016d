"""What a run will take before it is launched: from runs like it where there are any, else from the model's terms."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from django.db.models import QuerySet

from apps.agents.coders import BUILTIN
from apps.ledger import registry
from apps.ledger.models import LanguageModel
from apps.runs import launch
from apps.runs.launch import LaunchOrder
from apps.runs.models import Problem, Run
from apps.runs.presentation import figures

_LAST = 30  # runs that are looked at
# Calls an iteration and candidate where nothing goes wrong: the Coder writes, the Conductor advises.
_CALLS = 2
# As `apps.agents.gateway.provider` assumes where neither the team nor litellm says anything.
_UNKNOWN_CONTEXT, _MOST_ANSWER = 16_384, 32_000


@dataclass(frozen=True)
class Size:
    """How large the run is to be, as far as the form says."""

    iterations: int
    candidates: int
    twins: bool
    minutes: float | None
    money: float | None

    @property
    def turns(self) -> int:
        """Candidates that are written when nothing ends it early; those of its twin too."""
        return self.iterations * self.candidates * (2 if self.twins else 1)


@dataclass(frozen=True)
class Estimate:
    """What the run will take, in words and with what they rest on; `seconds` and `money_usd` are the figures alone, None
    where nothing is known. A twin is part of them.
    """

    time: str
    money: str
    time_basis: str
    money_basis: str
    seconds: float | None
    money_usd: float | None


def estimate(problem: Problem | None, device: str, model: LanguageModel | None, size: Size) -> Estimate:
    """Time from the median iteration of runs like it, money from what they cost, else from context and price."""
    coder = model.name if model is not None else BUILTIN
    time, time_basis, seconds = _time(problem, device, coder, size)
    money, money_basis, usd = _money(problem, model, size)
    return Estimate(time, money, time_basis, money_basis, seconds, usd)


def of_order(order: LaunchOrder) -> Estimate:
    """The estimate of a whole order. Raises `LaunchRefused` for what no launch would take, on any day."""
    launch.check_order(order)
    device = launch.device_named(order.device)
    model = registry.usable(order.coder) if order.coder != BUILTIN else None
    size = Size(
        iterations=order.iterations,
        candidates=order.candidates,
        twins=order.twins,
        minutes=order.seconds / 60 if order.seconds else None,
        money=float(order.money_usd) if order.money_usd is not None else None,
    )
    return estimate(order.problem, str(device), model, size)


# --- time -------------------------------------------------------------------------------------------------------


def _time(problem: Problem | None, device: str, coder: str, size: Size) -> tuple[str, str, float | None]:
    host, _, name = device.partition("/")
    ended = _ended(coder).filter(device__host__name=host, device__name=name)
    limit = f"at most {size.minutes:g} min" if size.minutes else "no time limit"
    taken, basis = _first(
        (_seconds(ended.filter(problem=problem)) if problem else [], "of this problem here"),
        (_seconds(ended), "on this device"),
    )
    if not taken:
        return limit, f"no run of {coder} has ended on this device yet", None
    seconds = statistics.median(taken) * size.turns
    if size.minutes:
        seconds = min(seconds, size.minutes * 60 * (2 if size.twins else 1))
    each = " each" if size.minutes and size.twins else ""
    words = f"about {figures.duration(seconds)}" + (f" ({limit}{each})" if size.minutes else "")
    return words, f"the median iteration of {_runs(taken)} {basis}; it may end earlier", seconds


def _ended(coder: str) -> QuerySet[Run]:
    return Run.objects.filter(coder=coder, started_at__isnull=False, finished_at__isnull=False, iteration__gt=0)


def _seconds(runs: QuerySet[Run]) -> list[float]:
    """Seconds an iteration and candidate of the last ended runs."""
    rows = runs.order_by("-id").values_list("started_at", "finished_at", "iteration", "candidates")[:_LAST]
    return [
        (end - start).total_seconds() / iteration / max(1, candidates)
        for start, end, iteration, candidates in rows
        if start and end
    ]


# --- money ------------------------------------------------------------------------------------------------------


def _money(problem: Problem | None, model: LanguageModel | None, size: Size) -> tuple[str, str, float | None]:
    if model is None:
        return "none (built-in)", "", 0.0
    terms = registry.terms_of(model)
    ended = _ended(model.name).filter(cost_unknown=False, tokens_out__gt=0)
    costs, basis = _first(
        (_costs(ended.filter(problem=problem)) if problem else [], "of this problem"), (_costs(ended), "of any problem")
    )
    if costs:
        usd = statistics.median(costs) * size.turns
        told = f"what an iteration of {_runs(costs)} {basis} with {model.name} cost"
        return _bounded("about", usd, size), told, _within(usd, size)
    context = terms.context_tokens or _UNKNOWN_CONTEXT
    answer = min(terms.answer_tokens or _MOST_ANSWER, _MOST_ANSWER, context // 2)
    call = terms.cost(context - answer, answer)
    if call is None:
        why = f"the price of {model.name} is " + ("unknown" if terms.tried else "not looked up yet: test the model")
        return "unknown", why, None
    usd = float(call) * _CALLS * size.turns
    told = (
        f"price and context: {_CALLS * size.turns} calls of at most {context - answer:,} tokens in and {answer:,} out, "
        f"{figures.money(call)} each; repairs and the reading of failures come on top, and most calls are far shorter"
    )
    return _bounded("up to", usd, size), told, _within(usd, size)


def _costs(runs: QuerySet[Run]) -> list[float]:
    """USD an iteration and candidate of the last ended runs."""
    rows = runs.order_by("-id").values_list("cost_usd", "iteration", "candidates")[:_LAST]
    return [float(cost) / iteration / max(1, candidates) for cost, iteration, candidates in rows]


def _most(size: Size) -> float | None:
    """The limit of money, of both where there is a twin."""
    return size.money * (2 if size.twins else 1) if size.money is not None else None


def _within(usd: float, size: Size) -> float:
    most = _most(size)
    return usd if most is None else min(usd, most)


def _bounded(word: str, usd: float, size: Size) -> str:
    most = _most(size)
    if usd == 0:
        return "none: it is free"
    if most is not None and most < usd:
        return f"at most {figures.money(most)} (the limit)"
    return f"{word} {figures.money(usd)}" + (f" (limit {figures.money(most)})" if most is not None else "")


def _first(*found: tuple[list[float], str]) -> tuple[list[float], str]:
    """The first of those with anything in it."""
    return next((one for one in found if one[0]), ([], ""))


def _runs(values: list[float]) -> str:
    return f"{len(values)} run{'s' * (len(values) != 1)}"
