"""What a person typed is there again: after a refusal, after the session ended, after the page was read anew, after a wait."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from apps.reviews.models import Comment, Proposal
from apps.runs.models import Problem, Run, Sizing
from tests.browser.conftest import sign_in
from tests.pages import sources
from tests.reviews import scenes

BACK = "What you had typed is back"


def review_of(world: dict[str, Any]) -> Proposal:
    proposal: Proposal = scenes.reviewed(world)["review"]
    return proposal


def test_a_word_that_was_never_sent_is_there_after_a_reload_and_gone_when_it_was_sent(
    page: Page, world: dict[str, Any]
) -> None:
    review = review_of(world)
    page.goto(review.get_absolute_url())
    said = page.get_by_label("Say what decided you")
    said.fill("The tail is the loop's own.")
    page.reload()
    expect(said).to_have_value("The tail is the loop's own.")
    expect(page.get_by_text(BACK)).to_be_visible()
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#messages")).to_contain_text("You commented")
    expect(said).to_have_value("")
    page.reload()
    expect(page.get_by_text(BACK)).to_have_count(0)


def test_a_refused_comment_on_a_removed_line_comes_back_with_its_composer(page: Page, world: dict[str, Any]) -> None:
    review = review_of(world)
    page.goto(f"{review.get_absolute_url()}?base=reference")
    page.locator(".no[id^=O] .plus").first.focus()
    page.keyboard.press("Enter")
    composer = page.locator(".composer")
    expect(composer).to_contain_text("removed lines")
    composer.get_by_label("Last line").fill("9999")
    composer.get_by_label("Comment", exact=True).fill("Why did this go?")
    composer.get_by_role("button", name="Send now").click()
    expect(page.locator("#messages")).to_contain_text("Lines go from 1 to")
    composer = page.locator(".composer")
    expect(composer.get_by_label("Comment", exact=True)).to_have_value("Why did this go?")
    first = composer.get_by_label("First line").input_value()
    composer.get_by_label("Last line").fill(first)
    composer.get_by_role("button", name="Send now").click()
    thread = page.locator(".note.of-old", has_text="Why did this go?")
    expect(thread).to_contain_text(f"on removed line {first} of the reference")
    kept = Comment.objects.get(text="Why did this go?")
    assert (kept.side, kept.base, kept.first_line) == ("old", None, int(first))


def test_what_was_sent_after_the_session_ended_is_there_after_signing_in(
    page: Page, base: str, world: dict[str, Any]
) -> None:
    review = review_of(world)
    page.goto(review.get_absolute_url())
    page.get_by_label("Say what decided you").fill("Right, and clean.")
    page.evaluate("document.getElementById('pulse')?.remove()")
    Session.objects.all().delete()
    page.get_by_role("button", name="Comment", exact=True).click()
    page.wait_for_url("**/sign-in/**")
    sign_in(page.context, base, world["person"])
    page.reload()
    page.wait_for_url(f"**{review.get_absolute_url()}")
    expect(page.get_by_label("Say what decided you")).to_have_value("Right, and clean.")
    page.get_by_role("button", name="Throw it away").click()
    expect(page.get_by_label("Say what decided you")).to_have_value("")
    page.reload()
    expect(page.get_by_text(BACK)).to_have_count(0)


def test_a_setting_that_is_refused_is_typed_once(page: Page) -> None:
    page.goto("/settings/notifications/")
    field = page.get_by_label("Address")
    field.fill("ftp://hooks.example/pragma")
    field.press("Enter")
    expect(page.locator("#messages .bad")).to_be_visible()
    expect(page.get_by_label("Address")).to_have_value("ftp://hooks.example/pragma")


def test_signing_out_forgets_what_was_typed(page: Page, world: dict[str, Any]) -> None:
    page.goto(review_of(world).get_absolute_url())
    page.get_by_label("Say what decided you").fill("mine")
    page.locator("header summary").last.click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/**")
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('typed:'))") == []


def test_a_launch_waits_for_its_problem_s_facts_and_goes_on_by_itself(page: Page, world: dict[str, Any]) -> None:
    own = sources.SOFTSIGN_VERSIONS[2]
    page.goto("/launch/?how=paste")
    page.locator("#source").fill(sources.SOFTSIGN.replace("BATCH = 4096", "BATCH = 512"))
    page.locator("#own-candidate summary").click()
    page.locator("#own").fill(own)
    page.locator("#notes").fill("mine, not the coder's")
    expect(page.locator("#known")).to_contain_text("reads as a problem")
    page.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url("**/launch/?problem=*&draft=*")
    expect(page.locator("#own")).to_have_value(own)
    expect(page.get_by_label("Launch by itself")).to_be_checked()
    page.reload()
    expect(page.locator("#own")).to_have_value(own)
    expect(page.locator("#notes")).to_have_value("mine, not the coder's")
    runs = Run.objects.count()
    facts = world["live"].sizing.facts
    Sizing.objects.filter(problem=Problem.objects.latest("id")).update(state="ready", facts=facts)
    page.wait_for_url("**/runs/*/")
    run = Run.objects.latest("id")
    assert Run.objects.count() == runs + 1
    assert [seed["source"] for seed in run.seeds] == [own]
