"""The loop's facts as rows: versions, measurements, advices, the run's own fields, and its log.

The only place that turns facts into rows. `record` is called inside the journal's transaction, with the run's row held;
all of it is committed with the journal's entry, or none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import singledispatchmethod
from typing import Any

from django.db.models import F
from django.utils import timezone

from apps.agents import facts, words
from apps.agents.facts import Fact
from apps.agents.words import Agent, Attempt, Usage
from apps.hosts.models import Job
from apps.kernels.evaluation import Evaluation, Verdict
from apps.kernels.plain import Plain, to_plain
from apps.runs import bill, events, wording
from apps.runs.claims import Claim
from apps.runs.events import Entry
from apps.runs.measurements import measurement_of, version_data
from apps.runs.models import AdviceRow, Event, Hint, JournalEntry, Level, Measurement, Purpose, Run, RunState, Version

_STATE_AFTER = {
    words.Ending.FINISHED: RunState.FINISHED,
    words.Ending.STOPPED: RunState.STOPPED,
    words.Ending.FAILED: RunState.FAILED,
}


class Recorder:
    """Records the facts of one run's worker."""

    def __init__(self, claim: Claim, device_id: int) -> None:
        self._claim = claim
        self._run_id = claim.run_id
        self._device_id = device_id
        self._step = ""
        self._entries: list[Entry] = []
        self._changes: dict[str, Any] = {}
        self._at: datetime | None = None
        self._going: dict[str, str] = {}  # the titles of steps that have begun and not ended

    def record(self, step: str, facts: Sequence[Fact], at: datetime | None = None) -> None:
        """Write what follows from `facts`, all told by the step of that key. Raises `ClaimLost`.

        `at` is when it happened, for a record that is gone through again; else it happens now.
        """
        self._step, self._entries, self._changes, self._at = step, [], {}, at
        for fact in facts:
            self._take(fact)
        if self._entries:
            events.append(self._run_id, self._entries, claim=self._claim.id, at=at)
        if self._changes:
            Run.objects.filter(pk=self._run_id).update(**self._changes)

    # --- one method a fact

    @singledispatchmethod
    def _take(self, fact: Fact) -> None:
        raise TypeError(f"The recorder knows no fact {type(fact).__name__}.")

    @_take.register
    def _step_began(self, fact: facts.StepBegan) -> None:
        self._going[fact.step] = wording.line(fact.title, 120)
        self._changes |= {"doing": self._doing(), "iteration": fact.iteration}
        self._say("step_began", fact.title, fact.agent, fact.iteration, {"title": fact.title})

    @_take.register
    def _step_ended(self, fact: facts.StepEnded) -> None:
        self._spend(fact.usage)
        self._going.pop(fact.step, None)
        self._changes["doing"] = self._doing()
        data = {"text": fact.text, "usage": to_plain(fact.usage)}
        self._say("step_ended", wording.line(fact.summary, 600), fact.agent, fact.iteration, data)

    @_take.register
    def _reference_timed(self, fact: facts.ReferenceTimed) -> None:
        timing = fact.evaluation.timing
        self._compiled(fact.evaluation)
        data: dict[str, Plain] = {
            "reference_ms": timing.reference.median_ms if timing.reference else None,
            "reference_ci95_ms": list(timing.reference.ci95_ms) if timing.reference else None,
            "compiled_ms": timing.compiled_reference.median_ms if timing.compiled_reference else None,
            "compiled_speedup": self._changes.get("compiled_speedup"),
        }
        self._say("reference_timed", wording.reference_timed(fact.evaluation), Agent.PROFILER, None, data)

    @_take.register
    def _version_kept(self, fact: facts.VersionKept) -> None:
        attempt = fact.attempt
        version = self._version(attempt)
        measurement = self._measure(version, Purpose.LOOP, attempt.evaluation)
        version.measurement = measurement
        version.save(update_fields=["measurement"])
        fastest = self._is_fastest(version, attempt.evaluation)
        text = wording.version_kept(attempt.number, attempt.evaluation, fastest=fastest)
        data = version_data(version, measurement, attempt.parent) | {"is_best": fastest}
        level = Level.INFO if attempt.evaluation.verdict is Verdict.CORRECT else Level.WARNING
        self._say("version_kept", text, Agent.VERIFIER, attempt.iteration, data, level)

    @_take.register
    def _version_judged(self, fact: facts.VersionJudged) -> None:
        version = Version.objects.select_related("parent").get(run_id=self._run_id, number=fact.number)
        measurement = self._measure(version, Purpose(fact.purpose), fact.evaluation)
        correct = fact.evaluation.verdict is Verdict.CORRECT
        if fact.rival_of is None or not correct:
            version.measurement = measurement
            version.save(update_fields=["measurement"])
        best = Run.objects.filter(pk=self._run_id, best=version).exists()
        if best and fact.rival_of is None:
            self._show_speed_of(measurement)
        if fact.purpose == "final":
            self._compiled(fact.evaluation)
        text = wording.version_judged(fact.number, fact.purpose, fact.evaluation, fact.rival_of)
        parent = version.parent.number if version.parent else None
        data = version_data(version, measurement, parent)
        data |= {"purpose": fact.purpose, "rival_of": fact.rival_of, "is_best": best}
        self._say(
            "version_judged", text, Agent.VERIFIER, version.iteration, data, Level.INFO if correct else Level.WARNING
        )

    @_take.register
    def _best_changed(self, fact: facts.BestChanged) -> None:
        version = Version.objects.select_related("measurement").get(run_id=self._run_id, number=fact.number)
        self._changes["best"] = version
        if version.measurement is not None:
            self._show_speed_of(version.measurement)
        text = f"v{fact.number} is the best now: {wording.times(fact.speedup)}"
        data: dict[str, Plain] = {"number": fact.number, "speedup": fact.speedup}
        self._say("best_changed", text, Agent.CONDUCTOR, version.iteration, data)

    @_take.register
    def _advice_given(self, fact: facts.AdviceGiven) -> None:
        advice = to_plain(fact.advice)
        number, at = fact.advice.number, self._at or timezone.now()
        AdviceRow.objects.create(run_id=self._run_id, number=number, advice=advice, at=at)
        self._say("advice_given", wording.advice_given(fact.advice), Agent.CONDUCTOR, None, {"advice": advice})

    @_take.register
    def _advice_held(self, fact: facts.AdviceHeld) -> None:
        holding = to_plain(fact.holding)
        rows = AdviceRow.objects.filter(run_id=self._run_id, number=fact.holding.advice)
        rows.update(holding=holding, held=fact.holding.held)
        self._say("advice_held", wording.advice_held(fact.holding), Agent.CONDUCTOR, None, {"holding": holding})

    @_take.register
    def _hint_taken(self, fact: facts.HintTaken) -> None:
        told = Hint.objects.filter(run_id=self._run_id, text=fact.text, taken=False).order_by("pk").first()
        if told is not None:
            Hint.objects.filter(pk=told.pk).update(taken=True)
        text = f"The hint joins the next prompt: {wording.line(fact.text)}"
        self._say("hint_taken", text, Agent.RUN, None, {"text": fact.text})

    @_take.register
    def _candidate_dropped(self, fact: facts.CandidateDropped) -> None:
        unwritten = fact.unwritten
        data = {name: value for name, value in to_plain(unwritten).items() if name != "iteration"}
        text = wording.candidate_dropped(fact)
        self._say("candidate_dropped", text, Agent.CODER, unwritten.iteration, data, Level.WARNING)

    @_take.register
    def _replay_ended(self, fact: facts.ReplayEnded) -> None:
        self._going = {}
        versions, advices = self._forget_from(fact.step)
        data: dict[str, Plain] = {"versions_from": versions, "advices_from": advices}
        text = f"From step {fact.step} on the run differs from its record and is done anew"
        self._say("replay_ended", text, Agent.RUN, None, data, Level.WARNING)

    @_take.register
    def _run_ended(self, fact: facts.RunEnded) -> None:
        numbers = [number for number in (fact.result, fact.attempt) if number is not None]
        versions = {
            version.number: version
            for version in Version.objects.filter(run_id=self._run_id, number__in=numbers).select_related("measurement")
        }
        result = versions.get(fact.result) if fact.result is not None else None
        self._changes |= {"speedup": fact.speedup, "speedup_low": None, "speedup_high": None}
        if result is not None and result.measurement is not None:
            self._show_speed_of(result.measurement)
        self._changes |= bill.of(self._run_id) or {}
        self._changes |= {
            "state": _STATE_AFTER[fact.ending],
            "reason": fact.reason,
            "result": result,
            "best": versions.get(fact.attempt) if fact.attempt is not None else None,
            "outcome": fact.outcome.value if fact.outcome else "",
            "finished_at": self._at or timezone.now(),
            "doing": "",
            "claim": None,
            "claim_expires_at": None,
        }
        level = Level.ERROR if fact.ending is words.Ending.FAILED else Level.INFO
        self._say("run_ended", wording.run_ended(fact), Agent.RUN, None, to_plain(fact), level)

    # --- parts

    def _doing(self) -> str:
        """What the run's row says it is doing: the step that began last of those going on."""
        return next(reversed(self._going.values()), "")

    def _say(
        self,
        kind: str,
        text: str,
        agent: Agent,
        iteration: int | None,
        data: dict[str, Plain],
        level: Level = Level.INFO,
    ) -> None:
        self._entries.append(Entry(kind, text, agent, self._step, iteration, level, data))

    def _version(self, attempt: Attempt) -> Version:
        parent = None
        if attempt.parent is not None:
            parent = Version.objects.filter(run_id=self._run_id, number=attempt.parent).first()
        return Version.objects.create(
            run_id=self._run_id,
            number=attempt.number,
            parent=parent,
            iteration=attempt.iteration,
            slot=attempt.slot,
            repair=attempt.repair,
            author=attempt.author[:120],
            advice=attempt.advice,
            source=attempt.writing.source,
            digest=hashlib.sha256(attempt.writing.source.encode()).hexdigest(),
            summary=attempt.writing.summary,
            plan=attempt.writing.plan,
        )

    def _measure(self, version: Version, purpose: Purpose, evaluation: Evaluation) -> Measurement:
        job = Job.objects.filter(key__startswith=f"run:{self._run_id}:{self._step}-").order_by("-pk").first()
        measurement = measurement_of(version, self._device_id, purpose, evaluation, job)
        measurement.at = self._at or timezone.now()
        measurement.save()
        return measurement

    def _is_fastest(self, version: Version, evaluation: Evaluation) -> bool:
        if evaluation.speedup is None:
            return False
        others = Version.objects.filter(run_id=self._run_id, measurement__verdict=Verdict.CORRECT.value)
        return not others.exclude(pk=version.pk).filter(measurement__speedup__gte=evaluation.speedup).exists()

    def _show_speed_of(self, measurement: Measurement) -> None:
        self._changes |= {
            "speedup": measurement.speedup,
            "speedup_low": measurement.speedup_low,
            "speedup_high": measurement.speedup_high,
        }

    def _compiled(self, evaluation: Evaluation) -> None:
        reference, compiled = evaluation.timing.reference, evaluation.timing.compiled_reference
        if reference is not None and compiled is not None and compiled.median_ms > 0:
            self._changes["compiled_speedup"] = reference.median_ms / compiled.median_ms

    def _spend(self, usage: Usage) -> None:
        """What a step took; the ledger's word where the run's calls are in it."""
        if usage.model is None:
            return
        billed = bill.of(self._run_id)
        if billed is not None:
            self._changes |= billed
            return
        sums = {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}
        if usage.cost_usd is not None:
            sums["cost_usd"] = Decimal(str(round(usage.cost_usd, 6)))  # type: ignore[assignment]
        elif usage.model is not None:
            self._changes["cost_unknown"] = True
        if usage.estimated:
            self._changes["cost_estimated"] = True
        for name, more in sums.items():
            if more:
                self._changes[name] = self._changes.get(name, F(name)) + more

    def _forget_from(self, step: str) -> tuple[int | None, int | None]:
        """Drop the record from `step` on with the versions and advices that came of it; their first numbers."""
        journal = JournalEntry.objects.filter(run_id=self._run_id)
        first = journal.get(key=step).position
        keys = list(journal.filter(position__gte=first).values_list("key", flat=True))
        told = Event.objects.filter(run_id=self._run_id, step__in=keys)
        versions = [event.data["number"] for event in told.filter(kind="version_kept")]
        advices = [event.data["advice"]["number"] for event in told.filter(kind="advice_given")]
        if versions:
            Version.objects.filter(run_id=self._run_id, number__gte=min(versions)).delete()
        if advices:
            AdviceRow.objects.filter(run_id=self._run_id, number__gte=min(advices)).delete()
        journal.filter(position__gte=first).delete()
        return min(versions, default=None), min(advices, default=None)
