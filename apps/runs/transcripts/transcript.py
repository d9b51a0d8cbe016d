"""The transcript: what stands in the file, how it is written, and a reader that believes nothing.

A transcript comes from outside, so everything in it is hostile until it has been read: its size, its depth, each value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.agents.journal import Record
from apps.agents.words import Assignment
from apps.kernels.plain import BadPlain, Plain, from_plain, to_plain
from apps.runs.launch import CANDIDATES_LIMIT
from apps.runs.refusals import TranscriptRefused
from apps.runs.steering import ITERATIONS_LIMIT

SCHEMA = 1
LARGEST = 32 * 1024 * 1024  # bytes; a run of 200 iterations with a talkative model stays below
_MOST_STEPS = 20_000
_MOST_REPAIRS = 20
_YEARS = range(2020, 2200)


@dataclass(frozen=True)
class ProblemTold:
    """The run's problem; its source is in the assignment."""

    title: str
    level: int | None
    category: str
    description: str


@dataclass(frozen=True)
class RunTold:
    """The run as its row had it. `device` is HOST/DEVICE where it was judged; times are ISO 8601 with their zone."""

    number: int
    coder: str
    device: str
    device_model: str
    started_at: str
    finished_at: str


@dataclass(frozen=True)
class StepTold:
    """One step of the journal (`apps.agents.journal.Record`) and when it was done."""

    key: str
    inputs: str
    result: Plain
    at: str

    @property
    def record(self) -> Record:
        """The journal's record of it."""
        return Record(self.key, self.inputs, self.result)


@dataclass(frozen=True)
class EventTold:
    """One event that the loop told, without its number and time, which are the log's own."""

    kind: str
    agent: str
    step: str
    iteration: int | None
    level: str
    text: str
    data: dict[str, Plain]


@dataclass(frozen=True)
class VersionTold:
    """One version: SHA-256 of its source, and the verdict and speed-up it is shown with."""

    number: int
    source: str
    verdict: str
    speedup: float | None


@dataclass(frozen=True)
class Transcript:
    """A whole run. `digest` is that of its events and versions (`digest_of`)."""

    schema: int
    pragma: str
    exported_at: str
    digest: str
    run: RunTold
    problem: ProblemTold
    assignment: Assignment
    steps: tuple[StepTold, ...]
    events: tuple[EventTold, ...]
    versions: tuple[VersionTold, ...]


def digest_of(events: Iterable[EventTold], versions: Iterable[VersionTold]) -> str:
    """SHA-256 of what a run told and of the versions it kept: the same for a run and for its exact replay."""
    told = [to_plain(list(events)), to_plain(list(versions))]
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def difference(
    recorded: tuple[Sequence[EventTold], Sequence[VersionTold]],
    replayed: tuple[Sequence[EventTold], Sequence[VersionTold]],
) -> str:
    """The first thing in which a replay differs from the record, for people; empty where there is none."""
    for place, (was, now) in enumerate(zip(recorded[0], replayed[0], strict=False), start=1):
        if was != now:
            return f"Event {place} of the record is {_said(was)}; the replay tells {_said(now)}" + _which(was, now)
    if len(recorded[0]) != len(replayed[0]):
        return f"The record has {len(recorded[0])} events, the replay {len(replayed[0])}."
    for before, after in zip(recorded[1], replayed[1], strict=False):
        if before != after:
            return f"v{before.number} of the record is not v{after.number} of the replay{_which(before, after)}"
    if len(recorded[1]) != len(replayed[1]):
        return f"The record has {len(recorded[1])} versions, the replay {len(replayed[1])}."
    return ""


def _said(event: EventTold) -> str:
    return f"{event.kind} of step {event.step or 'none'}, “{event.text[:120]}”"


def _which(was: Any, now: Any) -> str:
    fields = [name for name in was.__dataclass_fields__ if getattr(was, name) != getattr(now, name)]
    return f" (they differ in {', '.join(fields)})."


# --- writing and reading ----------------------------------------------------------------------------------------


def written(transcript: Transcript) -> str:
    """The file's text."""
    return json.dumps(to_plain(transcript), ensure_ascii=False, indent=1) + "\n"


def read(data: bytes) -> Transcript:
    """The transcript in a file. Raises `TranscriptRefused`, saying what is wrong with it and where."""
    if len(data) > LARGEST:
        raise TranscriptRefused(too_large(len(data)))
    try:
        plain = json.loads(data.decode("utf-8-sig"), parse_constant=_no_number)
        _check_envelope(plain)
        transcript = from_plain(Transcript, plain)
    except UnicodeDecodeError:
        raise TranscriptRefused("The file is not UTF-8 text, so it is no transcript.") from None
    except BadPlain as problem:
        raise TranscriptRefused(f"The file is no transcript of a run: {problem}.") from None
    except json.JSONDecodeError as problem:
        raise TranscriptRefused(f"The file is no JSON: {problem}.") from None
    except RecursionError:
        raise TranscriptRefused("The file is nested more deeply than any transcript.") from None
    except (ValueError, OverflowError) as problem:
        raise TranscriptRefused(f"The file holds a number that no transcript has: {problem}.") from None
    _check(transcript)
    return transcript


def too_large(size: int) -> str:
    """Why a file of that many bytes is not taken in."""
    return f"The file has {size / 2**20:.0f} MB; a transcript has at most {LARGEST // 2**20} MB."


def instant(text: str, name: str) -> datetime:
    """A time of the transcript. Raises `TranscriptRefused`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or at.year not in _YEARS:
        raise TranscriptRefused(f"{name} is no time with its zone: {text[:40]!r}.")
    return at


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


def _check_envelope(plain: Any) -> None:
    if not isinstance(plain, dict) or not {"schema", "steps", "assignment"} <= plain.keys():
        raise TranscriptRefused("The file is JSON, but no transcript of a run: export one from a run's page.")
    if plain["schema"] != SCHEMA:
        raise TranscriptRefused(
            f"The transcript has schema {str(plain['schema'])[:20]}; this PRAGMA reads schema {SCHEMA}. "
            "Export it again with this version, or read it with the one that wrote it."
        )


def _check(transcript: Transcript) -> None:
    assignment = transcript.assignment
    _within("iterations", assignment.iterations, 1, ITERATIONS_LIMIT)
    _within("candidates", assignment.candidates, 1, CANDIDATES_LIMIT)
    _within("repairs", assignment.repairs, 0, _MOST_REPAIRS)
    _within("steps", len(transcript.steps), 1, _MOST_STEPS)
    _within("events", len(transcript.events), 1, 2 * _MOST_STEPS)
    _within("the run's number", transcript.run.number, 0, 2**62)
    if transcript.problem.level is not None:
        _within("the problem's level", transcript.problem.level, 0, 99)
    if len({step.key for step in transcript.steps}) != len(transcript.steps):
        raise TranscriptRefused("The transcript holds a step twice.")
    if len(transcript.run.coder) > 120:
        raise TranscriptRefused("The coder's name is longer than 120 characters.")
    for name, text in (("started_at", transcript.run.started_at), ("finished_at", transcript.run.finished_at)):
        instant(text, name)
    instant(transcript.exported_at, "exported_at")
    if digest_of(transcript.events, transcript.versions) != transcript.digest:
        raise TranscriptRefused(
            "The file was altered after its export: its digest is not that of its events and versions. Export it again."
        )


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise TranscriptRefused(f"The transcript's {name} must lie between {low} and {high}, not at {str(value)[:20]}.")
