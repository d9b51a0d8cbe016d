"""Launching from the page: what is known shows before, what can't be judged is said, the run opens after."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from apps.runs.models import Problem, Run
from tests.pages import sources


def test_a_problem_is_chosen_and_its_run_opens(page: Page, world: dict[str, Any]) -> None:
    page.goto("/launch/")
    page.locator("#problem").select_option("softsign")
    known = page.locator("#known")
    expect(known).to_contain_text("can be judged")
    expect(known).to_contain_text("24.0 MiB")
    expect(page.locator("#set-BATCH")).to_have_value("4096")
    page.locator("#iterations").fill("3")
    expect(page.locator("#command")).to_contain_text("--iterations 3")
    page.get_by_text("both, as twins").click()
    expect(known).to_contain_text("Two runs are launched")
    page.get_by_role("button", name="Launch both").click()
    page.wait_for_url("**/runs/*/")
    run = Run.objects.latest("id").twin_of
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {run.pk}")
    assert (run.iterations, run.profile, run.twin.profile) == (3, True, False)


def test_a_pasted_text_is_read_as_it_is_typed_and_what_is_missing_is_named(page: Page) -> None:
    page.goto("/launch/?how=paste")
    source = page.locator("#source")
    source.fill("from torch import nn\n\n\nclass Model(nn.Module):\n    pass\n")
    expect(page.locator("#known").get_by_role("alert")).to_contain_text("no forward")
    source.fill(sources.SOFTSIGN.replace("BATCH = 4096", "BATCH = 512"))
    expect(page.locator("#known")).to_contain_text("reads as a problem")
    expect(page.locator("#set-BATCH")).to_have_value("512")
    page.get_by_role("button", name="Take it in").click()
    page.wait_for_url("**/launch/?*problem=soft-sign*")
    expect(page.locator("#known")).to_contain_text("a host is looking")
    assert Problem.objects.latest("id").source.count("BATCH = 512") == 1


def test_an_uploaded_file_lands_in_the_text(page: Page, tmp_path: Any) -> None:
    path = tmp_path / "mine.py"
    path.write_text(sources.LAYER_NORM)
    page.goto("/launch/?how=paste")
    page.locator("#file").set_input_files(path)
    expect(page.locator("#source")).to_have_value(sources.LAYER_NORM)
    expect(page.locator("#known")).to_contain_text("reads as a problem")


def test_bad_numbers_launch_nothing_and_keep_what_was_typed(page: Page) -> None:
    before = Run.objects.count()
    page.goto("/launch/?problem=softsign&iterations=0")
    page.get_by_role("button", name="Launch", exact=True).click()
    errors = page.locator("#errors")
    expect(errors).to_contain_text("nothing was created")
    expect(errors).to_contain_text("greater than or equal to 1")
    expect(page.locator("#iterations")).to_have_value("0")
    assert Run.objects.count() == before
