"""What a run spends: its purse while it asks a model.

The accounts are `apps.ledger`'s; here a call gets its place in the run.
"""

from __future__ import annotations

import threading

from django.db import transaction

from apps.agents.gateway.purse import Call, Largest, OverLimit
from apps.agents.words import Agent
from apps.ledger import accounts
from apps.ledger.accounts import Place
from apps.ledger.limits import Account
from apps.ledger.models import LanguageModel
from apps.runs import bill, claims, connections
from apps.runs.beat import Hold
from apps.runs.control import Heed
from apps.runs.journal import RunJournal
from apps.runs.models import Run

_LOOK_EVERY = 0.25  # seconds between looks for room that other calls of the run give back
_AGENTS = {"write": Agent.CODER, "repair": Agent.CODER, "advise": Agent.CONDUCTOR, "diagnose": Agent.VERIFIER}


class _Asking(threading.local):
    """Which call of which step this thread is at: steps done at the same time have a thread each."""

    step = ""
    number = 0
    retries = 0


class RunPurse:
    """`apps.agents.gateway.purse.Purse` of one run, as its worker keeps it."""

    def __init__(self, hold: Hold, model: LanguageModel, journal: RunJournal) -> None:
        self._hold = hold
        self._model = model
        self._journal = journal
        self._heed = Heed(hold)
        self._asking = _Asking()

    def reserve(self, model: str, purpose: str, largest: Largest) -> str:
        """See `Purse.reserve`. The run's limits are those of its row now: people may have changed them.

        A call that lacks only what others of this run have set aside waits for them. Raises `ClaimLost` where another worker
        has the run (what that one has set aside stays), and `Stopped` where it is to end meanwhile.
        """
        place = self._place()

        def once() -> int:
            with transaction.atomic():
                claims.hold(self._hold.claim)
                run = Run.objects.select_related("owner").get(pk=self._hold.claim.run_id)
                return accounts.reserve(self._model, account_of(run), place, largest, self._hold.claim.id)

        while True:
            try:
                return str(connections.patient(once, f"Run {self._hold.claim.run_id}", self._hold.wait))
            except OverLimit as over:
                if not over.may_pass:
                    raise
            self._heed()
            self._hold.wait(_LOOK_EVERY)

    def settle(self, token: str, call: Call) -> None:
        """See `Purse.settle`. Also for a worker that has lost its claim: the money is spent."""
        self._asking.retries = self._asking.retries + 1 if call.fault else 0
        run = self._hold.claim.run_id

        def once() -> None:
            with transaction.atomic():
                # the run's row first, as `reserve` takes it; and so no older sum is written over ours
                Run.objects.select_for_update().get(pk=run)
                accounts.settle(int(token), call)
                Run.objects.filter(pk=run).update(**bill.of(run) or {})

        connections.patient(once, f"Run {run}")

    def _place(self) -> Place:
        key = self._journal.doing
        step = str(key) if key is not None else ""
        asking = self._asking
        if step != asking.step:
            asking.step, asking.number, asking.retries = step, 0, 0
        asking.number += 1
        if key is None:
            return Place(Agent.RUN.value, number=asking.number, retries=asking.retries)
        return Place(
            agent=_AGENTS.get(key.role, Agent.RUN).value,
            step=step,
            iteration=key.iteration,
            slot=key.slot,
            attempt=key.attempt,
            number=asking.number,
            retries=asking.retries,
        )


def account_of(run: Run) -> Account:
    """Whose money a run's calls spend."""
    return Account(
        run=run.pk,
        person=run.owner_id,
        person_name=str(run.owner or ""),
        run_limit_usd=run.money_limit_usd,
        run_limit_tokens=run.tokens_limit,
    )
