"""What runs stand on: people, hosts with their devices, problems at their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from apps.hosts.models import Device, Host
from apps.kernels.plain import to_plain
from apps.people.models import Person, Role
from apps.runs.models import Origin, Problem, Sizing, SizingState
from bench.large.size import Size
from tests.pages import evaluations, sources
from tests.pages.factories import digest

_ROLES = (Role.ADMIN, Role.REVIEWER, Role.ENGINEER, Role.ENGINEER, Role.ENGINEER, Role.REVIEWER, Role.VIEWER)
_CATEGORIES = ("element-wise", "norm", "reduction", "convolution", "matrix product", "attention", "loss", "pooling")


@dataclass(frozen=True)
class World:
    """The first person is an admin; the first device's host is online. `sizings` are at least one a problem."""

    now: datetime
    people: list[Person]
    devices: list[Device]
    problems: list[Problem]
    sizings: list[Sizing]


def build(size: Size) -> World:
    """All of it: 60 people, 16 hosts, 250 problems at 10,000 runs."""
    now = timezone.now()
    problems = Problem.objects.bulk_create(_problem(number) for number in range(size.share(250, 4)))
    facts = to_plain(evaluations.facts())
    sizings = Sizing.objects.bulk_create(
        Sizing(
            problem=problem, overrides=overrides, digest=digest(str(overrides)), state=SizingState.READY, facts=facts
        )
        for problem in problems
        for overrides in ({}, {"BATCH": 1024})
    )
    return World(now, _people(size), _devices(size, now), problems, sizings)


def _people(size: Size) -> list[Person]:
    password = make_password("a-long-password")
    return Person.objects.bulk_create(
        Person(
            username=f"member{number}",
            first_name="Ada",
            last_name=f"Moss {number}",
            email=f"member{number}@example.org",
            role=_ROLES[number % len(_ROLES)] if number else Role.ADMIN,
            password=password,
        )
        for number in range(size.share(60, 6))
    )


def _devices(size: Size, now: datetime) -> list[Device]:
    report = to_plain(evaluations.host_report(True))
    hosts = Host.objects.bulk_create(
        Host(
            name=f"epyc-{number:02d}",
            station=f"station-{number}",
            report=report,
            reported_at=now,
            seen_at=now + timedelta(hours=1) if number % 4 < 3 else now - timedelta(days=1),
            enabled=number % 5 < 4,
        )
        for number in range(size.share(16, 3))
    )
    return Device.objects.bulk_create(
        Device(host=host, name="cpu", kind="cpu", model="AMD EPYC 9R14", memory_bytes=16 << 30, languages=["cpp"])
        for host in hosts
    )


def _problem(number: int) -> Problem:
    source = f"{sources.SOFTSIGN}\n# problem {number}\n"
    category = _CATEGORIES[number % len(_CATEGORIES)]
    return Problem(
        slug=f"problem-{number}",
        title=f"{category.capitalize()} {number}",
        source=source,
        digest=digest(source),
        level=1 + number % 3,
        category=category,
        description=f"A {category} over a large batch, number {number} of its kind.",
        origin=Origin.STARTER if number % 3 else Origin.PASTED,
    )
