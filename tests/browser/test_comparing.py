"""Comparing two versions: what differs shows, sides swap, the way of looking stays in the address."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect


def test_two_versions_are_compared_swapped_and_seen_unified(page: Page, world: dict[str, Any]) -> None:
    run = world["done"].pk
    page.goto(f"/compare/?a={run}.3&b={run}.4")
    expect(page.locator("h1")).to_have_text(f"run {run} v3 ↔ run {run} v4")
    expect(page.get_by_text("beyond noise")).to_be_visible()
    expect(page.locator(".diff.split mark").first).to_be_visible()
    folded = page.locator("details.stretch").first
    folded.locator("summary").click()
    expect(folded.locator(".two").first).to_be_visible()
    page.keyboard.press("u")
    page.wait_for_url("**view=unified*")
    expect(page.locator(".diff.unified")).to_be_visible()
    page.keyboard.press("w")
    page.wait_for_url(f"**a={run}.4&b={run}.3*")
    expect(page.locator("h1")).to_have_text(f"run {run} v4 ↔ run {run} v3")
    page.get_by_label("Right").select_option("reference")
    page.wait_for_url("**b=reference*")
    expect(page.locator("h1")).to_contain_text("reference of Soft-sign")


def test_a_line_of_a_version_has_an_address_of_its_own(page: Page, world: dict[str, Any]) -> None:
    page.goto(f"/runs/{world['done'].pk}/v4/#L18")
    line = page.locator("#L18")
    expect(line).to_be_in_viewport()
    expect(line).to_contain_text("loop vectorized using 64 byte vectors")
    assert line.evaluate("e => getComputedStyle(e.cells[0]).backgroundColor") != "rgba(0, 0, 0, 0)"
