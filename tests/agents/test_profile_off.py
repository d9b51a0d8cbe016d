"""With the profile off, Coder and Conductor see verdicts and times only: the paper's baseline."""

from __future__ import annotations

from apps.agents.conductor import without_profile
from apps.agents.words import Assignment
from apps.kernels.evaluation import Profile
from tests.agents.doubles import World, an_assignment

WRITES = {(1, 0): "correct 1.2", (2, 0): "correct 1.5"}


def seen_with(assignment: Assignment) -> tuple[World, list[Profile]]:
    world = World(dict(WRITES))
    world.run(assignment)
    attempts = [*world.seen[-1].attempts, *world.briefs[-1].history.attempts]
    return world, [attempt.evaluation.profile for attempt in attempts]


def test_the_profile_is_seen_when_it_is_on() -> None:
    _, profiles = seen_with(an_assignment(iterations=2))
    assert profiles and all(profile.metrics for profile in profiles)


def test_no_metric_reaches_coder_or_conductor_when_it_is_off() -> None:
    world, profiles = seen_with(an_assignment(iterations=2, profile=False))
    assert profiles == [Profile()] * len(profiles) and profiles
    assert world.seen[-1].attempts[0].evaluation.timing.candidate is not None


def test_a_host_that_reports_a_profile_all_the_same_is_not_heard() -> None:
    world = World(dict(WRITES))
    world.run(an_assignment(iterations=2))
    bare = without_profile(world.seen[-1])
    assert all(attempt.evaluation.profile == Profile() for attempt in bare.attempts)
    assert bare.reference is not None and bare.reference.profile == Profile()
