"""A kernel's whole way, by three people of different roles: a run launched, versions compared, one proposed, talked over,
mended, approved, accepted, exported, and run where nothing of PRAGMA is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from apps.kernels.evaluation import Tier
from apps.people.models import Role
from apps.reviews.models import AcceptedKernel
from apps.runs.models import Purpose
from tests.browser.conftest import sign_in
from tests.pages import evaluations, factories, sources
from tests.patience import PATIENCE


@contextmanager
def browsing(browser: Browser, base: str, person: Any) -> Iterator[Page]:
    """A window of that person's own. An error in a script, or something the CSP refused, fails the test."""
    context = browser.new_context(base_url=base, viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    context.set_default_timeout(1000 * PATIENCE)
    sign_in(context, base, person)
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    context.close()
    assert complaints == []


def test_three_people_agree_on_a_kernel(browser: Browser, base: str, world: dict[str, Any], tmp_path: Path) -> None:
    run = world["done"]
    factories.measure(run.versions.get(number=3), evaluations.correct(0.611, Tier.FULL), Purpose.FINAL)
    text = sources.SOFTSIGN_VERSIONS[2].replace("schedule(static)", "schedule(guided)")  # builds on any processor
    run.versions.filter(number=4).update(source=text, digest=factories.digest(text))
    engineer = world["colleague"]
    reviewer = factories.PersonFactory.create(username="remy", first_name="Remy", last_name="Ito", role=Role.REVIEWER)
    viewer = factories.PersonFactory.create(username="velma", first_name="Velma", last_name="Lin", role=Role.VIEWER)
    with browsing(browser, base, engineer) as mine, browsing(browser, base, reviewer) as theirs:
        launched(mine)
        proposed(mine, run.pk)
        mine.wait_for_url("**/reviews/*/")
        address = mine.url
        reviewed_and_sent_back(theirs)
        mended(mine, run.pk, address)
        accepted(theirs)
    with browsing(browser, base, viewer) as page:
        page.goto("/kernels/")
        expect(page.get_by_role("button", name="Revoke…")).to_have_count(0)
        page.get_by_role("link", name="Soft-sign").first.click()
        with page.expect_download() as downloading:
            page.get_by_role("link", name="Download .py").click()
        file = tmp_path / "elsewhere" / downloading.value.suggested_filename
        downloading.value.save_as(file)
    assert AcceptedKernel.objects.get().version.source in file.read_text()
    runs_elsewhere(file)


def launched(page: Page) -> None:
    """A run of the same problem is put into the queue; what follows is about one that is done."""
    page.goto("/launch/?problem=softsign")
    expect(page.locator("#known")).to_contain_text("can be judged")
    page.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url("**/runs/*/")
    expect(page.locator("h1 .chip")).to_contain_text("queued")


def proposed(page: Page, run: int) -> None:
    """Compared with its parent first, then put up for review."""
    page.goto(f"/compare/?a={run}.1&b={run}.3")
    page.get_by_role("link", name=f"run {run} v3").click()
    page.get_by_role("link", name="Propose for review").click()
    page.get_by_label("Note").fill("One pass over memory.")
    page.get_by_label("Remy Ito").check()
    page.get_by_role("button", name="Propose v3").click()


def reviewed_and_sent_back(page: Page) -> None:
    """A comment on two lines, kept as a draft, goes out with a request for changes."""
    page.goto("/")
    page.get_by_role("link", name="Reviews 1 waiting for you").click()
    page.get_by_role("link", name="Waits for me").click()
    page.locator("[data-row-link]").first.click()
    line = page.locator("#L12")
    line.hover()
    line.get_by_label("Comment on line 12").click()
    composer = page.locator(".composer")
    composer.get_by_label("Last line").fill("13")
    composer.get_by_label("Comment", exact=True).fill("Could this stream its stores?")
    composer.get_by_role("button", name="Add to my draft").click()
    expect(page.get_by_text("your draft", exact=True)).to_be_visible()
    expect(page.get_by_text("1 draft comment goes out with it.")).to_be_visible()
    page.get_by_label("Say what decided you").fill("Right, but not as fast as it could be.")
    page.get_by_role("button", name="Request changes").click()
    expect(page.locator("h1 .chip")).to_contain_text("changes requested")


def mended(page: Page, run: int, address: str) -> None:
    """The engineer sees it without asking, answers, and proposes another version in its place."""
    expect(page.locator("h1 .chip")).to_contain_text("changes requested")
    thread = page.locator(".note", has_text="Could this stream its stores?")
    thread.get_by_label("Reply to Remy Ito").fill("v4 does.")
    thread.get_by_role("button", name="Reply now").click()
    expect(page.locator(".note", has_text="v4 does.")).to_be_visible()
    page.goto(f"/reviews/new/?version={run}.4")
    page.get_by_label("a new version of review").check()
    page.get_by_role("button", name="Propose v4").click()
    page.wait_for_url(address + "**")
    expect(page.locator("h1")).to_contain_text("v4")


def accepted(page: Page) -> None:
    """The reviewer is asked again, sees what changed, approves and accepts."""
    expect(page.get_by_text("Another content is proposed since")).to_be_visible()
    page.get_by_role("link", name="see what changed since then").click()
    expect(page.locator(".add mark, .change mark, .line.add").first).to_be_visible()
    expect(page.get_by_role("button", name="Accept for")).to_be_disabled()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("h1 .chip")).to_contain_text("approved")
    page.get_by_role("button", name="Accept for").click()
    expect(page.locator("h1 .chip")).to_contain_text("accepted")
    expect(page.get_by_text("uses it from now on")).to_be_visible()


def runs_elsewhere(file: Path) -> None:
    """In another directory, isolated from this checkout: with torch and a compiler alone."""
    source = file.read_text().replace("4096", "64")
    native = file.with_name("small.py")
    native.write_text(source)
    command = [sys.executable, "-I", str(native), "--json", "--seconds", "0.1", "--trials", "1"]
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["correct"] is True
