"""Models, their trials and calls for the pages' tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.ledger import limits
from apps.ledger.models import Call, KeySource, LanguageModel, Limits, Outcome, PersonLimit, Trial, TrialState
from apps.people.models import Person
from apps.runs.models import Run


def models(run: Run, person: Person, colleague: Person) -> None:
    """Two models, one tried in vain; limits; calls of a run in every way they end."""
    sonnet = LanguageModel.objects.create(
        name="sonnet", model_id="anthropic/claude-sonnet-4-5", key_source=KeySource.VARIABLE,
        key_variable="ANTHROPIC_API_KEY", listed={"context_tokens": 200000, "answer_tokens": 64000,
                                                  "usd_per_million_in": 3.0, "usd_per_million_out": 15.0},
    )  # fmt: skip
    own = LanguageModel.objects.create(
        name="our-qwen", model_id="openai/qwen3-coder", api_base="http://models.internal:8000/v1", enabled=False
    )
    why = "Address: nothing answers at http://models.internal:8000/v1. Check the address, and that the server runs."
    _tried(sonnet, person, "", "It answers: ready Context 200,000 tokens, answers up to 32,000.", 1.4)
    _tried(own, person, "address", why, 0.1)
    Limits.objects.create(pk=1, team_month_usd=500, person_month_usd=50, run_usd=5)
    PersonLimit.objects.create(person=colleague, month_usd=20)
    _called(sonnet, run, colleague, cost_usd="0.0412", counted_usd="0.0412", tokens_cached=2048, tokens_reasoning=900)
    _called(
        sonnet, run, colleague, outcome=Outcome.FAILED, fault="busy", failure="Quota: it takes no more questions now."
    )
    _called(sonnet, run, colleague, number=2, retries=1, cost_usd="21", counted_usd="21", estimated=True)
    _called(own, run, person, agent="conductor", step="1.0.advise.0")
    _called(sonnet, run, colleague, outcome=Outcome.OPEN, reserved_usd="0.51", counted_usd="0.51", tokens_in=None)


def _tried(model: LanguageModel, by: Person, fault: str, message: str, seconds: float) -> None:
    Trial.objects.create(
        model=model, asked_by=by, state=TrialState.DONE, fault=fault, message=message, seconds=seconds, ended_at=timezone.now()
    )  # fmt: skip


def _called(model: LanguageModel, run: Run, person: Person, **more: Any) -> None:
    now = timezone.now()
    given: dict[str, Any] = {
        "agent": "coder", "step": "1.0.write.0", "iteration": 1, "slot": 0, "attempt": 0, "outcome": Outcome.ANSWERED,
        "tokens_in": 5120, "tokens_out": 1840, "seconds": 21.5, "ended_at": now,
    }  # fmt: skip
    month = limits.month_of(now)
    if more.get("outcome") == Outcome.OPEN:
        given |= {"tokens_out": None, "seconds": None, "ended_at": None}
    until = now + timedelta(minutes=20)
    Call.objects.create(model=model, run=run.pk, person=person, month=month, expires_at=until, **given | more)
