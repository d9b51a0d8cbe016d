"""Rows for pages: real models with realistic evaluations, advices, events and drafts, in each state a run can be in."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any, cast

import factory
from django.utils import timezone

from apps.agents.words import Advice, Evidence, Happened, Holding, Prediction
from apps.hosts.models import Device, Host
from apps.kernels.evaluation import Evaluation
from apps.kernels.plain import to_plain
from apps.people.models import Person, Role
from apps.runs.models import (
    AdviceRow,
    Event,
    Measurement,
    Origin,
    Problem,
    Purpose,
    Run,
    Sizing,
    Version,
)
from tests.pages import evaluations, sources


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class PersonFactory(factory.django.DjangoModelFactory[Person]):
    class Meta:
        model = Person
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"engineer{n}")
    first_name = "Ada"
    last_name = "Moss"
    role = Role.ENGINEER
    password = factory.django.Password("a-long-password")


class HostFactory(factory.django.DjangoModelFactory[Host]):
    class Meta:
        model = Host

    name = "this-machine"
    station = "station-1"
    report = factory.LazyFunction(lambda: to_plain(evaluations.host_report()))
    reported_at = factory.LazyFunction(timezone.now)
    seen_at = factory.LazyFunction(lambda: timezone.now() + timedelta(hours=1))  # heard all along


class DeviceFactory(factory.django.DjangoModelFactory[Device]):
    class Meta:
        model = Device

    host = factory.SubFactory(HostFactory)
    name = "cpu"
    kind = "cpu"
    model = "AMD EPYC 9R14"
    memory_bytes = 16 << 30
    languages = factory.List(["cpp"])


class ProblemFactory(factory.django.DjangoModelFactory[Problem]):
    class Meta:
        model = Problem

    title = "Soft-sign"
    slug = "softsign"
    source = sources.SOFTSIGN
    digest = factory.LazyAttribute(lambda problem: digest(problem.source))
    level = 1
    category = "element-wise"
    description = "Soft-sign over a large batch: x / (1 + |x|)."
    origin = Origin.STARTER


class SizingFactory(factory.django.DjangoModelFactory[Sizing]):
    class Meta:
        model = Sizing

    problem = factory.SubFactory(ProblemFactory)
    digest = digest("{}")
    state = "ready"
    facts = factory.LazyFunction(lambda: to_plain(evaluations.facts()))
    checked_at = factory.LazyFunction(timezone.now)


class RunFactory(factory.django.DjangoModelFactory[Run]):
    class Meta:
        model = Run

    problem = factory.SelfAttribute("sizing.problem")
    sizing = factory.SubFactory(SizingFactory)
    device = factory.SubFactory(DeviceFactory)
    owner = factory.SubFactory(PersonFactory)
    iterations = 8
    seconds_limit = 600.0


def keep(
    run: Run,
    number: int,
    evaluation: Evaluation,
    *,
    source: str,
    summary: str,
    parent: Version | None = None,
    repair: int = 0,
    iteration: int | None = None,
) -> Version:
    """A version with its evaluation, as the recorder keeps it."""
    version = Version.objects.create(
        run=run,
        number=number,
        parent=parent,
        iteration=number if iteration is None else iteration,
        repair=repair,
        author=run.coder,
        advice=number - 1 or None,
        source=source,
        digest=digest(source),
        summary=summary,
    )
    measure(version, evaluation)
    return version


def measure(version: Version, evaluation: Evaluation, purpose: Purpose = Purpose.LOOP) -> Measurement:
    """One more evaluation of a version, which becomes the one shown."""
    ratio = evaluation.timing.speedup
    row = Measurement.objects.create(
        version=version,
        device=version.run.device,
        purpose=purpose,
        tier=evaluation.tier.value,
        verdict=evaluation.verdict.value,
        outcome=evaluation.timing.outcome.value if evaluation.timing.outcome else "",
        speedup=evaluation.speedup,
        speedup_low=ratio.ci95[0] if ratio else None,
        speedup_high=ratio.ci95[1] if ratio else None,
        evaluation=to_plain(evaluation),
    )
    version.measurement = row
    version.save(update_fields=["measurement"])
    return row


def say(run: Run, kind: str, text: str, **more: Any) -> Event:
    """One more event of a run; `at` in seconds after its start."""
    at = cast("datetime", run.started_at or run.created_at) + timedelta(seconds=more.pop("at", 2.0 * run.last_seq))
    run.last_seq += 1
    run.save(update_fields=["last_seq"])
    return Event.objects.create(run=run, seq=run.last_seq, at=at, kind=kind, text=text, **more)


def speak(run: Run, agent: str, iteration: int, title: str, summary: str, text: str, seconds: float = 0.4) -> None:
    """One step of an agent: begun and ended."""
    step = f"{iteration}.0.{agent}.0"
    say(run, "step_began", title, agent=agent, step=step, iteration=iteration, data={"title": title})
    usage = {"seconds": seconds, "model": None, "tokens_in": None, "tokens_out": None, "cost_usd": None}
    say(run, "step_ended", summary, agent=agent, step=step, iteration=iteration, data={"text": text, "usage": usage})


def advise(run: Run, number: int, base: int, held: bool | None, after: float | None = None) -> AdviceRow:
    """An advice and what became of it."""
    advice = Advice(
        number=number,
        base=base,
        bottleneck="Memory-bound; stores read the line they overwrite" if number > 1 else "Not vectorised, one thread",
        evidence=(
            Evidence("share_of_memory_roof", 0.63, "share", "<", 0.8),
            Evidence("achieved_bandwidth", 41.2, "GB/s", "<", 65.0),
        ),
        change="non-temporal stores, 512-bit vectors, blocks of 8 K so that each thread streams."
        if number > 1
        else "omp parallel for simd over the flat index.",
        expected=(Prediction("achieved_bandwidth", 1.4, 1.25, 1.55), Prediction("time", 0.72, 0.64, 0.8)),
        reasoning="The output (12 MB) exceeds L2; each store first fetches its line, a third of the traffic.",
    )
    holding = None
    if after is not None:
        holding = Holding(
            number,
            base + 1,
            held,
            (
                Happened("achieved_bandwidth", 1.4, 1.25, 1.55, 41.2, 41.2 * after, bool(held)),
                Happened("time", 0.72, 0.64, 0.8, 0.611, 0.611 / after, bool(held)),
            ),
        )
    return AdviceRow.objects.create(
        run=run, number=number, advice=to_plain(advice), holding=to_plain(holding), held=held
    )
