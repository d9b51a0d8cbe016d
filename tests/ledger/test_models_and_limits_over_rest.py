"""Models and limits over REST: what the settings' pages do, with the same words where something can't be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.ledger.models import LanguageModel, Limits, PersonLimit
from apps.people.models import AuditEntry, Person
from tests.agents_models.conftest import KEY

NEW = {
    "name": "team-model",
    "model_id": "openai/team",
    "api_base": "https://models.example.org/v1",
    "key_source": "kept",
    "key": KEY,
    "temperatures": [0.2, 0.7],
}


@pytest.fixture
def root(admin: Person) -> Client:
    client = Client()
    client.force_login(admin)
    return client


def asked(client: Client, method: str, address: str, body: Any = None) -> Any:
    return client.generic(method, f"/api/v1/{address}", "" if body is None else json.dumps(body),
                          content_type="application/json")  # fmt: skip


def test_a_model_is_added_changed_and_removed_and_its_key_never_given(root: Client) -> None:
    made = asked(root, "POST", "models/", NEW)
    assert made.status_code == 201, made.content
    model = LanguageModel.objects.get()
    assert (model.temperatures, model.enabled, bool(model.key_sealed)) == ([0.2, 0.7], True, True)
    sealed = model.key_sealed
    changed = asked(root, "PATCH", "models/team-model/", {"enabled": False, "context_tokens": 9000})
    assert (changed.json()["enabled"], changed.json()["context_tokens"]) == (False, 9000)
    model.refresh_from_db()
    assert (model.key_sealed, model.temperatures) == (sealed, [0.2, 0.7])
    for answer in (made, changed, asked(root, "GET", "models/")):
        assert KEY not in answer.content.decode() and sealed not in answer.content.decode()
    assert asked(root, "DELETE", "models/team-model/").status_code == 204
    assert not LanguageModel.objects.exists()
    kinds = list(AuditEntry.objects.filter(kind__startswith="model.").order_by("pk").values_list("kind", flat=True))
    assert kinds == ["model.added", "model.changed", "model.removed"]


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"name": "builtin"}, "name", "is not builtin"),
        ({"model_id": "gpt"}, "model_id", "PROVIDER/MODEL"),
        ({"key": ""}, "key", "Type the key in"),
        ({"temperatures": [3]}, "temperatures", "between 0 and 2"),
        ({"usd_per_million_in": "1"}, "usd_per_million_out", "Give both prices"),
    ],
)
def test_what_can_not_be_is_refused_in_the_forms_words(
    root: Client, change: dict[str, Any], field: str, says: str
) -> None:
    answer = asked(root, "POST", "models/", NEW | change)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert says in answer.json()["message"] and KEY not in answer.content.decode()
    assert not LanguageModel.objects.exists()


def test_a_model_is_tested(root: Client, model: LanguageModel, sent: list[int]) -> None:
    trial = root.post("/api/v1/trials/", {"model": model.name}, content_type="application/json")
    assert (trial.status_code, trial.json()["state"]) == (202, "waiting")
    assert root.get(f"/api/v1/trials/{trial.json()['id']}/").json()["well"] is False


def test_limits_are_set_and_the_month_is_told(root: Client, signed_in: Client, person: Person) -> None:
    told = asked(root, "PATCH", "limits/", {"run_usd": "2.50", "team_month_usd": "100"}).json()
    assert (told["limits"]["run_usd"], told["limits"]["person_month_usd"]) == ("2.50", None)
    asked(root, "PATCH", "limits/", {"team_month_usd": None})
    assert (Limits.objects.get().team_month_usd, str(Limits.objects.get().run_usd)) == (None, "2.50")
    own = asked(root, "PUT", f"limits/{person.username}/", {"month_usd": "7"}).json()
    mine = next(one for one in own["people"] if one["username"] == person.username)
    assert (mine["limit_usd"], mine["own_limit_usd"], mine["spent_usd"]) == ("7.00", "7.00", "0.00000000")
    assert asked(root, "PATCH", "limits/", {"run_usd": "-1"}).json()["field"] == "run_usd"
    assert [one["username"] for one in asked(signed_in, "GET", "limits/").json()["people"]] == [person.username]
    asked(root, "PUT", f"limits/{person.username}/", {"month_usd": None})
    assert not PersonLimit.objects.exists()
