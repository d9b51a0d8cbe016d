"""Taking a transcript in: the loop is run over its record, and what it tells becomes the rows of a run that says so.

Nothing of it is executed and nothing of it is believed beyond what a finished run shows: its figures were measured
elsewhere, so they count for no problem's best, and its host is none of ours. All of it is taken in, or nothing is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from apps.agents.replay import Replay, ReplayDiffers, replay
from apps.agents.words import Agent, Assignment
from apps.hosts.models import ELSEWHERE, Device, Host
from apps.kernels.evaluation import Correctness
from apps.kernels.plain import from_plain, to_plain
from apps.people.models import Person
from apps.runs import assignments, events, problems
from apps.runs.claims import Claim
from apps.runs.events import Entry
from apps.runs.journal import storable
from apps.runs.models import JournalEntry, Level, Origin, Run, RunState, new_claim
from apps.runs.recorder import Recorder
from apps.runs.refusals import Refused, TranscriptRefused
from apps.runs.transcripts.exporting import told_by, versions_of
from apps.runs.transcripts.transcript import Transcript, difference, digest_of, instant, read


@dataclass(frozen=True)
class Imported:
    """What a run that came out of a transcript says of itself. `difference` is empty where the replay was exact."""

    run: int
    device: str
    exported_at: str
    pragma: str
    digest: str
    replayed: str
    difference: str

    @property
    def exact(self) -> bool:
        """Whether the replay told and kept exactly what is recorded."""
        return not self.difference


def imported(run: Run) -> Imported | None:
    """Where a run came from; None for one of our own."""
    return from_plain(Imported, run.imported) if run.imported else None


def take_in(person: Person | None, data: bytes) -> Run:
    """The run in a transcript's file. Raises `TranscriptRefused`; then nothing was created."""
    transcript = read(data)
    try:
        gone = _replayed(transcript)
        with transaction.atomic():
            return _created(person, transcript, gone)
    except RecursionError:
        raise TranscriptRefused("The transcript is nested more deeply than any run is.") from None
    except TranscriptRefused:
        raise
    except Refused as refusal:
        raise TranscriptRefused(f"The transcript's problem can't be taken in. {refusal.message}") from None
    except (DatabaseError, ArithmeticError, ValueError) as problem:
        raise TranscriptRefused(f"The transcript holds a value that no run has: {str(problem)[:200]}.") from None


def _replayed(transcript: Transcript) -> Replay:
    """The loop over the record. Raises `TranscriptRefused` naming the step where it goes no further."""
    plain = to_plain(transcript)
    if storable(plain) != plain:
        raise TranscriptRefused("The transcript holds characters that are no text.")
    try:
        gone = replay(transcript.assignment, transcript.run.coder, [step.record for step in transcript.steps])
    except ReplayDiffers as differs:
        raise TranscriptRefused(
            f"The run can't be gone through again from this transcript. {differs} "
            "The file was altered, or written by a version of PRAGMA whose loop went another way."
        ) from None
    for fact in gone.facts:
        for path in _endless(fact, type(fact).__name__):
            raise TranscriptRefused(f"The transcript has no number at {path}.")
    return gone


