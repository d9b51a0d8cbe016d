"""Every route and every socket message, asked by every role and by nobody. A route without a row in `matrix.py` fails."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from apps.agents.words import Agent
from apps.ledger.models import LanguageModel, Trial
from apps.notices.models import Kind, Notice, Webhook
from apps.people import tokens
from apps.people.models import AuditEntry, Person, Role, SignedIn
from apps.reviews import accepting, comments, proposing, votes
from apps.reviews.views.deeds import DEEDS
from apps.runs import events
from apps.runs.events import Entry
from apps.runs.live.consumers import COMMANDS, NOT_ALLOWED, SIGNED_OUT
from apps.runs.live.routing import urlpatterns as sockets
from apps.runs.models import Run, RunState, SavedView
from tests.people import matrix
from tests.people.matrix import ANYBODY, POST, ROWS, Row
from tests.reviews.conftest import Judged, Team, judged, team  # noqa: F401 - fixtures
from tests.runs.sockets import browser

REFUSED = (401, 403)
UNLIKE_AN_ANSWER = (404, 405, 500)


def routes(patterns: Any = None) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Every route's name, with its methods where the resolver knows them."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns)
        else:
            assert isinstance(pattern, URLPattern)
            assert pattern.name, f"{pattern} has no name, so that no row can speak of it"
            actions = getattr(pattern.callback, "actions", None)
            yield pattern.name, frozenset(method.upper() for method in actions if method != "head") if actions else None


def test_every_route_has_a_row() -> None:
    told: dict[str, set[str]] = {}
    for row in ROWS:
        told.setdefault(row.name, set()).add(row.method)
    there: dict[str, set[str]] = {}
    for name, methods in routes():
        there.setdefault(name, set()).update(methods or ())
    assert not set(there) - set(told), "routes without a row in tests/people/matrix.py"
    assert not set(told) - set(there), "rows whose route is gone"
    missing = {name: methods - told[name] for name, methods in there.items() if methods - told[name]}
    assert not missing, "methods without a row"


def views(patterns: Any = None) -> Iterator[tuple[str, Any]]:
    """Every route's name with the function behind it."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern.url_patterns)
        else:
            yield str(pattern.name), inspect.unwrap(pattern.callback)


def test_every_page_that_takes_a_form_has_a_row_for_it() -> None:
    """The resolver does not know which methods a function takes; its module says it."""
    posts = {row.name for row in ROWS if row.method == POST}
    told = {row.name for row in ROWS}
    untold = set()
    for name, view in views():
        if not inspect.isfunction(view) or not view.__module__.startswith(("apps.", "pragma_web")):
            continue
        text = inspect.getsource(view)
        takes = any(word in text for word in ("@require_POST", "request.POST", '"POST"'))
        if takes and name in told - posts - matrix.FORMS_OF_NOBODY:
            untold.add(name)
    assert not untold, "pages that take a form, without a row with POST"


def test_every_deed_of_a_page_has_a_row() -> None:
    """`do` names the deed where one address takes several."""
    told: dict[str, set[str]] = {}
    for row in ROWS:
        if "do" in row.body:
            told.setdefault(row.name, set()).add(row.body["do"])
    missing = {}
    for name, view in views():
        if name not in told:
            continue
        text = inspect.getsource(inspect.getmodule(view))  # type: ignore[arg-type]
        there = set(DEEDS) if name == "review-do" else set(re.findall(r'"([\w-]+)"', "".join(_CASES.findall(text))))
        missing[name] = there - told[name] - matrix.NO_DEEDS
    assert not {name: words for name, words in missing.items() if words}, "deeds without a row"


_CASES = re.compile(r"^ +case (.+?)(?: as \w+)?(?: if .+)?:$", re.MULTILINE)


def test_every_socket_and_every_message_has_a_row() -> None:
    assert {str(pattern.pattern) for pattern in sockets} == set(matrix.SOCKETS)
    assert set(COMMANDS) == set(matrix.COMMANDS)


