"""What the tests of several rooms share: a database in a file, people, a host that is online, a problem that is ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from apps.hosts.models import Device, Host
from apps.kernels.facts import Constant, ProblemFacts, TensorFact
from apps.kernels.machine import Ceilings, DeviceReport, HostReport
from apps.kernels.plain import to_plain
from apps.people.models import Person, Role
from apps.runs.models import Problem, Run, Sizing, SizingState

PASSWORD = "a-long-password"
SOFTSIGN = '''"""Soft-sign over a batch."""

import torch
from torch import nn

BATCH = 16
DIM = 4096


class Model(nn.Module):
    def forward(self, x):
        return x / (1 + x.abs())


def get_inputs():
    return [torch.randn(BATCH, DIM)]


def get_init_inputs():
    return []
'''


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SQLite in a file, as in production: threads and processes then wait for each other as they do there."""
    default = django_settings.DATABASES["default"]
    if default["ENGINE"].endswith("sqlite3"):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        folder: Path = tmp_path_factory.mktemp("database")
        default.setdefault("TEST", {})["NAME"] = str(folder / f"{worker}.sqlite3")
        default["TEST"].setdefault("MIGRATE", True)


@pytest.fixture(scope="session", autouse=True)
def records_are_emptied_between_tests() -> Iterator[None]:
    """What the database keeps for good is in the way of tests that empty it: SQLite's triggers are set aside meanwhile.

    (PostgreSQL empties by TRUNCATE, which its triggers let pass.)
    """
    from django.db import connection
    from django.test import TransactionTestCase

    empty = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def emptied(case: Any) -> None:
        if connection.vendor != "sqlite":
            empty(case)
            return
        with connection.cursor() as cursor:
            kept = cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in kept:
                cursor.execute(f'DROP TRIGGER "{name}"')
        try:
            empty(case)
        finally:
            with connection.cursor() as cursor:
                for _, sql in kept:
                    cursor.execute(sql)

    TransactionTestCase._fixture_teardown = emptied  # type: ignore[attr-defined]
    yield
    TransactionTestCase._fixture_teardown = empty  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def quick_passwords(settings: Any) -> None:
    """Hashing passwords as slowly as production does would be most of a test's time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def no_broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither bell nor queue reaches for a broker, except in tests that start one of their own."""
    if "broker" in request.fixturenames or request.node.get_closest_marker("processes"):
        return
    from apps.hosts import bell as jobs_bell
    from apps.hosts import outgoing
    from apps.ledger import trials
    from apps.notices import telling
    from apps.runs import bell, queue

    monkeypatch.setattr(bell, "ring", lambda: None)
    monkeypatch.setattr(jobs_bell, "ring", lambda job_id: None)
    monkeypatch.setattr(outgoing, "_send", lambda *args, **options: False)
    monkeypatch.setattr(outgoing, "_broadcast", lambda *args, **options: None)
    monkeypatch.setattr(queue, "wake", lambda run_id: None)
    monkeypatch.setattr(trials, "_send", lambda number: None)
    monkeypatch.setattr(telling, "wake", lambda: None)


@pytest.fixture
def person(db: None) -> Person:
    """An engineer."""
    return Person.objects.create_user("ada", password=PASSWORD, first_name="Ada", last_name="Moss")


@pytest.fixture
def admin(db: None) -> Person:
    """An admin."""
    return Person.objects.create_user("root", password=PASSWORD, role=Role.ADMIN)


@pytest.fixture
def signed_in(client: Client, person: Person) -> Client:
    """A client with the engineer's session."""
    client.force_login(person)
    return client


def host_report() -> HostReport:
    """What the tests' host says of itself."""
    return HostReport(
        cpu_model="Test CPU",
        cores=2,
        vector_bits=256,
        memory_bytes=8 << 30,
        caches=(),
        devices=(DeviceReport("cpu", "cpu", "Test CPU", 8 << 30, ("cpp",)),),
        toolchains={"g++": "12.2"},
        torch="2.13.0",
        ceilings=Ceilings(),
        isolation=(),
        isolation_level="full",
        counters=False,
        counters_detail="no hardware counters in this virtual machine",
    )


def problem_facts() -> ProblemFacts:
    """What a host found of the soft-sign problem."""
    tensor = TensorFact("x", "input", "float32", (16, 4096), (4096, 1), 16 * 4096 * 4)
    return ProblemFacts(
        constants=(Constant("BATCH", 16, 6), Constant("DIM", 4096, 7)),
        inputs=(tensor,),
        outputs=(replace(tensor, name="out", kind="output"),),
        flops=3 * 16 * 4096,
        compulsory_bytes=2 * 16 * 4096 * 4,
        memory_bytes=64 << 20,
    )


@pytest.fixture
def host(db: None) -> Host:
    """A host whose station is heard all along, however long the machine takes for a test."""
    now = timezone.now()
    heard = now + timedelta(hours=1)
    return Host.objects.create(name="here", report=to_plain(host_report()), reported_at=now, seen_at=heard)


@pytest.fixture
def device(host: Host) -> Device:
    """Its CPU."""
    return Device.objects.create(
        host=host, name="cpu", kind="cpu", model="Test CPU", memory_bytes=8 << 30, languages=["cpp"]
    )


@pytest.fixture
def problem(db: None) -> Problem:
    """A problem whose facts at its own sizes are known."""
    from apps.runs import problems

    problem = Problem.objects.create(
        slug="soft-sign", title="Soft-sign", source=SOFTSIGN, digest=problems.digest_of(SOFTSIGN), level=1
    )
    sizing = problems.sizing_for(problem, {})
    Sizing.objects.filter(pk=sizing.pk).update(
        state=SizingState.READY, facts=to_plain(problem_facts()), checked_at=timezone.now(), job=None
    )
    return problem


@pytest.fixture
def make_run(problem: Problem, device: Device, person: Person) -> Iterator[Callable[..., Run]]:
    """Makes runs as Launch does, without waking a worker; keyword arguments set columns."""

    def make(**columns: Any) -> Run:
        given: dict[str, Any] = {"owner": person, "device": device, "iterations": 3}
        return Run.objects.create(problem=problem, sizing=problem.sizings.get(), **{**given, **columns})

    yield make
