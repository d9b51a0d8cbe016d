"""kill -9 of the agents worker at each step of a run with a model: what the model is asked is what it was asked undisturbed.

As many runs side by side as there are steps, each held at a step of its own, so that one kill meets every step. Between an
answer's arrival and its journalling, and only there, a question is asked twice, and both are counted.
"""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from apps.hosts.models import Device
from apps.ledger import accounts, spending
from apps.ledger.models import Call, Outcome
from apps.people.models import Person
from apps.runs import claims
from apps.runs.models import Event, JournalEntry, Problem, Run, Version
from tests.agents_models.server import ModelServer
from tests.ledger.world import by_what_is_asked, judge
from tests.patience import until
from tests.processes.agents_workers import Workers, launched, model_server, over, scripted_model
from tests.processes.holding import At, holding
from tests.runs.scripted import silence
from tests.runs.station import Station

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="runs are held by triggers of SQLite"),
    pytest.mark.django_db(transaction=True),
]

THREADS = 40  # more than there are runs
RESULT = ["state", "reason", "result__number", "speedup", "iteration"]


def test_killed_at_any_step_a_run_asks_what_it_would_have_asked(
    workers: Workers, problem: Problem, device: Device, person: Person
) -> None:
    with model_server() as server, Station(judge), holding() as held:
        scripted_model(server)
        server.script.play_by(by_what_is_asked)
        workers.start(THREADS)
        calm = launched(problem, person, iterations=2)
        workers.wake(calm)
        over(calm, workers)
        questions, steps = asked(server), keys(calm)
        answered = [steps.index(step) for step in calls(calm).values_list("step", flat=True)]
        assert len(answered) == sum(questions.values()) == len(questions) == 3

        # What stands first in the journal is the assignment: no step, and kept before there is a loop that could wait.
        places = [(number, At.WORK) for number in range(1, len(steps))]
        places += [(number, at) for number in answered for at in (At.ACCOUNT, At.JOURNAL)]
        # The longest ways first, so that all are held within the time that a worker waits for its database.
        runs = {place: launched(problem, person, iterations=2) for place in sorted(places, reverse=True)}
        assert len(runs) < THREADS
        server.script.play_by(by_what_is_asked)
        for (number, at), run in runs.items():
            held.add(run, number, at)
            workers.wake(run)
        everybody = {run.pk for run in runs.values()}
        until(
            lambda: held.in_log(workers.said()) >= everybody,
            f"not every run comes to the step where it is held: {workers.said()[-1500:]}",
            within=100,
        )
        workers.end(signal.SIGKILL)
        for (number, at), run in runs.items():
            assert keys(run) == steps[:number], f"held before {at} of {number}"
        journalled = entries(runs)

        for run in runs.values():
            silence(run)
        assert accounts.release_lost(claims.living(accounts.open_claims())) == len(answered)
        held.release()
        workers.start(THREADS)
        for run in runs.values():
            workers.wake(run)
        for run in runs.values():
            over(run, workers)

        assert asked(server) == Counter({one: times * len(runs) + 2 for one, times in questions.items()})
        assert journalled <= entries(runs), "a step that was journalled was done again"
        for place, run in runs.items():
            assert outcome(run) == outcome(calm), place
            assert run.attempt == 2
            ended = Event.objects.filter(run=run, kind="step_ended").values_list("step", flat=True)
            assert len(ended) == len(set(ended)), f"a step ended twice: {place}"
            assert_counted(run, calm, place[1])


def asked(server: ModelServer) -> Counter[str]:
    """What the server was asked, and how often: each request's whole body."""
    return Counter(json.dumps(one.body, sort_keys=True) for one in server.script.requests)


def calls(run: Run) -> Any:
    """The run's calls as the ledger has them."""
    return Call.objects.filter(run=run.pk).order_by("pk")


def keys(run: Run) -> list[str]:
    """The steps that are journalled, in order."""
    return list(JournalEntry.objects.filter(run=run).order_by("position").values_list("key", flat=True))


def entries(runs: dict[tuple[int, At], Run]) -> set[tuple[Any, ...]]:
    """Everything that tells one journalling of a step from another."""
    kept = JournalEntry.objects.filter(run__in=runs.values())
    return set(kept.values_list("pk", "run", "position", "key", "inputs", "at"))


def outcome(run: Run) -> tuple[object, ...]:
    """What the run came to and by which versions; its steps."""
    versions = Version.objects.filter(run=run).order_by("number").values_list("number", "source", "author")
    return Run.objects.filter(pk=run.pk).values(*RESULT).get(), list(versions), keys(run)


def assert_counted(run: Run, calm: Run, at: At) -> None:
    """Each call is in the run's account once, one that was made again twice: with what it took, where that is known."""
    spent, undisturbed = spending.of_run(run.pk), spending.of_run(calm.pk)
    again = 0 if at is At.WORK else 1
    assert spent.calls == undisturbed.calls + again
    assert spent.lost == (1 if at is At.ACCOUNT else 0)
    known = again if at is At.JOURNAL else 0
    each = undisturbed.tokens_in // undisturbed.calls, undisturbed.tokens_out // undisturbed.calls
    assert (spent.tokens_in, spent.tokens_out) == (
        undisturbed.tokens_in + known * each[0],
        undisturbed.tokens_out + known * each[1],
    )
    assert spent.usd == undisturbed.usd + known * undisturbed.usd / undisturbed.calls
    assert (run.tokens_in, run.tokens_out, run.cost_usd) == (spent.tokens_in, spent.tokens_out, spent.usd)
    assert not calls(run).exclude(outcome__in=[Outcome.ANSWERED, Outcome.LOST]).exists()
