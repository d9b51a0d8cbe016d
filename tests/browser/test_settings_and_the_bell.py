"""Inviting somebody, and hearing of things while looking at something else."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import BrowserContext, Page, expect

from apps.notices.models import Kind
from apps.notices.telling import tell


def test_somebody_is_invited_chooses_a_password_and_is_in(page: Page, context: BrowserContext, base: str) -> None:
    page.goto("/")
    page.get_by_text("Ada Moss", exact=True).first.click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("navigation", name="Settings").get_by_role("link", name="Members").click()
    page.get_by_label("User name").fill("ines")
    page.get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Invite").click()
    link = page.locator("#made-text").inner_text()
    page.reload()
    expect(page.locator("#made-text")).to_have_count(0)
    assert context.browser is not None
    guest = context.browser.new_context(base_url=base).new_page()
    guest.goto(link.removeprefix(base))
    assert link.rsplit("/", 2)[1] not in guest.url, "the secret does not stay in the address"
    guest.get_by_label("New password").fill("correct-horse-battery")
    guest.get_by_label("Once more").fill("correct-horse-battery")
    guest.get_by_role("button", name="Set password").click()
    guest.get_by_label("Name").fill("ines")
    guest.get_by_label("Password").fill("correct-horse-battery")
    guest.get_by_role("button", name="Sign in").click()
    expect(guest.get_by_role("heading", name="Runs")).to_be_visible()
    expect(guest.get_by_role("link", name="Launch a run")).to_have_count(0)


def test_the_bell_counts_while_one_looks_elsewhere(page: Page, world: dict[str, Any]) -> None:
    page.goto("/problems/")
    count = page.locator("#bell [data-count]")
    expect(count).to_have_text("2")
    tell(Kind.DECISION, [world["person"]], "Noor Hale accepted it", link="/hosts/")
    expect(count).to_have_text("3")
    page.locator("#bell").click()
    page.wait_for_url("**/notices/")
    tell(Kind.DECISION, [world["person"]], "Noor Hale revoked it")
    expect(page.get_by_role("button", name="Noor Hale revoked it")).to_be_visible()
    page.get_by_role("button", name="Noor Hale accepted it").click()
    page.wait_for_url("**/hosts/")
    expect(count).to_have_text("3")
