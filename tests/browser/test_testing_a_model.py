"""The test button of a model: the page says that it is being asked, and then what came, by itself."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from apps.ledger.models import Trial, TrialState


def answered(message: str, fault: str = "") -> None:
    Trial.objects.filter(state=TrialState.WAITING).update(
        state=TrialState.DONE, message=message, fault=fault, seconds=1.2
    )


def test_a_model_is_tested_in_the_settings_and_on_launch(page: Page, world: dict[str, Any]) -> None:
    page.goto("/settings/models/")
    row = page.locator("tr", has_text="sonnet")
    row.get_by_role("button", name="Test").click()
    expect(row.get_by_role("status")).to_contain_text("being asked")
    answered("Key: Anthropic does not accept the key.", "key")
    expect(row.get_by_role("status")).to_contain_text("Key: Anthropic does not accept the key.")

    page.goto("/launch/?problem=softsign")
    page.get_by_text("anthropic/claude-sonnet-4-5").click()
    expect(page.locator("#command")).to_contain_text("--coder sonnet")
    expect(page.locator("#known")).to_contain_text("price and context")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#coder-test")).to_contain_text("being asked")
    answered("It answers: ready")
    expect(page.locator("#coder-test")).to_contain_text("It answers: ready")
    page.locator("#iterations").fill("3")
    expect(page.locator("#command")).to_contain_text("--iterations 3")
    expect(page.locator("#coder-test")).to_contain_text("It answers: ready")
