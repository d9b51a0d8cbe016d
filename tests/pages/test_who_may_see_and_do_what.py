"""Nobody unknown sees a page; whoever may not do a thing is told so, and nothing happens."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.hosts.models import Host
from apps.people import permissions
from apps.people.models import Role
from apps.people.permissions import Action
from apps.runs.models import Problem, Run, RunState
from tests.pages import factories

PAGES = (
    "/",
    "/launch/",
    "/problems/",
    "/hosts/",
    "/compare/",
    "/runs/{live}/",
    "/runs/{live}/part/head/",
    "/runs/{live}/log.txt",
    "/runs/{live}/v4.py",
)


@pytest.mark.parametrize("address", PAGES)
def test_a_stranger_is_sent_to_sign_in(world: dict[str, Any], address: str) -> None:
    answer = Client().get(address.format(live=world["live"].pk))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in/?next=")


def test_whoever_may_not_steer_is_told_and_the_run_goes_on(
    ada: Client, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, Action.STEER)
    answer = ada.post(f"/runs/{world['live'].pk}/order/", {"do": "stop"})
    assert answer.status_code == 403
    assert "You may not do that" in answer.content.decode()
    assert Run.objects.get(pk=world["live"].pk).state == RunState.RUNNING
    assert "Stop, keep best" not in ada.get(f"/runs/{world['live'].pk}/").content.decode()


def test_whoever_may_not_launch_launches_nothing(
    ada: Client, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, Action.LAUNCH)
    before = Run.objects.count()
    assert ada.post("/launch/", {"problem": "softsign"}).status_code == 403
    assert ada.post("/runs/bulk/", {"do": "again", "run": world["done"].pk}).status_code == 403
    assert Run.objects.count() == before


def test_only_an_admin_lets_a_host_judge_with_weak_isolation(world: dict[str, Any]) -> None:
    engineer = Client()
    engineer.force_login(world["colleague"])
    assert engineer.post("/hosts/this-machine/operate/", {"do": "allow-weak"}).status_code == 403
    assert Host.objects.get(name="this-machine").weak_isolation_allowed_by is None
    admin = Client()
    admin.force_login(world["person"])
    assert admin.post("/hosts/this-machine/operate/", {"do": "allow-weak"}).status_code == 302
    assert Host.objects.get(name="this-machine").weak_isolation_allowed_by == world["person"]


@pytest.mark.parametrize(
    "address", ["/runs/{live}/order/", "/runs/bulk/", "/hosts/this-machine/operate/", "/launch/preview/"]
)
def test_what_changes_something_is_no_link(ada: Client, world: dict[str, Any], address: str) -> None:
    assert ada.get(address.format(live=world["live"].pk)).status_code == 405


def test_what_people_and_models_write_is_shown_as_text(ada: Client, world: dict[str, Any]) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    run = world["live"]
    Problem.objects.filter(pk=run.problem_id).update(
        title=evil, description=evil, source=f"'''{evil}'''\n" + run.problem.source
    )
    Run.objects.filter(pk=run.pk).update(doing=evil[:120], reason=evil, notes=evil)
    run.versions.update(summary=evil, source=f'SOURCE = r"""#include <x>\n{evil}"""\n')
    factories.say(run, "step_ended", evil, agent="coder", iteration=4, data={"text": evil * 2, "usage": {"seconds": 1}})
    for address in (
        f"/runs/{run.pk}/",
        f"/runs/{run.pk}/?tab=code",
        f"/runs/{run.pk}/?tab=log",
        f"/runs/{run.pk}/v4/",
        "/problems/softsign/",
        "/",
        f"/compare/?a={run.pk}.1&b={run.pk}.4",
    ):
        content = ada.get(address).content.decode()
        assert "<script>alert" not in content
        assert "<img src=x" not in content


def test_scripts_come_from_this_server_alone(ada: Client) -> None:
    policy = ada.get("/")["Content-Security-Policy"]
    scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert "unsafe" not in scripts


VIEWED = ("/", "/?q=nothing", "/problems/", "/problems/softsign/", "/hosts/", "/hosts/this-machine/", "/runs/{live}/",
          "/runs/{done}/", "/runs/{done}/v4/", "/kernels/", "/settings/members/", "/settings/models/")  # fmt: skip
OFFERS = (
    'href="/launch/',
    'value="stop"',
    'value="drain"',
    'value="deactivate"',
    'data-open="steer"',
    'data-open="again"',
)


@pytest.mark.parametrize("address", VIEWED)
def test_a_viewer_is_offered_nothing_they_may_not(world: dict[str, Any], address: str) -> None:
    viewer = Client()
    viewer.force_login(factories.PersonFactory.create(username="looks-on", role=Role.VIEWER))
    answer = viewer.get(address.format(live=world["live"].pk, done=world["done"].pk))
    assert answer.status_code == 200
    assert [offer for offer in OFFERS if offer in answer.content.decode()] == []


def refuse(monkeypatch: pytest.MonkeyPatch, refused: Action) -> None:
    """From here on nobody may do that."""
    real = permissions.may

    def may(person: Any, action: Action, thing: object = None) -> bool:
        return action != refused and real(person, action, thing)

    for module in ("apps.people.asking", "apps.runs.templatetags.pages"):
        monkeypatch.setattr(f"{module}.may", may)
