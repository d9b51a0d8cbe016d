"""Screenshots of every page, light and dark, at 1440 and 390 pixels: python -m tests.browser.pictures [--out FOLDER] [NAME ...]

Fills a scratch database of its own, serves it from this process, and drives an installed Chromium. Nothing of an
installation is touched.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.browser.serving import installed_browser, served

SIZES = {"1440": (1440, 1100), "390": (390, 844)}
THEMES = ("light", "dark")

# The innermost elements that reach beyond the window and are not inside something that scrolls.
WIDEST = """[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1
  && ![...function* (n) { for (n = n.parentElement; n; n = n.parentElement) yield n }(e)].some(
    p => getComputedStyle(p).overflowX !== "visible")).map(e => e.tagName + "." + e.className).slice(-4).join(", ")"""


@dataclass(frozen=True)
class Picture:
    """A page to be taken: its name, address, and what is clicked before."""

    name: str
    address: str
    click: str = ""
    signed_in: bool = True


def pictures(world: dict[str, Any]) -> list[Picture]:
    """Every page, in the states worth looking at."""
    live, done, twin = world["live"].pk, world["done"].pk, world["done"].twin_id
    return [
        Picture("sign-in", "/sign-in/", signed_in=False),
        Picture("runs", "/"),
        Picture("runs-empty", "/?q=nothing-like-this"),
        Picture("launch", "/launch/?problem=softsign"),
        Picture("launch-paste", "/launch/?how=paste"),
        Picture("run", f"/runs/{live}/"),
        Picture("run-split", f"/runs/{live}/?v=3&against=1&view=split"),
        Picture("run-log", f"/runs/{live}/?tab=log"),
        Picture("run-lineage", f"/runs/{live}/?tab=lineage"),
        Picture("run-done", f"/runs/{done}/?v=4&tab=code"),
        Picture("run-failed", f"/runs/{done + 1}/"),
        Picture("steer", f"/runs/{live}/", click='[data-open="steer"]'),
        Picture("keys", f"/runs/{live}/", click="key:?"),
        *(
            Picture(f"version-{tab}", f"/runs/{done}/v4/?tab={tab}")
            for tab in ("code", "profile", "advice", "build", "checks", "lineage", "environment")
        ),
        Picture("version-wrong", f"/runs/{done}/v2/?tab=checks"),
        Picture("compare", f"/compare/?a={done}.3&b={done}.4"),
        Picture("compare-reference", f"/compare/?b={done}.4&against=reference&view=unified"),
        Picture("compare-versions", f"/compare/versions/?v={done}.1&v={done}.2&v={done}.3&v={done}.4"),
        Picture("run-twins", f"/runs/{done}/?axis=time"),
        *([Picture("compare-twins", f"/compare/runs/?runs={done},{twin}")] if twin else []),
        Picture("run-notes", f"/runs/{done}/", click='[data-open="notes"]'),
        Picture("runs-import", "/", click='[data-open="import"]'),
        Picture("compare-runs", f"/compare/runs/?runs={live},{done},{done + 1}"),
        Picture("problems", "/problems/"),
        Picture("problem", "/problems/softsign/"),
        Picture("hosts", "/hosts/"),
        Picture("host", "/hosts/this-machine/"),
        Picture("launch-model", "/launch/?problem=softsign&coder=sonnet"),
        Picture("settings-models", "/settings/models/"),
        Picture("settings-model", "/settings/models/new/"),
        Picture("settings-limits", "/settings/limits/"),
        Picture("settings-profile", "/settings/profile/"),
        Picture("settings-sessions", "/settings/sessions/"),
        Picture("settings-tokens", "/settings/tokens/"),
        Picture("settings-members", "/settings/members/"),
        Picture("settings-notifications", "/settings/notifications/"),
        Picture("settings-audit", "/settings/audit/"),
        Picture("notices", "/notices/"),
        Picture("password-forgotten", "/password/forgotten/", signed_in=False),
        Picture("run-calls", f"/runs/{done}/calls/"),
        Picture("not-found", "/runs/99999/"),
        *(_of_reviews(world) if "review" in world else ()),
    ]


def _of_reviews(world: dict[str, Any]) -> list[Picture]:
    review, kernel, done = world["review"].pk, world["kernel"].pk, world["done"].pk
    return [
        Picture("reviews", "/reviews/"),
        Picture("propose", f"/reviews/new/?version={done}.4"),
        Picture("propose-refused", f"/reviews/new/?version={done}.2"),
        Picture("review", f"/reviews/{review}/"),
        Picture("review-unified", f"/reviews/{review}/?view=unified&base=r1"),
        Picture("review-file", f"/reviews/{review}/?view=code&at=30"),
        Picture("review-history", f"/reviews/{review}/?tab=history"),
        Picture("review-measure", f"/reviews/{review}/", click='[data-open="measure"]'),
        Picture("review-rules", "/settings/reviews/"),
        Picture("kernels", "/kernels/"),
        Picture("kernel", f"/kernels/{kernel}/"),
    ]


def complains(message: Any) -> bool:
    """Whether a line of the browser's console says that a page is wrong: not that something was refused, or a socket shut."""
    expected = "status of 4" in message.text or "WebSocket" in message.text
    return message.type in ("error", "warning") and not expected


