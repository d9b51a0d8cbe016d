"""Watching a run: text streams into the lanes, versions appear, and nothing is missed or doubled over a restart."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from apps.agents.words import Agent
from apps.runs import events
from apps.runs.events import Entry
from apps.runs.models import Draft, Run, RunState
from tests.browser.conftest import sign_in
from tests.browser.serving import served
from tests.pages import evaluations, factories, sources

USAGE = {"seconds": 1.5, "model": None, "tokens_in": None, "tokens_out": None, "cost_usd": None}


def tell(run: Run, kind: str, line: str, /, agent: Agent = Agent.CODER, step: str = "5.0.coder.0", **data: Any) -> None:
    events.append(run.pk, [Entry(kind, line, agent, step, 5, data=data)])


def test_reasoning_streams_into_its_lane_and_folds_when_it_ends(page: Page, world: dict[str, Any]) -> None:
    run = world["live"]
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("#link")).to_have_text("live")
    lane = page.locator('[data-lane="coder"]')
    tell(run, "step_began", "writes v5", title="writes v5")
    expect(lane.locator("[data-doing]")).to_have_text("writes v5")
    Draft.objects.create(run=run, step="5.0.coder.0", agent="coder", iteration=5, text="Unroll by four,")
    expect(lane.locator("[data-draft]")).to_contain_text("Unroll by four,")
    Draft.objects.filter(run=run, step="5.0.coder.0").update(text="Unroll by four, keep the tail <b>scalar</b>.")
    expect(lane.locator("[data-draft] [data-text]")).to_have_text("Unroll by four, keep the tail <b>scalar</b>.")
    Draft.objects.filter(run=run, step="5.0.coder.0").delete()
    tell(run, "step_ended", "Unrolled by four.", text="Unroll by four,\nkeep the tail scalar.", usage=USAGE)
    expect(lane.locator("[data-draft]")).to_have_count(0)
    expect(lane.locator(".say").last).to_contain_text("Unrolled by four.")
    expect(lane.locator(".say").last.locator("summary")).to_have_text("all it said · 2 lines")


def test_candidates_that_are_written_at_once_stream_each_into_a_draft_of_its_own(
    page: Page, world: dict[str, Any]
) -> None:
    run = world["live"]
    Run.objects.filter(pk=run.pk).update(candidates=3)
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("#link")).to_have_text("live")
    lane = page.locator('[data-lane="coder"]')
    texts = {
        "5.0.write.0": "Plan: keep a tile of a row in the first-level cache.\n\n```python\nimport ctypes\n",
        "5.1.write.0": "Plan: stream the output past the caches.\n",
        "5.2.write.0": "Plan: halve the divisions with one reciprocal of a product.\n",
    }
    for step, text in texts.items():
        tell(run, "step_began", "Writing from v4", step=step, title="Writing from v4")
        Draft.objects.create(run=run, step=step, agent="coder", iteration=5, text=text)
    for step, text in texts.items():
        draft = lane.locator(f'[data-draft="{step}"]')
        expect(draft.locator("[data-text]")).to_contain_text(text.splitlines()[0])
    assert len(set(lane.locator("[data-draft] .who span").all_text_contents())) == 3, "drafts can't be told apart"
    Draft.objects.filter(run=run, step="5.1.write.0").delete()
    tell(run, "step_ended", "Streams.", step="5.1.write.0", text=texts["5.1.write.0"], usage=USAGE)
    expect(lane.locator('[data-draft="5.1.write.0"]')).to_have_count(0)
    expect(lane.locator("[data-draft]")).to_have_count(2)


def test_a_new_version_appears_everywhere_it_belongs(page: Page, world: dict[str, Any]) -> None:
    run = world["live"]
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("#link")).to_have_text("live")
    kept = factories.keep(
        run, 5, evaluations.correct(0.40), source=sources.SOFTSIGN_VERSIONS[3] + "\n# v5\n", summary="Better."
    )
    Run.objects.filter(pk=run.pk).update(best=kept, speedup=4.875, iteration=5)
    tell(run, "version_kept", "v5 correct, 4.88×, best so far", Agent.VERIFIER, number=5)
    expect(page.locator("#part-progress .it").last).to_contain_text("v5 · 4.88×")
    expect(page.locator("#part-head .big")).to_have_text("4.88×")
    expect(page.locator("#part-work")).to_contain_text("→ v5")
    expect(page.locator("#news")).to_contain_text("v5 correct, 4.88×")
    expect(page).to_have_title(f"4.88× · Run {run.pk}")


def test_a_hint_is_given_and_the_run_is_stopped_from_its_page(page: Page, world: dict[str, Any]) -> None:
    run = world["live"]
    page.goto(f"/runs/{run.pk}/")
    page.keyboard.press("s")
    page.get_by_label("Hint").fill("The input is always aligned.")
    page.get_by_role("button", name="Give the hint").click()
    expect(page.locator("#messages")).to_contain_text("joins the next prompt")
    assert run.hints.get().text == "The input is always aligned."
    page.get_by_role("button", name="Stop, keep best").click()
    expect(page.locator("#part-head .chip").first).to_contain_text("stopping")
    assert Run.objects.get(pk=run.pk).state == RunState.STOPPING


def test_after_a_restart_of_the_server_the_page_goes_on_without_gap_or_double(
    context: BrowserContext, world: dict[str, Any], base: str
) -> None:
    run = world["live"]
    with served() as address:
        port = int(address.rsplit(":", 1)[1])
        sign_in(context, address, world["person"])
        page = context.new_page()
        page.goto(f"{address}/runs/{run.pk}/")
        expect(page.locator("#link")).to_have_text("live")
        said = page.locator('[data-lane="coder"] .say')
        before = said.count()
        tell(run, "step_ended", "Before the restart.", text="", usage=USAGE)
        expect(said).to_have_count(before + 1)
    expect(page.locator("#link")).to_have_text("reconnecting")
    for number in range(3):
        tell(run, "step_ended", f"While it was away, {number}.", step=f"6.0.coder.{number}", text="", usage=USAGE)
    with served(port):
        expect(page.locator("#link")).to_have_text("live")
        expect(said).to_have_count(before + 4)
        tell(run, "step_ended", "After it.", step="7.0.coder.0", text="", usage=USAGE)
        expect(said).to_have_count(before + 5)
    assert [text.split("\n")[0] for text in said.locator("p").all_inner_texts()][-5:] == [
        "Before the restart.",
        "While it was away, 0.",
        "While it was away, 1.",
        "While it was away, 2.",
        "After it.",
    ]


def test_the_list_of_runs_follows_what_changes(page: Page, world: dict[str, Any]) -> None:
    run = world["live"]
    page.goto("/")
    expect(page.locator("#link")).to_have_text("live")
    page.locator(f'input[name="run"][value="{run.pk}"]').check()
    Run.objects.filter(pk=run.pk).update(state=RunState.PAUSED)
    tell(run, "pause_asked", "Ada pauses the run", Agent.RUN, step="")
    row = page.locator("tr[data-row]").first
    expect(row).to_contain_text("paused")
    expect(row.locator("input")).to_be_checked()
