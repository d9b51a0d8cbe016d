"""Signing in: to where one was going, out again, and what a wrong password says."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import BrowserContext, expect


def test_one_signs_in_to_where_one_was_going_and_out_again(context: BrowserContext, world: dict[str, Any]) -> None:
    page = context.new_page()
    page.goto("/problems/")
    expect(page.get_by_role("heading", name="Sign in to PRAGMA")).to_be_visible()
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("not this")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("don't go together")
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Problems")).to_be_visible()
    page.get_by_text("Ada Moss").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to PRAGMA")).to_be_visible()
    page.goto("/")
    expect(page.get_by_label("Password")).to_be_visible()
