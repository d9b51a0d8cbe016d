"""The journal in the database: nothing is paid for twice, and what a step led to is committed with its record.

The rules are those of `apps.agents.ports.Journal`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import transaction

from apps.agents.facts import Fact, ReplayEnded, StepBegan, StepKey
from apps.agents.journal import digest
from apps.agents.ports import Say, Step
from apps.kernels.plain import Plain, from_plain, to_plain
from apps.runs import claims, connections, drafts
from apps.runs.beat import Hold
from apps.runs.models import Draft, JournalEntry, Run
from apps.runs.recorder import Recorder

T = TypeVar("T")


class RunJournal:
    """The journal of one run, as one worker keeps it."""

    def __init__(self, hold: Hold, recorder: Recorder) -> None:
        self._hold = hold
        self._recorder = recorder
        self._run_id = hold.claim.run_id
        rows = JournalEntry.objects.filter(run_id=self._run_id).order_by("position")
        self._known = {row.key: row for row in rows}
        self._next = max((row.position for row in self._known.values()), default=-1) + 1
        self._lock = threading.RLock()  # steps done at the same time are recorded one after the other
        self._hand = threading.local()

    @property
    def doing(self) -> StepKey | None:
        """The step that the calling thread does now."""
        return getattr(self._hand, "key", None)

    def step(
        self,
        key: StepKey,
        inputs: Plain,
        kind: type[T],
        do: Callable[[Say], T],
        *,
        began: StepBegan | None = None,
        tell: Callable[[T], Sequence[Fact]] = lambda result: (),
    ) -> T:
        """See `apps.agents.ports.Journal.step`. Raises `ClaimLost` or `Leaving` where this worker must not go on."""
        (result,) = self.together([Step(key, inputs, kind, do, began, tell)], 1)
        return result

    def together(self, steps: Sequence[Step[T]], at_once: int) -> list[T]:
        """See `apps.agents.ports.Journal.together`. Raises as `step` does."""
        results = {step.key: from_plain(step.kind, known.result) for step in steps if (known := self._recorded(step))}
        undone = [step for step in steps if step.key not in results]
        if len(undone) == 1 or at_once == 1:
            results |= {step.key: self._done(step) for step in undone}
        elif undone:
            with ThreadPoolExecutor(min(at_once, len(undone)), thread_name_prefix=f"run {self._run_id}") as threads:
                going = [threads.submit(self._done_elsewhere, step) for step in undone]
            results |= {step.key: one.result() for step, one in zip(undone, going, strict=True)}
        return [results[step.key] for step in steps]

    def _recorded(self, step: Step[T]) -> JournalEntry | None:
        """What is recorded of a step that was done from the same inputs; from others, the replay ends here."""
        known = self._known.get(str(step.key))
        if known is None or known.inputs == digest(step.inputs):
            return known
        self._hold.check()
        self._end_replay(known.key)
        return None

    def _done(self, step: Step[T]) -> T:
        """Do the step and record it."""
        self._hold.check()
        name = str(step.key)
        if (began := step.began) is not None:
            self._write(lambda: self._recorder.record(name, [began]))
        self._hand.key = step.key
        plain = storable(to_plain(self._do(step.do, began)))
        result = from_plain(step.kind, plain)
        facts = step.tell(result)
        with self._lock:
            entry = JournalEntry(
                run_id=self._run_id, position=self._next, key=name, inputs=digest(step.inputs), result=plain
            )
            self._write(lambda: self._commit(entry, facts))
            self._known[name] = entry
            self._next += 1
        return result

    def _done_elsewhere(self, step: Step[T]) -> T:
        """The same in a thread that ends with it."""
        try:
            return self._done(step)
        finally:
            connections.drop()

    def _do(self, do: Callable[[Say], T], began: StepBegan | None) -> T:
        """The work, its text streaming into a draft."""
        if began is None:
            return do(lambda text: None)
        draft = drafts.writer.open(self._hold.claim, began)
        try:
            return do(draft.say)
        finally:
            drafts.writer.close(draft)

    def _commit(self, entry: JournalEntry, facts: Sequence[Fact]) -> None:
        if JournalEntry.objects.filter(run_id=self._run_id, key=entry.key, inputs=entry.inputs).exists():
            return  # the commit before this one went through, only its answer was lost
        entry.pk = None
        entry.save(force_insert=True)
        Draft.objects.filter(run_id=self._run_id, step=entry.key).delete()
        Run.objects.filter(pk=self._run_id).update(fruitless=0)
        self._recorder.record(entry.key, facts)

    def _end_replay(self, name: str) -> None:
        self._write(lambda: self._recorder.record(name, [ReplayEnded(name)]))
        first = self._known[name].position
        self._known = {key: row for key, row in self._known.items() if row.position < first}
        self._next = first

    def _write(self, write: Callable[[], None]) -> None:
        """Do `write` in one transaction with the run held, patient with a database that is away for a moment."""

        def once() -> None:
            with transaction.atomic():
                claims.hold(self._hold.claim)
                write()

        with self._lock:
            connections.patient(once, f"Run {self._run_id}", self._hold.wait)


def storable(plain: Plain) -> Plain:
    """Plain data as every database can keep it: through JSON, without NUL characters and halves of surrogate pairs."""
    text = json.dumps(_cleaned(plain))
    return json.loads(text)


def _cleaned(plain: Plain) -> Plain:
    if isinstance(plain, str):
        return plain.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(plain, dict):
        return {_cleaned(key): _cleaned(value) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_cleaned(item) for item in plain]
    return plain
