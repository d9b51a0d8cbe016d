"""Compare: any number of versions, where they were measured, and a difference that is one on files of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.runs.models import Measurement, Run
from apps.runs.presentation.diffs import diff
from tests.pages import evaluations, factories

LINES = st.lists(st.sampled_from(["a", "b", "  x = 1", "  x = 2", "", "}", "<b>"]), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, LINES)
def test_a_difference_gives_back_both_sides_whatever_they_are(left: list[str], right: list[str]) -> None:
    made = diff("\n".join(left), "\n".join(right))
    lines = [line for stretch in made.stretches for line in stretch.lines]
    assert [line.left_number for line in lines if line.left_number] == list(
        range(1, len("\n".join(left).splitlines()) + 1)
    )
    assert [line.right_number for line in lines if line.right_number] == list(
        range(1, len("\n".join(right).splitlines()) + 1)
    )
    told = [line.right for line in lines if line.right_number]
    for mark, text in (("<mark>", ""), ("</mark>", ""), ("&lt;", "<"), ("&gt;", ">")):
        told = [one.replace(mark, text) for one in told]
    assert told == "\n".join(right).splitlines()
    assert made.same == ("\n".join(left).splitlines() == "\n".join(right).splitlines())


def test_one_changed_line_of_a_very_long_file_is_one_changed_line() -> None:
    lines = [f"x[{n}] = {n % 7};" for n in range(20_000)]
    made = diff("\n".join(lines), "\n".join([*lines[:9_000], "x = nothing;", *lines[9_001:]]))
    assert (made.added, made.removed) == (1, 1)
    assert sum(len(stretch.lines) for stretch in made.stretches if not stretch.folded) == 7


def test_what_differs_where_both_were_measured_is_named(ada: Client, world: dict[str, Any]) -> None:
    version = world["done"].versions.get(number=3)
    other = evaluations.correct(0.6)
    factories.measure(version, replace(other, environment={**other.environment, "compiler": "g++ 13.1.0"}))
    page = ada.get(f"/compare/?a={world['done'].pk}.3&b={world['done'].pk}.4").context["environments"]
    assert [(fact.name, fact.left, fact.right) for fact in page.differ] == [("compiler", "g++ 13.1.0", "g++ 12.2.0")]
    assert len(page.same) > 5


def test_what_was_measured_elsewhere_or_at_other_sizes_is_not_called_faster(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"]
    third, pair = run.versions.get(number=3), f"/compare/?a={run.pk}.3&b={run.pk}.4"
    assert "not comparable" not in ada.get(pair).context["verdict"]
    elsewhere = factories.DeviceFactory.create(host=factories.HostFactory.create(name="elsewhere"))
    Measurement.objects.filter(pk=third.measurement_id).update(device=elsewhere)
    assert "not comparable: they were measured on different devices" in ada.get(pair).context["verdict"]
    other = factories.SizingFactory.create(problem=run.problem, digest="1" * 64, overrides={"batch_size": 2})
    small = factories.RunFactory.create(sizing=other, device=run.device, owner=run.owner)
    factories.keep(small, 1, evaluations.correct(0.3), source="# small", summary="")
    told = ada.get(f"/compare/?a={small.pk}.1&b={run.pk}.4")
    assert "not comparable: they solve the problem at different sizes" in told.context["verdict"]
    assert "not comparable" in ada.get(f"/api/v1/compare/?a={small.pk}.1&b={run.pk}.4").json()["verdict"]


def test_a_way_of_looking_stays_while_sides_are_swapped(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"].pk
    for given_view, shown in (("", "split auto"), ("&view=split", "split"), ("&view=unified", "unified")):
        content = ada.get(f"/compare/?a={run}.3&b={run}.4{given_view}").content.decode()
        assert f'class="diff {shown} mono"' in content
        assert f'href="?a={run}.4&amp;b={run}.3{given_view.replace("&", "&amp;")}"' in content


def test_a_way_to_compare_leads_to_an_address_that_stays_the_same(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"].pk
    for against, left in (
        ("parent", f"{run}.2"),
        ("best", f"{run}.4"),
        ("accepted", "reference"),
        ("reference", "reference"),
    ):
        answer = ada.get(f"/compare/?b={run}.3&against={against}&view=unified")
        assert answer.status_code == 302
        assert sorted(answer["Location"].partition("?")[2].split("&")) == [f"a={left}", f"b={run}.3", "view=unified"]
    assert ada.get(f"/compare/?a={run}.99&b={run}.3").status_code == 404


def test_three_versions_stand_in_a_table_held_against_the_first(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"].pk
    page = ada.get(f"/compare/versions/?v={run}.1&v={run}.2,{run}.4&v=99.1&v={run}.1")
    assert [column.key for column in page.context["columns"]] == [f"{run}.1", f"{run}.2", f"{run}.4"]
    time = next(row for row in page.context["rows"] if row.label == "time")
    assert [cell.leads for cell in time.cells] == [False, False, True] and time.better == "less"
    assert time.cells[0].change == "" and time.cells[1].value == "–"
    assert (time.cells[2].tone, time.cells[2].beyond_noise) == ("good", True)
    assert page.context["columns"][1].against_first.endswith("incorrect.")


def test_a_version_of_another_problem_does_not_join_the_table(ada: Client, world: dict[str, Any]) -> None:
    other = Run.objects.filter(problem__slug="layer-norm").first()
    assert other is not None
    factories.keep(other, 1, evaluations.correct(0.5), source="x = 1", summary="")
    page = ada.get(f"/compare/versions/?v={world['done'].pk}.1&v={other.pk}.1")
    assert [column.key for column in page.context["columns"]] == [f"{world['done'].pk}.1"]
