"""Runs with their versions, measurements, jobs, advices and events: many of ordinary size, one with very many of each."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import models

from apps.agents.words import Advice, Evidence, Happened, Holding, Prediction
from apps.hosts.models import Fault, Job, JobKind, JobState
from apps.kernels.plain import to_plain
from apps.runs.models import AdviceRow, Draft, Event, Measurement, Purpose, Run, RunState, SavedView, Version
from bench.large import evaluations
from bench.large.size import Size
from bench.large.world import World
from tests.pages import sources
from tests.pages.factories import digest

_BATCH = 200  # runs that are written together
_APART = 20  # minutes between two runs: 72 a day
_JOBS_KEPT = timedelta(days=30)  # as `pragma_web.upkeep.prune` does
_STEPS = ("coder", "verifier", "profiler", "conductor")
_CODERS = ("builtin", "model-0", "model-1", "model-2", "model-3")
_ENDED = (RunState.FINISHED,) * 7 + (RunState.STOPPED, RunState.FAILED)
_THOUGHT = (
    "The loop waits for memory: each store fetches the line it is about to overwrite, a third of all traffic. " * 12
)


@dataclass
class Rows:
    """Rows that are not written yet, each kind after those it points to."""

    kinds: dict[type[models.Model], list[Any]] = field(default_factory=dict)

    def add(self, row: models.Model) -> None:
        """One more."""
        self.kinds.setdefault(type(row), []).append(row)

    def write(self) -> None:
        """All of them, in one statement a thousand."""
        for kind in (Run, Version, Job, Measurement, AdviceRow, Event, Draft):
            kind._default_manager.bulk_create(self.kinds.pop(kind, []), batch_size=1000)


@dataclass
class Numbers:
    """Keys that are given out here, so that rows may point at rows which are written with them."""

    version: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    measurement: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    job: Iterator[int] = field(default_factory=lambda: itertools.count(1))


@dataclass(frozen=True)
class Built:
    """The runs worth a look: an ordinary one that is over, one with many versions (and a twin), one with many events."""

    usual: int
    versions: int
    events: int
    last_best: int


def build(size: Size, world: World) -> Built:
    """Every run; the one with many versions and the one with many events are the newest."""
    writer = _Writer(world, size.runs, random.Random(1))
    rows = Rows()
    usual = max(1, size.runs - 2)
    for number in range(1, usual + 1):
        writer.usual(rows, number)
        if number % _BATCH == 0:
            rows.write()
    rows.write()
    writer.of_versions(rows, usual + 1, size.versions, twin=usual)
    writer.of_events(rows, usual + 2, size.events)
    rows.write()
    _lesser(size, world)
    return Built(usual, usual + 1, usual + 2, min(4, size.versions))


def _lesser(size: Size, world: World) -> None:
    host = world.devices[0].host
    Fault.objects.bulk_create(
        Fault(host=host, device=world.devices[0], job_id=1, what=f"Silent for 30 s while judging run {n} v2.")
        for n in range(size.share(500))
    )
    SavedView.objects.bulk_create(
        SavedView(owner=world.people[0], name=f"View {number}", query="state=ended") for number in range(5)
    )
    Job.objects.bulk_create(
        Job(
            key=f"waiting:{number}",
            kind=JobKind.EVALUATE,
            device=world.devices[number % len(world.devices)],
            state=JobState.WAITING if number >= len(world.devices) else JobState.RUNNING,
            origin=f"run {number} v1",
            request={"candidate": sources.SOFTSIGN_VERSIONS[0]},
            started_at=world.now,
        )
        for number in range(size.share(200, 6))
    )


class _Writer:
    """Makes the rows of one run after the other."""

    def __init__(self, world: World, runs: int, chance: random.Random) -> None:
        self._world = world
        self._runs = runs
        self._chance = chance
        self._numbers = Numbers()

    def usual(self, rows: Rows, number: int) -> None:
        """A run of two to five versions; one in a hundred still goes on."""
        kept = 2 + number % 4
        state = RunState.RUNNING if number % 100 == 50 else _ENDED[number % len(_ENDED)]
        run = self._run(rows, number, state, iterations=8, candidates=1)
        self._kept(rows, run, kept, profiled=True)
        for place in range(kept):
            self._turn(rows, run, place + 1)
        self._say(rows, run, "run_ended", f"Finished: v{kept} is faster", data={"result": kept})

    def of_versions(self, rows: Rows, number: int, kept: int, twin: int) -> None:
        """A finished run with very many versions, each judged and profiled, four candidates an iteration."""
        run = self._run(rows, number, RunState.FINISHED, iterations=200, candidates=4)
        run.twin_id, run.problem, run.sizing = twin, self._world.problems[0], self._world.sizings[0]
        run.device = self._world.devices[0]
        self._kept(rows, run, kept, profiled=True, slots=4)
        for place in range(0, kept, 4):
            self._turn(rows, run, place // 4 + 1)

    def of_events(self, rows: Rows, number: int, events: int) -> None:
        """A run that goes on and has a very long log: lines of the host, reasoning, candidates that came to nothing."""
        run = self._run(rows, number, RunState.RUNNING, iterations=200, candidates=8)
        run.claim_expires_at, run.finished_at = self._world.now + timedelta(days=1), None
        run.doing, run.result_id, run.outcome, run.coder = "writes v41", None, "", "model-1"
        self._kept(rows, run, 40, profiled=True)
        turn = 0
        while run.last_seq < events:
            turn = turn % 200 + 1
            self._turn(rows, run, turn)
            self._say(rows, run, "candidate_dropped", "No candidate: the same text as v2", "coder", turn,
                      {"slot": turn % 8, "reason": "the same text as v2", "copy_of": 2}, "warning")  # fmt: skip
            for line in range(12):
                level = "warning" if line == 5 else "debug" if line % 2 else "info"
                self._say(rows, run, "log", f"host epyc-00: jail up in {line + 20} ms", iteration=turn, level=level)
            if len(rows.kinds[Event]) > 5000:
                rows.write()
        run.iteration = 200
        Run.objects.filter(pk=run.pk).update(last_seq=run.last_seq, iteration=200)
        for agent in _STEPS:
            text = "<think>" + _THOUGHT + "</think>" + _THOUGHT
            rows.add(Draft(run=run, step=f"200.0.{agent}.9", agent=agent, iteration=200, text=text))

    def _run(self, rows: Rows, number: int, state: RunState, iterations: int, candidates: int) -> Run:
        world = self._world
        place = self._chance.randrange(len(world.problems))
        began = world.now - timedelta(minutes=_APART * (self._runs - number))
        live = state == RunState.RUNNING
        run = Run(
            pk=number,
            problem=world.problems[place],
            sizing=world.sizings[2 * place + number % 2],
            device=self._chance.choice(world.devices),
            coder=_CODERS[number % len(_CODERS)],
            iterations=iterations,
            candidates=candidates,
            profile=number % 4 != 0,
            seconds_limit=3600.0,
            state=state,
            reason="" if live else "Nothing more is to be gained: 89 % of the memory roof is reached.",
            claim_expires_at=world.now + timedelta(days=1) if live else None,
            attempt=1,
            outcome="" if live else "faster",
            compiled_speedup=2.86,
            tokens_in=41_000 if number % 5 else 0,
            tokens_out=9_000 if number % 5 else 0,
            cost_usd=Decimal("0.41") if number % 5 else Decimal(0),
            owner=world.people[number % len(world.people)],
            tags=" baseline nightly " if number % 10 == 0 else "",
            notes="Compare with last month's." if number % 20 == 0 else "",
            started_at=began,
            finished_at=None if live else began + timedelta(seconds=200 + number % 900),
        )
        rows.add(run)
        self._say(rows, run, "launched", f"Launched by {run.owner}: {run.coder}, cpp on {run.device}", "run")
        self._say(rows, run, "reference_timed", "Reference 1.95 ms, torch.compile 0.68 ms (2.86×)", "profiler")
        return run

    def _kept(self, rows: Rows, run: Run, count: int, *, profiled: bool, slots: int = 1) -> None:
        best, parent = 0.0, None
        for number in range(1, count + 1):
            version = self._version(rows, run, number, parent, (number - 1) // slots + 1, (number - 1) % slots)
            row = self._measured(rows, run, version, number, full=number == count)
            if row.speedup and row.speedup > best:
                best, parent = row.speedup, version.pk
                run.best_id, run.speedup, run.speedup_low, run.speedup_high = (
                    version.pk, row.speedup, row.speedup_low, row.speedup_high,
                )  # fmt: skip
            if profiled and row.speedup:
                self._advised(rows, run, number)
            self._say(rows, run, "version_kept", f"v{number} {row.verdict}", "verifier", version.iteration,
                      {"number": number}, "info" if row.speedup else "warning")  # fmt: skip
        run.iteration = (count - 1) // slots + 1
        run.result_id = None if run.state == RunState.RUNNING else run.best_id

    def _version(self, rows: Rows, run: Run, number: int, parent: int | None, iteration: int, slot: int) -> Version:
        source = f"{sources.SOFTSIGN_VERSIONS[number % 4]}\n# run {run.pk}, version {number}\n"
        version = Version(
            pk=next(self._numbers.version),
            run=run,
            number=number,
            parent_id=parent,
            iteration=iteration,
            slot=slot,
            repair=int(number % 7 == 3),
            author=run.coder,
            advice=number - 1 or None,
            source=source,
            digest=digest(source),
            summary="Streaming stores, 512-bit vectors, blocks of 8 K so that each thread streams.",
        )
        rows.add(version)
        return version

    def _measured(self, rows: Rows, run: Run, version: Version, number: int, *, full: bool) -> Measurement:
        wrong = number % 5 == 2
        evaluation, plain = evaluations.failed(number) if wrong else evaluations.correct(number, full=full)
        ratio, at = evaluation.timing.speedup, self._at(run)
        job = self._judged(rows, run, version, plain, at) if self._world.now - at < _JOBS_KEPT else None
        row = Measurement(
            pk=next(self._numbers.measurement),
            version=version,
            device=run.device,
            job=job,
            purpose=Purpose.FINAL if full else Purpose.LOOP,
            tier=evaluation.tier.value,
            verdict=evaluation.verdict.value,
            outcome=evaluation.timing.outcome.value if evaluation.timing.outcome else "",
            speedup=ratio.median if ratio else None,
            speedup_low=ratio.ci95[0] if ratio else None,
            speedup_high=ratio.ci95[1] if ratio else None,
            evaluation=plain,
            at=at,
        )
        rows.add(row)
        version.measurement_id = row.pk
        return row

    def _judged(self, rows: Rows, run: Run, version: Version, result: Any, at: datetime) -> Job:
        job = Job(
            pk=next(self._numbers.job),
            key=f"run:{run.pk}:{version.iteration}.{version.slot}.judge.0-{version.number}",
            kind=JobKind.EVALUATE,
            device=run.device,
            state=JobState.DONE,
            origin=f"run {run.pk} v{version.number}",
            request={"problem": run.problem.source, "candidate": version.source, "tier": result["tier"]},
            result=result,
            attempt=1,
            sent_at=at,
            started_at=at,
            heard_at=at,
            finished_at=at + timedelta(seconds=result["seconds"]),
        )
        rows.add(job)
        return job

    def _advised(self, rows: Rows, run: Run, number: int) -> None:
        advice, holding = _advice(number)
        rows.add(AdviceRow(run=run, number=number, advice=advice, holding=holding, held=number % 3 > 0))

    def _turn(self, rows: Rows, run: Run, iteration: int) -> None:
        """What the four agents say in one iteration."""
        asked = run.coder if run.coder != "builtin" else None
        for agent in _STEPS:
            step = f"{iteration}.0.{agent}.{run.last_seq}"
            self._say(rows, run, "step_began", f"{agent} at work", agent, iteration, {"title": "at work"}, step=step)
            usage = {"seconds": 1.2, "model": asked, "tokens_in": 5120 if asked else None,
                     "tokens_out": 840 if asked else None, "cost_usd": 0.02 if asked else None}  # fmt: skip
            data = {"text": _THOUGHT, "usage": usage}
            self._say(rows, run, "step_ended", "58 GB/s of 65: the traffic is the problem.", agent, iteration, data,
                      step=step)  # fmt: skip

    def _say(
        self, rows: Rows, run: Run, kind: str, text: str, agent: str = "", iteration: int | None = None,
        data: dict[str, Any] | None = None, level: str = "info", step: str = "",
    ) -> None:  # fmt: skip
        run.last_seq += 1
        rows.add(
            Event(run=run, seq=run.last_seq, at=self._at(run), kind=kind, text=text, agent=agent, iteration=iteration,
                  data=data or {}, level=level, step=step)
        )  # fmt: skip

    def _at(self, run: Run) -> datetime:
        assert run.started_at is not None
        return run.started_at + timedelta(milliseconds=700 * run.last_seq)


def _advice(number: int) -> tuple[Any, Any]:
    advice = Advice(
        number=number,
        base=number,
        bottleneck="Memory-bound; stores read the line they overwrite",
        evidence=(
            Evidence("share_of_memory_roof", 0.63, "share", "<", 0.8),
            Evidence("achieved_bandwidth", 41.2, "GB/s", "<", 65.0),
        ),
        change="Non-temporal stores, 512-bit vectors, blocks of 8 K so that each thread streams.",
        expected=(Prediction("achieved_bandwidth", 1.4, 1.25, 1.55), Prediction("time", 0.72, 0.64, 0.8)),
        reasoning=_THOUGHT,
    )
    moved = (Happened("achieved_bandwidth", 1.4, 1.25, 1.55, 41.2, 58.0, True),)
    return to_plain(advice), to_plain(Holding(number, number + 1, number % 3 > 0, moved))
