"""axe-core finds nothing on any page, in either theme, wide or narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext

from tests.browser.conftest import sign_in
from tests.browser.pictures import pictures

AXE = Path(settings.BASE) / "node_modules" / "axe-core" / "axe.min.js"
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci")
@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_no_page_breaks_a_rule_of_accessibility(
    context: BrowserContext, base: str, world: dict[str, Any], theme: str, width: int
) -> None:
    sign_in(context, base, world["person"])
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    broken = []
    for shot in pictures(world):
        if not shot.signed_in:
            continue
        page.goto(shot.address)
        if shot.click.startswith("key:"):
            page.keyboard.press(shot.click.removeprefix("key:"))
        elif shot.click:
            page.locator(shot.click).first.click()
        page.evaluate(AXE.read_text())
        found = page.evaluate("rules => axe.run(document, rules)", RULES)
        for violation in found["violations"]:
            where = "; ".join(node["html"][:110] for node in violation["nodes"][:3])
            broken.append(f"{shot.name}: {violation['id']}: {violation['help']}: {where}")
    assert broken == []
