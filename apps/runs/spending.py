"""What a run spends: its purse while it asks a model, and what it has come to.

The accounts are `apps.ledger`'s; here a call gets its place in the run.
"""

from __future__ import annotations

from django.db import transaction

from apps.agents.gateway.purse import Call
from apps.agents.ports import Agent
from apps.ledger import accounts, spending
from apps.ledger.accounts import Place
from apps.ledger.limits import Account
from apps.ledger.models import LanguageModel
from apps.ledger.spending import Spent
from apps.runs import claims, connections
from apps.runs.beat import Hold
from apps.runs.journal import RunJournal
from apps.runs.models import Run

_AGENTS = {"write": Agent.CODER, "repair": Agent.CODER, "advise": Agent.CONDUCTOR}


class RunPurse:
    """`apps.agents.gateway.purse.Purse` of one run, as its worker keeps it."""

    def __init__(self, hold: Hold, model: LanguageModel, journal: RunJournal) -> None:
        self._hold = hold
        self._model = model
        self._journal = journal
        self._step = ""
        self._number = 0
        self._retries = 0

    def reserve(self, model: str, purpose: str, largest_cost_usd: float | None) -> str:
        """See `Purse.reserve`. The run's limits are those of its row now: people may have changed them.

        Raises `ClaimLost` where another worker has the run: what that one has set aside stays.
        """
        place = self._place()

        def once() -> int:
            with transaction.atomic():
                claims.hold(self._hold.claim)
                run = Run.objects.select_related("owner").get(pk=self._hold.claim.run_id)
                return accounts.reserve(self._model, account_of(run), place, largest_cost_usd, self._hold.claim.id)

        return str(connections.patient(once, f"Run {self._hold.claim.run_id}", self._hold.wait))

    def settle(self, token: str, call: Call) -> None:
        """See `Purse.settle`. Also for a worker that has lost its claim: the money is spent."""
        self._retries = self._retries + 1 if call.fault else 0
        connections.patient(lambda: accounts.settle(int(token), call), f"Run {self._hold.claim.run_id}")

    def _place(self) -> Place:
        key = self._journal.doing
        step = str(key) if key is not None else ""
        if step != self._step:
            self._step, self._number, self._retries = step, 0, 0
        self._number += 1
        if key is None:
            return Place(Agent.RUN.value, number=self._number, retries=self._retries)
        return Place(
            agent=_AGENTS.get(key.role, Agent.RUN).value,
            step=step,
            iteration=key.iteration,
            slot=key.slot,
            attempt=key.attempt,
            number=self._number,
            retries=self._retries,
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


def spent_by(run: Run) -> Spent:
    """All a run's calls have come to; with `usd`, `unpriced` and `lost` what an accepted gain of it has cost."""
    return spending.of_run(run.pk)