@pytest.fixture
def world(team: Team, judged: Judged, make_run: Any) -> dict[str, Any]:  # noqa: F811
    """Something of every sort, and what row words stand for; `own_...` belongs to whoever asks."""
    live = make_run(state=RunState.RUNNING)
    said = {"text": "all of it", "usage": {"seconds": 1, "model": None}}
    events.append(live.pk, [Entry("step_ended", "a line", Agent.CODER, "1.0.write.0", 1, data=said)])
    accepted = proposing.propose(team.engineer, judged.better, asked=[team.reviewer])
    votes.vote(accepted.pk, team.reviewer, "approve", accepted.digest)
    kernel = accepting.accept(accepted.pk, team.reviewer, accepted.digest)
    proposal = proposing.propose(team.engineer, judged.faster, asked=[team.reviewer])
    model = LanguageModel.objects.create(name="some-model", model_id="openai/some-model")
    trial = Trial.objects.create(model=model, asked_by=team.admin)
    other = Person.objects.create_user("other", password="a-long-password")
    assert judged.faster.measurement is not None
    words: dict[str, Any] = {
        "run": judged.run.pk,
        "live": live.pk,
        "measurement": judged.faster.measurement.pk,
        "device": str(live.device),
        "host": live.device.host.name,
        "slug": live.problem.slug,
        "proposal": proposal.pk,
        "digest": proposal.digest,
        "kernel": kernel.pk,
        "model": model.pk,
        "model_name": model.name,
        "trial": trial.pk,
        "other": other.pk,
        "other_name": other.username,
    }
    people = {
        Role.VIEWER: team.viewer,
        Role.ENGINEER: team.engineer,
        Role.REVIEWER: team.reviewer,
        Role.ADMIN: team.admin,
    }
    own = {}
    for role, person in people.items():
        token, text = tokens.make(person, "mine", [], 30)
        own[role] = {
            "own_token": token.pk,
            "token_text": text,
            "own_view": SavedView.objects.create(owner=person, name="mine").pk,
            "own_session": signed_in_elsewhere(person).pk,
            "own_notice": Notice.objects.create(person=person, kind=Kind.RUN_ENDED, title="x", key="x").pk,
            "own_hook": Webhook.objects.create(person=person, url="https://192.0.2.1/", salt="x").pk,
            "own_comment": comments.write(proposal.pk, person, "a draft").pk if role is not Role.VIEWER else 1,
        }
    return {"words": words, "people": people, "own": own, "nobody": next(iter(own.values()))}


def signed_in_elsewhere(person: Person) -> SignedIn:
    """Another browser of theirs."""
    Client().force_login(person)
    return SignedIn.objects.filter(person=person).latest("id")


@pytest.fixture
def no_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may is asked before anything is rendered; that pages render is tried elsewhere, and would take most of the time."""
    monkeypatch.setattr("django.template.backends.django.Template.render", lambda *words, **options: "")
    monkeypatch.setattr("drf_spectacular.generators.SchemaGenerator.get_schema", lambda *words, **options: {})


def filled(given: Any, words: dict[str, Any]) -> Any:
    """The same with words in braces replaced."""
    if isinstance(given, dict):
        return {name: filled(value, words) for name, value in given.items()}
    if isinstance(given, list):
        return [filled(one, words) for one in given]
    return given.format(**words) if isinstance(given, str) else given


def asked(client: Client, row: Row, words: dict[str, Any], **headers: Any) -> Any:
    """The answer to a row's request; whatever it did is undone."""
    address = reverse(row.name, kwargs=filled(row.args, words))
    if row.query:
        address += f"?{filled(row.query, words)}"
    body, kept = filled(row.body, words), dict(client.cookies)
    with transaction.atomic():
        if row.name.startswith("api-"):
            sent = json.dumps(body) if row.method != "GET" else ""
            answer = client.generic(row.method, address, sent, content_type="application/json", headers=headers)
        else:
            answer = client.generic(row.method, address) if row.method == "GET" else client.post(address, body)
        transaction.set_rollback(True)
    client.cookies.clear()
    client.cookies.update(kept)
    return answer


def refused(answer: Any) -> bool:
    """Whether the person got no further."""
    away = answer.status_code == 302 and answer["Location"].startswith("/sign-in/")
    return away or answer.status_code in REFUSED


def wrong(row: Row, answer: Any, *, allowed: bool) -> str:
    """What is wrong with an answer; empty if nothing is."""
    said = f"{row.method} {row.name} {row.body or ''}: {answer.status_code}"
    if allowed and (refused(answer) or answer.status_code in UNLIKE_AN_ANSWER) and row.name != "sign-out":
        return f"{said}, but should be let through"
    return said + ", but should be refused" if not allowed and not refused(answer) else ""


@pytest.mark.usefixtures("no_rendering")
@pytest.mark.parametrize("role", Role)
def test_each_role_gets_where_it_may_and_nowhere_else(world: dict[str, Any], role: Role) -> None:
    client, words = Client(raise_request_exception=False), world["words"] | world["own"][role]
    client.force_login(world["people"][role])
    faults = [wrong(row, asked(client, row, words), allowed=row.who is ANYBODY or role in row.who) for row in ROWS]
    assert not [fault for fault in faults if fault]


