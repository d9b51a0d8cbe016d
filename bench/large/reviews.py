"""Proposals with their revisions, votes and comments, and the kernels that came of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from apps.reviews.models import (
    AcceptedKernel,
    Check,
    Comment,
    Decision,
    DecisionKind,
    KernelState,
    Proposal,
    ProposalState,
    Revision,
    Standing,
)
from apps.runs.models import Measurement, Run, Version
from bench.large.runs import Built
from bench.large.size import Size
from bench.large.world import World

_SAID = "Does the tail read beyond the end where the width is no multiple of 16? Say so in a comment, or mask it. " * 3


@dataclass(frozen=True)
class Reviewed:
    """A proposal that is open and much spoken of, and a kernel in use."""

    talked: int
    kernel: int


def build(size: Size, world: World, runs: Built) -> Reviewed:
    """All of it: 800 proposals with 12,000 comments, 500 kernels at 10,000 runs. The first is talked of most."""
    wanted = size.share(800, 8)
    chosen = [runs.versions, *range(1, runs.usual)][:wanted]
    best = Run.objects.filter(pk__in=chosen, best__isnull=False).select_related("best__measurement", "sizing", "owner")
    found = sorted(best, key=lambda run: -run.pk)
    proposals = Proposal.objects.bulk_create(_proposal(world, run, n) for n, run in enumerate(found))
    measurements = _full([run.best for run in found if run.best], world)
    revisions = Revision.objects.bulk_create(
        Revision(proposal=one, number=1, version=one.version, digest=one.digest, measurement=row, by=one.by)
        for one, row in zip(proposals, measurements, strict=True)
    )
    _spoken(world, proposals, revisions)
    return Reviewed(proposals[0].pk, _kernels(world, proposals, measurements))


def _proposal(world: World, run: Run, number: int) -> Proposal:
    assert run.best is not None and run.owner is not None
    closed = number % 4
    return Proposal(
        problem_id=run.problem_id,
        sizing_id=run.sizing_id,
        device_id=run.device_id,
        language=run.language,
        version=run.best,
        digest=run.best.digest,
        note="Streams its stores; twice as fast as what we use.",
        state=ProposalState.ACCEPTED if closed else ProposalState.OPEN,
        standing=Standing.APPROVED if closed else Standing.WAITING,
        by=run.owner,
        moved_at=world.now - timedelta(minutes=number),
    )


def _full(versions: list[Version], world: World) -> list[Measurement]:
    """What each was proposed on; its latest measurement counts as one in full."""
    rows = [version.measurement for version in versions if version.measurement]
    Measurement.objects.filter(pk__in=[row.pk for row in rows]).update(tier="full", outcome="faster")
    return rows


def _spoken(world: World, proposals: list[Proposal], revisions: list[Revision]) -> None:
    people = world.people
    decisions: list[Any] = []
    comments: list[Any] = []
    for place, (proposal, revision) in enumerate(zip(proposals, revisions, strict=True)):
        for kind in (DecisionKind.PROPOSED, DecisionKind.COMMENTED, DecisionKind.APPROVED, DecisionKind.ACCEPTED):
            if kind is DecisionKind.PROPOSED or not proposal.is_open or (place == 0 and kind is DecisionKind.COMMENTED):
                by = people[(place + 1) % len(people)]
                decisions.append(
                    Decision(proposal=proposal, kind=kind, revision=1, digest=proposal.digest, by=by, data={})
                )
        for line in range(min(200, 10 + len(proposals) // 4) if place == 0 else 15):
            comments.append(
                Comment(
                    proposal=proposal,
                    revision=revision,
                    first_line=1 + line % 40,
                    last_line=1 + line % 40,
                    text=_SAID,
                    by=people[line % len(people)],
                    published_at=world.now,
                )
            )
    Decision.objects.bulk_create(decisions, batch_size=1000)
    Comment.objects.bulk_create(comments, batch_size=1000)
    through = Proposal.asked.through
    through.objects.bulk_create(
        through(proposal_id=proposal.pk, person_id=people[n % 3].pk) for n, proposal in enumerate(proposals)
    )


def _kernels(world: World, proposals: list[Proposal], measurements: list[Measurement]) -> int:
    """One in use for each problem, sizes, device and language; the earlier ones are superseded. One in use's key."""
    taken: set[tuple[Any, ...]] = set()
    kernels = []
    for proposal, row in zip(proposals, measurements, strict=True):
        if proposal.is_open:
            continue
        slot = (proposal.problem_id, proposal.sizing_id, proposal.device_id, proposal.language)
        kernels.append(
            AcceptedKernel(
                proposal=proposal,
                problem_id=slot[0],
                sizing_id=slot[1],
                device_id=slot[2],
                language=slot[3],
                version=proposal.version,
                digest=proposal.digest,
                measurement=row,
                state=KernelState.SUPERSEDED if slot in taken else KernelState.CURRENT,
                by=proposal.by,
                environment={"torch": "2.13.0+cpu", "compiler": "g++ 12.2.0"},
            )
        )
        taken.add(slot)
    made = AcceptedKernel.objects.bulk_create(kernels)
    rows = Measurement.objects.bulk_create(
        Measurement(version_id=one.version_id, device_id=one.device_id, purpose="again", tier="full", verdict="correct",
                    outcome="faster", speedup=4.4, speedup_low=4.3, speedup_high=4.5,
                    evaluation=measurements[0].evaluation)
        for one in made
    )  # fmt: skip
    Check.objects.bulk_create(
        Check(kernel=one, measurement=row, held=True) for one, row in zip(made, rows, strict=True)
    )
    return made[0].pk
