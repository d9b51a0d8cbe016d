"""A problem's best: at the same sizes, judged in full, on the device that measured it."""

from __future__ import annotations

from typing import Any

from django.test import Client

from apps.kernels.evaluation import Tier
from apps.runs.models import Purpose, Run
from tests.pages import evaluations, factories


def test_a_gain_at_other_sizes_is_not_the_gain_of_the_problem(ada: Client, world: dict[str, Any]) -> None:
    done = world["done"]
    sizes = factories.SizingFactory.create(problem=done.problem, digest="1" * 64, overrides={"batch_size": 2})
    small = factories.RunFactory.create(sizing=sizes, device=done.device, owner=done.owner)
    version = factories.keep(small, 1, evaluations.correct(0.2), source="# small", summary="")
    row = factories.measure(version, evaluations.correct(0.2, Tier.FULL), Purpose.FINAL)
    Run.objects.filter(pk=small.pk).update(best=version, result=version, speedup=row.speedup, state="finished")
    listed = {one.problem.slug: one.best for one in ada.get("/problems/").context["rows"]}
    assert row.speedup is not None and row.speedup > done.speedup
    assert listed["softsign"] == done.speedup
    page = ada.get("/problems/softsign/")
    assert [(one.sizes, one.measured.version.run_id) for one in page.context["champions"]] == [
        ("", done.pk),
        ("batch_size=2", small.pk),
    ]
    assert "batch_size=2" in page.content.decode()


def test_what_a_run_has_found_so_far_is_no_result_yet(ada: Client, world: dict[str, Any]) -> None:
    Run.objects.filter(pk=world["live"].pk).update(speedup=99.0, speedup_low=98.0, speedup_high=99.5)
    listed = {one.problem.slug: one.best for one in ada.get("/problems/").context["rows"]}
    assert listed["softsign"] == world["done"].speedup