@pytest.mark.usefixtures("no_rendering")
def test_nobody_gets_anywhere(world: dict[str, Any]) -> None:
    client, words = Client(raise_request_exception=False), world["words"] | world["nobody"]
    faults = [wrong(row, asked(client, row, words), allowed=row.who is ANYBODY) for row in ROWS]
    assert not [fault for fault in faults if fault]


@pytest.mark.usefixtures("no_rendering")
def test_a_reading_token_of_an_admin_only_reads(world: dict[str, Any]) -> None:
    words = world["words"] | world["own"][Role.ADMIN]
    client = Client(raise_request_exception=False)
    bearer = {"Authorization": f"Bearer {words['token_text']}"}
    faults = []
    for row in ROWS:
        if not row.name.startswith("api-") or row.name == "api-docs":
            continue
        ours = ("api-token", "api-session", "api-webhook", "api-notice-choice", "api-saved-view")
        reads = row.method == "GET" or row.name in ("api-notice-read-all", "api-notice-read-one")
        allowed = reads and not row.name.startswith(ours) and row.name != "api-audit-list"
        faults.append(wrong(row, asked(client, row, words, **bearer), allowed=allowed))
    assert not [fault for fault in faults if fault]


def test_a_token_opens_no_page(world: dict[str, Any]) -> None:
    text = world["own"][Role.ADMIN]["token_text"]
    answer = Client().get("/settings/members/", headers={"Authorization": f"Bearer {text}"})
    assert refused(answer)


@pytest.mark.django_db(transaction=True)
async def test_each_role_sends_what_it_may_on_a_run_s_socket(make_run: Any) -> None:
    run = await sync_to_async(lambda: make_run(state=RunState.RUNNING))()
    for role in Role:
        member = await sync_to_async(Person.objects.create_user)(f"a-{role}", password="x", role=role)
        async with browser(f"/ws/runs/{run.pk}", member) as page:
            await page.until("ready")
            for command, who in matrix.COMMANDS.items():
                await Run.objects.filter(pk=run.pk).aupdate(
                    state=RunState.PAUSED if command == "resume" else RunState.RUNNING
                )
                await page.send(type=command, text="x")
                answer = await page.next()
                while answer["type"] not in ("done", "refused"):
                    answer = await page.next()
                assert answer["command"] == command
                assert (answer["type"] == "done") is (role in who), (role, answer)
            await page.send(type="order", text="x")
            assert "Send an object" in (await page.until("refused"))["message"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/ws/runs", "/ws/notices", "/ws/runs/{run}"])
async def test_nobody_hears_anything(make_run: Any, path: str) -> None:
    run = await sync_to_async(make_run)(finished_at=timezone.now())
    async with browser(path.format(run=run.pk)) as page:
        assert await page.close_code() in (SIGNED_OUT, NOT_ALLOWED)


@pytest.mark.django_db(transaction=True)
async def test_a_script_watches_and_steers_with_a_token_of_that_scope(make_run: Any, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    _, reads = await sync_to_async(tokens.make)(person, "reader", [], 7)
    launching, launches = await sync_to_async(tokens.make)(person, "launcher", ["launch"], 7)
    async with browser(f"/ws/runs/{run.pk}", token=reads) as script:
        await script.until("ready")
        await script.send(type="pause")
        assert "may not steer" in (await script.until("refused"))["message"]
    async with browser(f"/ws/runs/{run.pk}", token=launches) as script:
        await script.until("ready")
        await script.send(type="stop", at_once=True)
        await script.until("done")
        entry = await AuditEntry.objects.filter(kind="run.stopped").aget()
        assert entry.who == "ada" and entry.through == "token launcher"
        await sync_to_async(tokens.revoke)(launching, person)
        await script.send(type="hint", text="too late")
        assert await script.close_code() == SIGNED_OUT
    async with browser(f"/ws/runs/{run.pk}", token="pragma_wrong") as script:
        assert await script.close_code() == SIGNED_OUT


@pytest.mark.django_db(transaction=True)
async def test_orders_end_with_the_role_and_with_the_password(make_run: Any, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until("ready")
        await Person.objects.filter(pk=person.pk).aupdate(role=Role.VIEWER)
        await page.send(type="stop")
        assert "may not steer" in (await page.until("refused"))["message"]
        await Person.objects.filter(pk=person.pk).aupdate(role=Role.ENGINEER, password="another-hash")
        await page.send(type="stop")
        assert await page.close_code() == SIGNED_OUT
    assert (await Run.objects.aget(pk=run.pk)).state == RunState.RUNNING
