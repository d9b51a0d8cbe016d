"""A team of every role, and a run whose versions were judged in full, or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from django.test import Client

from apps.hosts.models import Device
from apps.kernels.evaluation import Outcome, Tier, Verdict
from apps.people.models import Person, Role
from apps.reviews import accepting, proposing, votes
from apps.reviews.models import AcceptedKernel, Proposal
from apps.runs.models import Purpose, Run, Version
from tests.conftest import PASSWORD
from tests.pages import evaluations, factories, sources


@dataclass(frozen=True)
class Team:
    """One of each role, and a second reviewer."""

    viewer: Person
    engineer: Person
    reviewer: Person
    second: Person
    admin: Person


@pytest.fixture
def team(person: Person) -> Team:
    """The engineer is the tests' `person`, who owns the runs."""

    def member(name: str, role: Role) -> Person:
        return Person.objects.create_user(
            name, password=PASSWORD, role=role, first_name=name.capitalize(), email=f"{name}@x.y"
        )

    viewer, reviewer = member("vera", Role.VIEWER), member("remy", Role.REVIEWER)
    return Team(viewer, person, reviewer, member("sol", Role.REVIEWER), member("abe", Role.ADMIN))


def signed_in_as(person: Person) -> Client:
    """A browser of that person."""
    client = Client()
    client.force_login(person)
    return client


@dataclass(frozen=True)
class Judged:
    """A run with versions in every state that matters to a review."""

    run: Run
    quick: Version
    faster: Version
    better: Version
    noise: Version
    slower: Version
    wrong: Version


def in_full(milliseconds: float, outcome: Outcome | None = None) -> evaluations.Evaluation:
    """A full evaluation of a correct candidate."""
    found = evaluations.correct(milliseconds, Tier.FULL)
    return found if outcome is None else replace(found, timing=replace(found.timing, outcome=outcome))


@pytest.fixture
def judged(make_run) -> Judged:  # type: ignore[no-untyped-def]
    """v1 judged in the loop only, v2 faster, v3 faster still, v4 within noise, v5 slower, v6 wrong in full."""
    run = make_run(state="finished")
    texts = [sources.SOFTSIGN_VERSIONS[2] + f"\n# {number}\n" for number in range(1, 7)]
    texts[2] = sources.SOFTSIGN_VERSIONS[3]
    wrong = replace(evaluations.wrong(), tier=Tier.FULL)
    found = (
        evaluations.correct(0.7),
        in_full(0.611),
        in_full(0.431),
        in_full(1.94, Outcome.WITHIN_NOISE),
        in_full(2.4, Outcome.SLOWER),
        wrong,
    )
    made: list[Version] = []
    for number, (text, evaluation) in enumerate(zip(texts, found, strict=True), 1):
        parent = made[-1] if made else None
        made.append(factories.keep(run, number, evaluation, source=text, summary=f"attempt {number}", parent=parent))
    assert made[5].measurement is not None
    assert made[5].measurement.verdict == Verdict.INCORRECT
    return Judged(run, *made)


@pytest.fixture
def proposal(team: Team, judged: Judged) -> Proposal:
    """v2, proposed by the engineer, a reviewer asked."""
    return proposing.propose(team.engineer, judged.faster, note="one pass over memory", asked=[team.reviewer])


@pytest.fixture
def kernel(team: Team, proposal: Proposal) -> AcceptedKernel:
    """v2, accepted."""
    votes.vote(proposal.pk, team.reviewer, "approve", proposal.digest)
    return accepting.accept(proposal.pk, team.reviewer, proposal.digest)


@pytest.fixture
def other_device(device: Device) -> Device:
    """A device of another host."""
    return factories.DeviceFactory.create(host=factories.HostFactory.create(name="there"))


def measured_again(version: Version, evaluation: evaluations.Evaluation, device: Device | None = None) -> None:
    """Another measurement, as a host would bring it."""
    row = factories.measure(version, evaluation, Purpose.AGAIN)
    if device is not None:
        type(row).objects.filter(pk=row.pk).update(device=device)
