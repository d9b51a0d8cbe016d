"""Addresses of lines and ranges on both sides of a diff, and the keys of a review: each that `?` lists works."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.reviews.models import Proposal
from tests.reviews import scenes


@pytest.fixture
def review(world: dict[str, Any]) -> Proposal:
    proposal: Proposal = scenes.reviewed(world)["review"]
    return proposal


def marked(page: Page) -> list[str]:
    ids: list[str] = page.evaluate("[...document.querySelectorAll('.marked')].map((one) => one.id)")
    return ids


def in_view(page: Page, selector: str) -> bool:
    shown: bool = page.evaluate(
        "(s) => { const box = document.querySelector(s).getBoundingClientRect();"
        " return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; }",
        selector,
    )
    return shown


def test_an_address_marks_a_range_and_brings_it_into_view(page: Page, world: dict[str, Any]) -> None:
    run = world["done"].pk
    page.goto(f"/runs/{run}/v4/#L20-L23")
    expect(page.locator("#L20.marked")).to_be_visible()
    assert marked(page) == ["L20", "L21", "L22", "L23"]
    assert in_view(page, "#L20")
    page.goto(f"/runs/{run}/v4/#L3")
    expect(page.locator("#L3.marked")).to_be_visible()


def test_shift_and_a_click_make_the_range_that_the_address_keeps(page: Page, world: dict[str, Any]) -> None:
    page.goto(f"/runs/{world['done'].pk}/v4/")
    page.get_by_label("Line 5", exact=True).click()
    page.get_by_label("Line 2", exact=True).click(modifiers=["Shift"])
    assert page.url.endswith("#L2-L5")
    page.reload()
    expect(page.locator("#L2.marked")).to_be_visible()
    assert marked(page) == ["L2", "L3", "L4", "L5"]


@pytest.mark.parametrize("view", ["split", "unified"])
def test_both_sides_of_a_comparison_have_addresses(page: Page, world: dict[str, Any], view: str) -> None:
    run = world["done"].pk
    page.goto(f"/compare/?a={run}.1&b={run}.4&view={view}")
    old = page.locator(".diff [id^=O]:visible").last.get_attribute("id")
    new = page.locator(".diff [id^=L]:visible").last.get_attribute("id")
    for line in (old, new):
        page.goto(f"/compare/?a={run}.1&b={run}.4&view={view}#{line}")
        expect(page.locator(f"#{line}.marked")).to_be_visible()
        assert in_view(page, f"#{line}")


def test_a_line_that_is_folded_is_unfolded_by_its_address(page: Page, review: Proposal) -> None:
    page.goto(review.get_absolute_url())
    folded = page.evaluate("document.querySelector('details.stretch:not([open]) .line[id]')?.id ?? ''")
    if not folded:
        pytest.skip("nothing is folded in this diff")
    page.goto(f"{review.get_absolute_url()}?again=1#{folded}")
    expect(page.locator(f"#{folded}")).to_be_visible()


def test_a_comment_begun_within_a_range_is_about_all_of_it(page: Page, review: Proposal) -> None:
    page.goto(f"{review.get_absolute_url()}?view=code#L12-L14")
    line = page.locator("#L13")
    line.hover()
    line.get_by_label("Comment on line 13").click()
    composer = page.locator(".composer")
    expect(composer.get_by_label("First line")).to_have_value("12")
    expect(composer.get_by_label("Last line")).to_have_value("14")
    composer.get_by_label("Comment", exact=True).fill("All three.")
    composer.get_by_role("button", name="Send now").click()
    expect(page.locator(".note", has_text="All three.")).to_contain_text("on lines 12–14")


def test_changes_are_walked_and_commented_on_without_a_mouse(page: Page, review: Proposal) -> None:
    page.goto(review.get_absolute_url())
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.closest('.line')?.id ?? document.activeElement.outerHTML")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('.line')?.id ?? document.activeElement.outerHTML") == first
    page.keyboard.press("Enter")
    field = page.locator(".composer textarea")
    expect(field).to_be_focused()
    page.keyboard.type("j k n m ?")
    expect(field).to_have_value("j k n m ?")
    expect(page.locator("dialog[open]")).to_have_count(0)


def listed(page: Page) -> list[str]:
    page.keyboard.press("?")
    keys: list[str] = page.locator("[data-keys-list] > span:nth-child(odd)").all_inner_texts()
    page.keyboard.press("Escape")
    return [key.strip() for key in keys]


def test_what_is_listed_is_what_the_page_has(page: Page, review: Proposal) -> None:
    page.goto(review.get_absolute_url())
    keys = listed(page)
    assert {"/", "j/k", "n", "m", "?"} <= set(keys)
    assert "x" not in keys, "there is nothing to select here"
    page.goto("/settings/profile/")
    assert {"j/k", "x", "Enter"} & set(listed(page)) == set()
    page.goto("/")
    assert {"j/k", "x", "Enter", "c"} <= set(listed(page))


def test_the_keys_go_on_working_after_the_page_s_parts_were_exchanged(page: Page, review: Proposal) -> None:
    page.goto(review.get_absolute_url())
    assert page.evaluate("document.querySelectorAll('[hx-trigger^=review-moved]').length") > 1
    page.evaluate("document.querySelectorAll('[hx-trigger^=review-moved]').forEach((part) => (part.dataset.old = ''))")
    page.evaluate("htmx.trigger(document.body, 'review-moved')")
    expect(page.locator("[data-old]")).to_have_count(0)
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-added, .htmx-settling")).to_have_count(0)
    page.keyboard.press("m")
    expect(page.get_by_role("dialog", name="Measure v")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator(".note:not(.resolved) :focus")).to_have_count(1)
