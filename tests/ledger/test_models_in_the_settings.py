"""Settings › Models: an admin adds one and tests it, others see names, and no key is ever shown."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from apps.ledger import catalogue, trials
from apps.ledger.models import Call, LanguageModel, Trial, TrialState
from apps.ledger.registry import settings_of
from apps.people.models import Person
from apps.people.refusals import Refused
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ECHO, Reply
from tests.ledger.conftest import MakeModel

pytestmark = pytest.mark.django_db
FORM = {
    "name": "team-model",
    "model_id": "openai/scripted",
    "api_base": "http://127.0.0.1:9/v1",
    "key_source": "kept",
    "key": KEY,
    "usd_per_million_in": "2",
    "usd_per_million_out": "10",
    "context_tokens": "64000",
    "silence_seconds": "300",
    "call_seconds": "1200",
    "temperatures": "0.2, 0.7",
    "enabled": "on",
}


@pytest.fixture
def root(client: Client, admin: Person) -> Client:
    client.force_login(admin)
    return client


def dump() -> str:
    out = StringIO()
    call_command("dumpdata", stdout=out)
    return out.getvalue()


def test_an_admin_adds_a_model_and_its_key_is_never_shown(root: Client) -> None:
    assert root.post("/settings/models/new/", FORM).status_code == 302
    model = LanguageModel.objects.get()
    assert (model.name, model.temperatures, model.enabled) == ("team-model", [0.2, 0.7], True)
    assert model.key_kept_at is not None
    for address in ("/settings/models/", f"/settings/models/{model.pk}/", "/settings/audit/", "/launch/"):
        page = root.get(address).content.decode()
        assert "team-model" in page
        assert KEY not in page
        assert model.key_sealed not in page
    assert KEY not in dump()


def test_saving_without_a_new_key_leaves_the_one_that_is_kept(root: Client, model: LanguageModel) -> None:
    kept = model.key_sealed
    root.post(f"/settings/models/{model.pk}/", FORM | {"key": "", "context_tokens": "9000"})
    model.refresh_from_db()
    assert (model.key_sealed, model.context_tokens, model.name) == (kept, 9000, "scripted")


def test_how_many_questions_a_run_asks_at_once_is_a_models_own(root: Client, model: LanguageModel) -> None:
    assert model.at_once == 4
    for typed, kept in (("2", 2), ("", 2), ("8", 8)):
        root.post(f"/settings/models/{model.pk}/", FORM | {"key": "", "at_once": typed})
        model.refresh_from_db()
        assert (model.at_once, settings_of(model).at_once) == (kept, kept)


def test_a_key_that_is_no_longer_used_is_forgotten(root: Client, model: LanguageModel) -> None:
    root.post(f"/settings/models/{model.pk}/", FORM | {"key": "", "key_source": "none"})
    model.refresh_from_db()
    assert (model.key_sealed, model.key_kept_at) == ("", None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "builtin"}, "is not builtin"),
        ({"name": "two words"}, "letters, digits"),
        ({"model_id": "gpt-5"}, "PROVIDER/MODEL"),
        ({"api_base": "models.org/v1"}, "begins with http"),
        ({"api_base": "https://ann:pass@models.org/v1"}, "the key has a field of its own"),
        ({"api_base": "https://models.org/v1?key=abc"}, "the key has a field of its own"),
        ({"key": ""}, "Type the key in"),
        ({"key_source": "variable", "key_variable": "PRAGMA_KEY"}, "ends in _API_KEY"),
        ({"key_source": "variable", "key_variable": "DATABASE_URL"}, "ends in _API_KEY"),
        ({"usd_per_million_out": ""}, "Give both prices"),
        ({"usd_per_million_in": "-1"}, "not less than 0"),
        ({"temperatures": "warm"}, "Temperatures are numbers"),
        ({"temperatures": "3"}, "between 0 and 2"),
        ({"context_tokens": "0"}, "more than 0"),
        ({"at_once": "0"}, "between 1 and 8"),
        ({"at_once": "9"}, "between 1 and 8"),
    ],
)
def test_what_can_not_be_is_refused_and_the_key_typed_is_not_sent_back(
    root: Client, change: dict[str, str], said: str
) -> None:
    answer = root.post("/settings/models/new/", FORM | change)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert KEY not in answer.content.decode()
    assert not LanguageModel.objects.exists()


def test_without_pragma_key_the_form_says_what_to_do(root: Client, settings: Any) -> None:
    settings.PRAGMA_KEY = ""
    answer = root.post("/settings/models/new/", FORM)
    assert answer.status_code == 422
    assert "has no PRAGMA_KEY" in answer.content.decode()


def test_an_engineer_sees_names_and_changes_nothing(signed_in: Client, model: LanguageModel) -> None:
    page = signed_in.get("/settings/models/").content.decode()
    assert "scripted" in page
    assert model.api_base not in page
    assert "kept here" not in page
    for address in ("/settings/models/new/", f"/settings/models/{model.pk}/"):
        assert signed_in.get(address).status_code == 403
        assert signed_in.post(address, FORM).status_code == 403
    assert signed_in.post(f"/settings/models/{model.pk}/change/", {"do": "off"}).status_code == 403
    assert signed_in.post("/settings/limits/", {"run_usd": "1"}).status_code == 403
    model.refresh_from_db()
    assert model.enabled


def test_a_model_that_was_called_is_switched_off_rather_than_removed(admin: Person, make_model: MakeModel) -> None:
    used, unused = make_model("used"), make_model("unused")
    Call.objects.create(model=used, month="2026-12-01", agent="coder", expires_at="2026-12-01T00:00Z")
    catalogue.forget(unused, admin)
    with pytest.raises(Refused, match="Switch it off"):
        catalogue.forget(used, admin)
    assert list(LanguageModel.objects.all()) == [used]


# --- the test button ---------------------------------------------------------------------------------------------


def press(client: Client, model: LanguageModel) -> str:
    answer = client.post(f"/settings/models/{model.pk}/test/", headers={"hx-request": "true"})
    assert answer.status_code == 200
    return str(answer.content.decode())


def shown(client: Client) -> str:
    return str(
        client.get(f"/settings/models/tests/{Trial.objects.get().pk}/", headers={"hx-request": "true"}).content.decode()
    )


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("ready"), "It answers: ready"),
        (Reply(f"not {ECHO}", misbehaviour="401"), "Key: "),
        (Reply("no", misbehaviour="404"), "Name: "),
        (Reply("insufficient_quota", misbehaviour="429"), "Quota: "),
        (Reply("", misbehaviour="deaf"), "Time-out: "),
    ],
)
def test_the_test_button_says_exactly_what_is_wrong(
    signed_in: Client,
    server: Any,
    model: LanguageModel,
    sent: list[int],
    django_capture_on_commit_callbacks: Any,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    said: str,
) -> None:
    monkeypatch.setattr(trials, "SECONDS", 0.5)
    server.script.play(reply)
    with django_capture_on_commit_callbacks(execute=True):
        assert "being asked" in press(signed_in, model)
        assert "being asked" in press(signed_in, model)  # impatiently, again
    assert len(sent) == 1
    trials.carry_out(sent[0])
    trials.carry_out(sent[0])  # the message came twice
    assert len(server.script.requests) == 1
    page = shown(signed_in)
    assert said in page
    assert KEY not in page
    assert "hx-get" not in page
    call = Call.objects.get()
    assert (call.agent, call.run) == ("trial", None)


def test_a_price_that_litellm_lists_is_known_after_a_test(server: Any, make_model: MakeModel, person: Person) -> None:
    server.script.play(Reply("ready"))
    model = make_model(model_id="openai/gpt-4o", usd_per_million_in=None, usd_per_million_out=None, api_base="")
    own = make_model("own", usd_per_million_in=None, usd_per_million_out=None)
    assert trials._listed(model).usd_per_million_in == pytest.approx(2.5)
    trials.carry_out(Trial.objects.create(model=own, asked_by=person).pk)
    own.refresh_from_db()
    assert own.listed["usd_per_million_in"] is None


def test_an_address_where_nothing_listens_is_said(make_model: MakeModel, person: Person) -> None:
    model = make_model(api_base="http://127.0.0.1:9/v1")
    trial = Trial.objects.create(model=model, asked_by=person)
    trials.carry_out(trial.pk)
    trial.refresh_from_db()
    assert trial.fault == "address"
    assert trial.message.startswith("Address: nothing answers")


def test_a_key_that_can_not_be_opened_is_the_tests_result(model: LanguageModel, person: Person, settings: Any) -> None:
    settings.PRAGMA_KEY = "another-key-of-more-than-twenty-characters"
    trial = Trial.objects.create(model=model, asked_by=person)
    trials.carry_out(trial.pk)
    trial.refresh_from_db()
    assert (trial.state, trial.fault) == (TrialState.DONE, "key")
    assert "PRAGMA_OLD_KEYS" in trial.message


def test_a_test_that_no_worker_takes_says_so(
    signed_in: Client, model: LanguageModel, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial.objects.create(model=model, asked_by=person)
    monkeypatch.setattr(trials, "PATIENCE", trials.PATIENCE * 0)
    assert "No agents worker has taken it yet" in shown(signed_in)
    Trial.objects.filter(pk=trial.pk).update(asked_at=trial.asked_at - trials.GIVEN_UP * 2)
    assert "Nothing came back" in shown(signed_in)