def _endless(value: Any, path: str) -> Iterator[str]:
    """Where numbers are none, beyond the errors of checks, which may be."""
    if isinstance(value, Correctness):
        return
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif is_dataclass(value):
        for field in fields(value):
            yield from _endless(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield from _endless(item, f"{path}[{place}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _endless(item, f"{path}.{name}")


def _created(person: Person | None, transcript: Transcript, gone: Replay) -> Run:
    """All rows of the run, in the open transaction."""
    run = _row(person, transcript)
    _keep_journal(run, transcript)
    _announce(run, person, transcript)
    _tell(run, transcript, gone)
    run = Run.objects.get(pk=run.pk)
    there = told_by(run), versions_of(run)
    told = Imported(
        run=transcript.run.number,
        device=transcript.run.device,
        exported_at=transcript.exported_at,
        pragma=transcript.pragma,
        digest=transcript.digest,
        replayed=digest_of(*there),
        difference=difference((transcript.events, transcript.versions), there),
    )
    run.imported = to_plain(told)
    run.save(update_fields=["imported"])
    _conclude(run, told)
    return run


def _row(person: Person | None, transcript: Transcript) -> Run:
    assignment, told = transcript.assignment, transcript.run
    about = transcript.problem
    problem = problems.add(
        person,
        assignment.problem,
        title=about.title[:120],
        level=about.level,
        category=about.category[:40],
        description=about.description,
        origin=Origin.UPLOADED,
        look=False,
    )
    return Run.objects.create(
        problem=problem,
        sizing=problems.sizing_of(problem, assignment.overrides),
        device=_device(told.device, told.device_model, assignment),
        language=assignment.language.value,
        policy=assignment.policy.value,
        coder=told.coder,
        iterations=assignment.iterations,
        candidates=assignment.candidates,
        profile=assignment.profile,
        goal=assignment.goal,
        seconds_limit=assignment.seconds,
        money_limit_usd=None if assignment.money_usd is None else round(assignment.money_usd, 6),
        prompts=assignment.prompts[:20],
        seeds=[to_plain(seed) for seed in assignment.seeds],
        owner=person,
        state=RunState.RUNNING,
        claim=new_claim(),
        claim_expires_at=timezone.now(),
        attempt=1,
        started_at=instant(told.started_at, "started_at"),
    )


def _device(name: str, model: str, assignment: Assignment) -> Device:
    """A device that stands for one elsewhere: never sent anything, and in no list of ours."""
    host, _ = Host.objects.get_or_create(name=ELSEWHERE, defaults={"enabled": False})
    slug = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:20].strip("-") or "device"
    kind = "cpu" if name.endswith("/cpu") else "gpu"
    defaults = {"kind": kind, "model": model[:120], "languages": [assignment.language.value], "retired": True}
    return Device.objects.get_or_create(host=host, name=slug, defaults=defaults)[0]


def _keep_journal(run: Run, transcript: Transcript) -> None:
    """The record, so that the run can be exported and gone through again from here too."""
    pinned = to_plain(transcript.assignment)
    began = instant(transcript.run.started_at, "started_at")
    rows = [JournalEntry(run=run, position=0, key=assignments.KEY, inputs="", result=pinned, at=began)]
    for place, step in enumerate(transcript.steps, start=1):
        at = instant(step.at, f"the time of step {step.key[:60]}")
        rows.append(JournalEntry(run=run, position=place, key=step.key, inputs=step.inputs, result=step.result, at=at))
    JournalEntry.objects.bulk_create(rows)


def _announce(run: Run, person: Person | None, transcript: Transcript) -> None:
    told = transcript.run
    by = f" by {person}" if person else ""
    text = f"Imported{by} from the transcript of run {told.number}, judged on {told.device[:80]}"
    data = {"run": told.number, "device": told.device[:80], "digest": transcript.digest}
    events.append(run.pk, [Entry("imported", text, Agent.RUN, data=data)], at=run.started_at)


def _tell(run: Run, transcript: Transcript, gone: Replay) -> None:
    """The replay's facts as rows, each at the time it has in the record."""
    assert run.claim is not None
    recorder = Recorder(Claim(run.pk, run.claim, 1), run.device_id)
    done = {step.key: instant(step.at, f"the time of step {step.key[:60]}") for step in transcript.steps}
    now = run.started_at
    for telling in gone.tellings:
        now = done[telling.step] if telling.done else now
        recorder.record(telling.step, telling.facts, now)


def _conclude(run: Run, told: Imported) -> None:
    if told.exact:
        text, level = f"Replayed exactly: the digest is {told.digest[:12]} both times", Level.INFO
    else:
        text, level = f"The replay differs from the record. {told.difference}", Level.WARNING
    entry = Entry("replayed", text, Agent.RUN, level=level, data={"exact": told.exact, "digest": told.replayed})
    events.append(run.pk, [entry], at=run.finished_at)