def take(base: str, cookie: str, shots: list[Picture], out: Path) -> list[str]:
    """Takes the pictures; gives back what the browser complained of (errors and warnings of its console)."""
    from playwright.sync_api import sync_playwright

    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=installed_browser(), args=["--no-sandbox", "--disable-background-networking"]
        )
        for theme in THEMES:
            for size, (width, height) in SIZES.items():
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
                )  # type: ignore[arg-type]
                page = context.new_page()
                for shot in shots:
                    context.clear_cookies()
                    if shot.signed_in:
                        context.add_cookies([{"name": "sessionid", "value": cookie, "url": base}])
                    page = context.new_page()
                    page.on(
                        "console",
                        lambda message, name=shot.name: (
                            complaints.append(f"{name}: {message.text}") if complains(message) else None
                        ),
                    )
                    page.on("pageerror", lambda error, name=shot.name: complaints.append(f"{name}: {error}"))
                    answer = page.goto(base + shot.address, wait_until="load")
                    if answer is not None and answer.status >= 500:
                        complaints.append(f"{shot.name}: {answer.status}")
                        continue
                    page.evaluate("document.fonts.ready")
                    if shot.click.startswith("key:"):
                        page.keyboard.press(shot.click.removeprefix("key:"))
                    elif shot.click:
                        page.locator(shot.click).first.click()
                    page.wait_for_timeout(300)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    if wide > width:
                        complaints.append(f"{shot.name} at {width}: the page is {wide} wide: {page.evaluate(WIDEST)}")
                    page.screenshot(path=out / f"{shot.name}-{size}-{theme}.png", full_page=not shot.click)
                    page.close()
                context.close()
        browser.close()
    return sorted(set(complaints))


def _hold_still(world: dict[str, Any]) -> None:
    """Lets nothing go silent while pictures are taken."""
    from django.utils import timezone

    later = timezone.now() + timedelta(hours=1)
    type(world["live"]).objects.filter(pk=world["live"].pk).update(claim_expires_at=later)
    host = world["device"].host
    type(host).objects.filter(pk=host.pk).update(seen_at=later)


def main() -> int:
    """Fills the database, takes the pictures, tells what the browser complained of."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=Path, default=Path("var/screenshots"))
    arguments.add_argument("names", nargs="*", help="only these pages")
    options = arguments.parse_args()
    if installed_browser() is None:
        print("No Chromium or Chrome is installed here; install the package chromium.", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DATABASE_URL": f"sqlite:///{folder}/pictures.sqlite3",
            "DJANGO_SETTINGS_MODULE": "pragma_web.settings",
        }
        os.environ |= {"DJANGO_ALLOW_ASYNC_UNSAFE": "1", "PRAGMA_VAR": folder, "PRAGMA_KEY": "pictures"}
        import django

        django.setup()
        from django.core.management import call_command
        from django.test import Client

        from tests.pages import scenes
        from tests.reviews.scenes import reviewed

        call_command("migrate", verbosity=0)
        world = reviewed(scenes.world())
        scenes.twinned(world["done"])
        client = Client()
        client.force_login(world["person"])
        cookie = client.cookies["sessionid"].value
        shots = [shot for shot in pictures(world) if not options.names or shot.name in options.names]
        _hold_still(world)
        with served() as base:
            complaints = take(base, cookie, shots, options.out)
    for complaint in complaints:
        print(complaint)
    print(f"{len(shots) * len(SIZES) * len(THEMES)} pictures in {options.out}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
