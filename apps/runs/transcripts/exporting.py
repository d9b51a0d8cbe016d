"""A run's transcript from its rows: checked by a replay before anybody gets it, and free of secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

from apps.agents.gateway.secret import Scrubber, Secret
from apps.agents.journal import Record
from apps.agents.replay import ReplayDiffers, replay
from apps.agents.words import Assignment
from apps.kernels.plain import BadPlain, Plain, from_plain, to_plain
from apps.runs import assignments
from apps.runs.models import Event, JournalEntry, Run, Version
from apps.runs.refusals import Refused
from apps.runs.transcripts.transcript import (
    SCHEMA,
    EventTold,
    ProblemTold,
    RunTold,
    StepTold,
    Transcript,
    VersionTold,
    digest_of,
)

T = TypeVar("T")

# What the loop tells (apps.agents.ports.Fact). What workers and people did around it is no part of a transcript.
LOOP_KINDS = (
    "step_began", "step_ended", "reference_timed", "version_kept", "version_judged", "best_changed", "advice_given",
    "advice_held", "hint_taken", "candidate_dropped", "replay_ended", "run_ended",
)  # fmt: skip


def transcript_of(run: Run, secrets: Iterable[Secret] = ()) -> Transcript:
    """The whole run. Raises `Refused` where it is not over, or its record can't be gone through again.

    Whatever is a secret of this process, or one of `secrets`, is no part of it.
    """
    if run.is_live:
        raise Refused(f"Run {run.pk} is still going on. Export it once it has ended.")
    scrubber = Scrubber(secrets)
    assignment, steps = _journal(run)
    events, versions = told_by(run), versions_of(run)
    clean = _scrubbed(scrubber, Assignment, assignment)
    texts = [_scrubbed_plain(scrubber, step.result) for step in steps]
    altered = clean != assignment or any(step.result != text for step, text in zip(steps, texts, strict=True))
    steps = [replace(step, result=text) for step, text in zip(steps, texts, strict=True)]
    records = _replayed(run, clean, [step.record for step in steps], sealed=not altered)
    steps = [replace(step, inputs=records[step.key].inputs) for step in steps]
    events = [_scrubbed(scrubber, EventTold, event) for event in events]
    return Transcript(
        schema=SCHEMA,
        pragma=settings.VERSION,
        exported_at=timezone.now().isoformat(),
        digest=digest_of(events, versions),
        run=_scrubbed(scrubber, RunTold, _run(run)),
        problem=_scrubbed(scrubber, ProblemTold, _problem(run)),
        assignment=clean,
        steps=tuple(steps),
        events=tuple(events),
        versions=tuple(versions),
    )


def told_by(run: Run) -> list[EventTold]:
    """What the loop told of a run, as an undisturbed loop would have: what a resumed one told twice or took back is out."""
    events: list[EventTold] = []
    for row in Event.objects.filter(run=run, kind__in=LOOP_KINDS).order_by("seq"):
        if row.kind == "replay_ended":
            first = next((place for place, one in enumerate(events) if one.step == row.step), len(events))
            del events[first:]
            continue
        events.append(EventTold(row.kind, row.agent, row.step, row.iteration, row.level, row.text, row.data))
    told: list[EventTold] = []
    for event in _in_slot_order(events):
        if not (event.kind == "step_began" and told and told[-1] == event):
            told.append(event)
    return told


def _in_slot_order(events: Iterable[EventTold]) -> list[EventTold]:
    """With what an iteration's candidates were told while they were written at the same time as if one followed the other."""
    ordered: list[EventTold] = []
    for written_together, group in groupby(events, _writing):
        told = list(group)
        ordered += sorted(told, key=_slot) if written_together else told
    return ordered


def _writing(event: EventTold) -> str | None:
    """The iteration whose candidates are being written, where it is an event of that."""
    iteration, _, role = (*event.step.split("."), "", "", "")[:3]
    return iteration if role == "write" else None


def _slot(event: EventTold) -> int:
    return int(event.step.split(".")[1])


def versions_of(run: Run) -> list[VersionTold]:
    """The versions of a run, as they are shown."""
    rows = Version.objects.filter(run=run).select_related("measurement").order_by("number")
    return [
        VersionTold(
            row.number,
            row.digest,
            row.measurement.verdict if row.measurement else "",
            row.measurement.speedup if row.measurement else None,
        )
        for row in rows
    ]


def _journal(run: Run) -> tuple[Assignment, list[StepTold]]:
    rows = list(JournalEntry.objects.filter(run=run).order_by("position"))
    pinned = next((row for row in rows if row.key == assignments.KEY), None)
    if pinned is None:
        raise Refused(f"Run {run.pk} never began, so there is nothing to export.")
    try:
        assignment = from_plain(Assignment, pinned.result)
    except BadPlain:
        raise Refused(f"Run {run.pk} was recorded by another version of PRAGMA, which alone can export it.") from None
    steps = [StepTold(row.key, row.inputs, row.result, row.at.isoformat()) for row in rows if row is not pinned]
    return assignment, steps


def _replayed(run: Run, assignment: Assignment, records: Sequence[Record], *, sealed: bool) -> dict[str, Record]:
    try:
        gone = replay(assignment, run.coder, records, sealed=sealed)
    except ReplayDiffers as differs:
        raise Refused(
            f"Run {run.pk} can't be exported: its record can't be gone through again. {differs} "
            "That is so for a run whose machinery failed, and for one that another version of PRAGMA did."
        ) from None
    return {record.key: record for record in gone.records}


def _run(run: Run) -> RunTold:
    began, ended = run.started_at or run.created_at, run.finished_at or run.created_at
    return RunTold(
        run.pk,
        run.coder,
        str(run.device),
        run.device.model,
        began.isoformat(),
        ended.isoformat(),
    )


def _problem(run: Run) -> ProblemTold:
    problem = run.problem
    return ProblemTold(problem.title, problem.level, problem.category, problem.description)


def _scrubbed(scrubber: Scrubber, kind: type[T], value: T) -> T:
    return from_plain(kind, _scrubbed_plain(scrubber, to_plain(value)))


def _scrubbed_plain(scrubber: Scrubber, plain: Plain) -> Plain:
    if isinstance(plain, str):
        return scrubber.without_secrets(plain)
    if isinstance(plain, dict):
        return {scrubber.without_secrets(key): _scrubbed_plain(scrubber, value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_scrubbed_plain(scrubber, item) for item in plain]
    return plain
