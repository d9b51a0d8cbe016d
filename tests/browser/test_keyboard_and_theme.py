"""Keys that work on every page and never while typing; the theme that stays."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from apps.people.models import Person


def test_rows_are_walked_selected_and_compared_without_a_mouse(page: Page, world: dict[str, Any]) -> None:
    page.goto("/")
    page.keyboard.press("j")
    expect(page.locator("[data-row-link]").first).to_be_focused()
    page.keyboard.press("x")
    for _ in range(5):
        page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-bulk-count]")).to_have_text("2 selected")
    page.keyboard.press("c")
    page.wait_for_url("**/compare/runs/?runs=*")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"run {world['live'].pk}")


def test_enter_opens_the_row_in_focus(page: Page, world: dict[str, Any]) -> None:
    page.goto("/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{world['live'].pk}/")


def test_slash_searches_and_keys_are_letters_while_typing(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("/")
    field = page.get_by_label("Search runs")
    expect(field).to_be_focused()
    page.keyboard.type("j?x layer")
    expect(field).to_have_value("j?x layer")
    expect(page.locator("dialog[open]")).to_have_count(0)
    field.fill("layer")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=layer*")
    expect(page.locator("tr[data-row]")).to_have_count(3)


def test_question_mark_lists_the_keys_of_the_page(page: Page, world: dict[str, Any]) -> None:
    page.goto(f"/runs/{world['live'].pk}/")
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keyboard")
    expect(listed).to_contain_text("Steer the run")
    expect(listed).to_contain_text("Go to Hosts")
    page.keyboard.press("Escape")
    expect(listed).not_to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_url("**/hosts/")


def test_the_first_stop_of_the_tab_key_skips_to_the_page(page: Page) -> None:
    page.goto("/problems/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_the_theme_follows_the_system_until_one_chooses_and_then_stays(page: Page, world: dict[str, Any]) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="Theme: as the system").click()
    expect(page.locator("body")).not_to_have_css("background-color", dark)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.goto("/problems/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    assert Person.objects.get(pk=world["person"].pk).theme == "light"
