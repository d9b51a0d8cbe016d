"""The README's picture anew, from a real run: python -m tests.browser.readme_picture [RUN]

Takes the page of the installation that runs here (`make run`): of the run with that number, else of the last one that got
faster. Whoever calls it looks at it as the first admin, by a session that lasts as long as the picture takes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.browser.serving import installed_browser

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "run.png"
WIDTH, HEIGHT = 1440, 1180


def main() -> int:
    """Take it, or say what is missing."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pragma_web.settings")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    import django

    django.setup()
    from django.conf import settings

    from apps.people.models import Person, Role
    from apps.runs.models import Run
    from pragma_web.supervisor.lock import running

    address, browser = running(settings.RUN), installed_browser()
    if not address or browser is None:
        print("Start PRAGMA first: make run" if browser else "Install the package chromium.", file=sys.stderr)
        return 2
    wanted = Run.objects.filter(pk=sys.argv[1]) if sys.argv[1:] else Run.objects.filter(outcome="faster")
    run, admin = wanted.first(), Person.objects.filter(role=Role.ADMIN, is_active=True).first()
    if run is None or admin is None:
        print("There is no such run here, or no admin.", file=sys.stderr)
        return 2
    _take(browser, address.rstrip("/") + run.get_absolute_url(), admin)
    print(f"{PICTURE}: run {run.pk}")
    return 0


def _take(browser: str, page_address: str, admin: object) -> None:
    from django.test import Client
    from playwright.sync_api import sync_playwright

    client = Client()
    client.force_login(admin)  # type: ignore[arg-type]
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
            context.add_cookies([{"name": "sessionid", "value": client.session.session_key or "", "url": page_address}])
            page = context.new_page()
            page.goto(page_address, wait_until="load")
            page.wait_for_timeout(1000)  # charts and the socket's first messages
            page.screenshot(path=PICTURE)
            chromium.close()
    finally:
        client.logout()


if __name__ == "__main__":
    sys.exit(main())
