"""A run's row as the loop's assignment, pinned in the journal when the run first starts.

People may change a run's limits while it works; what the loop was handed at first stays what it was, or a resumed run
would be another one.
"""

from __future__ import annotations

from django.db import transaction

from apps.agents.journal import digest
from apps.agents.words import Assignment, Seed
from apps.hosts.models import Host
from apps.kernels.evaluation import Language, Policy
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport
from apps.kernels.plain import from_plain, to_plain
from apps.runs import claims
from apps.runs.claims import Claim
from apps.runs.journal import storable
from apps.runs.models import JournalEntry, Run
from apps.runs.refusals import Refused

KEY = "assignment"


def pinned(claim: Claim, run: Run) -> Assignment:
    """The run's assignment as its first worker recorded it."""
    known = JournalEntry.objects.filter(run_id=run.pk, key=KEY).first()
    if known is not None:
        return from_plain(Assignment, known.result)
    plain = storable(to_plain(_from_rows(run)))
    with transaction.atomic():
        claims.hold(claim)
        JournalEntry.objects.create(run_id=run.pk, position=0, key=KEY, inputs=digest(plain), result=plain)
    return from_plain(Assignment, plain)


def _from_rows(run: Run) -> Assignment:
    facts, host = run.sizing.facts, run.device.host
    if facts is None:
        raise Refused(
            f"Nothing is known of {run.problem} at these sizes any more. Have it looked at, and launch again."
        )
    return Assignment(
        problem=run.problem.source,
        facts=from_plain(ProblemFacts, facts),
        host=_report(host),
        language=Language(run.language),
        policy=Policy(run.policy),
        overrides=run.sizing.overrides,
        iterations=run.iterations,
        candidates=run.candidates,
        profile=run.profile,
        goal=run.goal,
        seconds=run.seconds_limit,
        money_usd=None if run.money_limit_usd is None else float(run.money_limit_usd),
        allow_weak_isolation=host.weak_isolation_allowed_by_id is not None,
        prompts=run.prompts,
        seeds=tuple(from_plain(Seed, seed) for seed in run.seeds),
    )


def _report(host: Host) -> HostReport:
    if host.facts is None:
        raise Refused(f"Host {host.name} has not reported what it is yet. Start its station, and launch again.")
    return host.facts
