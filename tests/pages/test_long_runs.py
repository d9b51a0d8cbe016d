"""A run with very many versions, advices and log lines shows a stretch of each, with a way to the rest."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from apps.runs.models import Event, Measurement, Run, Version
from apps.runs.presentation import lineage, picking
from apps.runs.presentation.log import PER_PAGE, LogQuery, log_page
from apps.runs.presentation.measured import Measured
from apps.runs.presentation.timeline import STRETCH, timeline
from tests.pages import factories

LINES = 2 * PER_PAGE + 30


def chain(length: int) -> list[Measured]:
    """Versions each of which came of the one before it."""
    made = []
    for number in range(1, length + 1):
        version = Version(pk=number, run_id=1, number=number, iteration=number, parent_id=number - 1 or None)
        version.measurement = Measurement(version=version, verdict="correct", speedup=1.0 + number % 50, evaluation={})
        made.append(Measured(version, version.measurement))
    return made


@pytest.fixture
def run(db: None) -> Run:
    run = factories.RunFactory.create(state="finished", last_seq=LINES, iteration=90)
    Event.objects.bulk_create(Event(run=run, seq=seq, kind="log", text=f"line {seq}") for seq in range(1, LINES + 1))
    return run


def test_the_log_is_paged_by_the_numbers_of_its_lines(run: Run) -> None:
    newest = log_page(run, LogQuery())
    assert (newest.lines[0].seq, newest.lines[-1].seq, newest.later) == (LINES - PER_PAGE + 1, LINES, None)
    before = log_page(run, LogQuery(last=newest.earlier))
    assert (before.lines[-1].seq, before.later) == (newest.lines[0].seq - 1, newest.lines[0].seq)
    first = log_page(run, LogQuery(last=before.earlier))
    assert (first.lines[0].seq, first.earlier) == (1, None)
    from_there = log_page(run, LogQuery(first=before.lines[0].seq))
    assert [line.seq for line in from_there.lines] == [line.seq for line in before.lines]
    assert (from_there.earlier, from_there.later) == (before.earlier, before.later)
    found = log_page(run, LogQuery(search=f"line {LINES}"))
    assert [line.seq for line in found.lines] == [LINES] and found.earlier is found.later is None


def test_the_timeline_shows_the_newest_iterations_or_those_of_the_version_looked_at(run: Run) -> None:
    versions = chain(90)
    newest = timeline(run, versions)
    assert [one.number for one in newest.iterations] == list(range(91 - STRETCH, 91)) and newest.is_newest
    earlier = timeline(run, versions, newest.earlier)
    assert (earlier.iterations[-1].number, earlier.later) == (90 - STRETCH, 90)
    looked_at = timeline(run, versions, looked_at=versions[6])
    assert 7 in [one.number for one in looked_at.iterations] and looked_at.iterations[0].number == 1
    assert looked_at.earlier is None and looked_at.later is not None


def test_a_short_run_shows_all_of_its_iterations(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(iteration=5)
    run.refresh_from_db()
    whole = timeline(run, chain(5))
    assert [one.number for one in whole.iterations] == [1, 2, 3, 4, 5] and whole.earlier is whole.later is None


def test_the_family_of_a_version_deep_in_a_long_chain() -> None:
    versions = chain(1500)
    found = lineage.lineage(versions, versions[1400].version)
    numbers = [one.measured.version.number for one in found.tree]
    assert numbers[0] == 1 and numbers[-2:] == [1401, 1402]
    assert found.left_out == 1500 - len(numbers) and max(one.indent for one in found.tree) == lineage.DEEPEST
    short = lineage.lineage(versions[: lineage.WHOLE], versions[3].version)
    assert len(short.tree) == lineage.WHOLE and short.left_out == 0


@pytest.fixture
def long_run(run: Run) -> Run:
    """A run of 500 versions, each of which came of the one before it."""
    made = Version.objects.bulk_create(
        Version(run=run, number=number, iteration=number, source="x", summary="tiles") for number in range(1, 501)
    )
    measured = Measurement.objects.bulk_create(
        Measurement(version=one, device=run.device, tier="quick", verdict="correct", speedup=1.5, evaluation={})
        for one in made
    )
    for one, parent, measurement in zip(made, [None, *made], measured, strict=False):
        one.parent, one.measurement = parent, measurement
    Version.objects.bulk_update(made, ["parent", "measurement"])
    return run


def test_the_tree_on_the_page_of_a_run_is_that_of_the_version_looked_at(long_run: Run) -> None:
    client = Client()
    client.force_login(long_run.owner)
    answer = client.get(f"/runs/{long_run.pk}/part/work/?tab=lineage&v=400")
    found = [int(number) for number in re.findall(r"data-row-link>v(\d+)\b", answer.content.decode())]
    assert found[0] == 1 and found[-2:] == [400, 401] and len(found) < lineage.WHOLE
    assert (
        "485 other versions" in answer.content.decode()
        and "?tab=lineage&amp;v=401#part-work" in answer.content.decode()
    )
    assert len(answer.content) < 40_000
    Version.objects.filter(run=long_run, number__gt=4).update(parent=None)
    Version.objects.filter(run=long_run, number__gt=4).delete()
    page = client.get(f"/runs/{long_run.pk}/part/work/?tab=lineage").content.decode()
    assert re.findall(r"data-row-link>v(\d+)\b", page) == ["1", "2", "3", "4"]
    assert 'hx-trigger="run-work from:body"' in page  # as every structured part: fetched again when a version is judged


def test_a_menu_names_those_that_led_the_newest_and_the_neighbours() -> None:
    versions = [one.version for one in chain(500)]
    named = [version.number for version in picking.worth_naming(versions, [200])]
    assert {49, 199, 200, 201, 500} <= set(named) and len(named) < 2 * picking.MOST
    assert picking.worth_naming(versions[:10]) == versions[:10]


def test_advices_are_folded_and_the_older_ones_lie_behind_a_link(run: Run) -> None:
    for number in range(1, 26):
        factories.advise(run, number, number, number % 2 == 0, 1.4)
    client = Client()
    client.force_login(run.owner)
    page = client.get(f"/runs/{run.pk}/part/advice/").content.decode()
    assert "25 advices, 12 held, 13 did not" in page and "Advice 25" in page and "Advice 15<" not in page
    older = client.get(f"/runs/{run.pk}/part/advice/?advice=15").content.decode()
    assert "Advice 15" in older and "newest" in older
