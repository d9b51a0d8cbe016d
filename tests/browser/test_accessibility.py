"""axe-core finds nothing on any page, in either theme, wide or narrow, and the browser's console has no complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import sign_in
from tests.browser.pictures import Picture, complains, pictures
from tests.pages.scenes import twinned
from tests.reviews.scenes import reviewed

AXE = Path(settings.BASE) / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RULES = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
# The number of a line is as high as the line: WCAG 2.5.8 excepts targets whose size the text around them decides.
SCOPE = {"exclude": [".code .no a", ".diff .no a", ".log td.n a"]}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci")
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_no_page_breaks_a_rule_of_accessibility(
    context: BrowserContext, base: str, world: dict[str, Any], theme: str, width: int
) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    broken: list[str] = []
    page.on("console", lambda said: broken.append(f"{page.url}: {said.text}") if complains(said) else None)
    twinned(world["done"])
    for shot in pictures(reviewed(world)):
        if shot.signed_in:
            sign_in(context, base, world["person"])
        broken += _broken(page, shot)
    assert broken == []


def _broken(page: Page, shot: Picture) -> list[str]:
    page.goto(shot.address)
    if shot.click.startswith("key:"):
        page.keyboard.press(shot.click.removeprefix("key:"))
    elif shot.click:
        page.locator(shot.click).first.click()
    page.evaluate(AXE.read_text())
    found = page.evaluate("([scope, rules]) => axe.run(scope, rules)", [SCOPE, RULES])
    return [
        f"{shot.name}: {one['id']}: {one['help']}: " + "; ".join(node["html"][:110] for node in one["nodes"][:3])
        for one in found["violations"]
    ]
