"""A real Chromium on the product's own server: people's ways through the pages, sockets included."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.browser.pictures import complains
from tests.browser.serving import installed_browser, served
from tests.pages import scenes
from tests.patience import PATIENCE

if installed_browser() is not None:
    from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here drives a browser; without one it is skipped with a line that says so."""
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)
            if installed_browser() is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium or Chrome is installed: install chromium"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = (
        "1"  # Playwright's loop runs in this thread, beside the tests' own queries
    )
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=installed_browser(), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def world(transactional_db: None) -> dict[str, Any]:
    return scenes.world()


@pytest.fixture
def base(world: dict[str, Any]) -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture
def context(browser: Browser, base: str) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=base, viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    made.set_default_timeout(1000 * PATIENCE)
    yield made
    made.close()


def sign_in(context: BrowserContext, base: str, person: Any) -> None:
    """Gives the browser a session of that person, as signing in would."""
    client = Client()
    client.force_login(person)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": base}])


@pytest.fixture
def page(context: BrowserContext, base: str, world: dict[str, Any]) -> Iterator[Page]:
    """A page of a signed-in admin. An error or a warning of its scripts, or something the CSP refused, fails the test."""
    sign_in(context, base, world["person"])
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if complains(said) else None)
    yield opened
    assert complaints == []
