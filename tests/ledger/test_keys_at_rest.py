"""Keys are encrypted where they lie; without the right PRAGMA_KEY nobody opens them, and everybody is told what to do."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.agents.gateway.secret import Secret
from apps.ledger import registry, sealing
from apps.ledger.models import KeySource, LanguageModel
from tests.agents_models.conftest import KEY
from tests.ledger.conftest import MakeModel

OTHER = "another-key-of-more-than-twenty-characters"


def test_what_is_stored_is_not_the_key_and_never_twice_the_same() -> None:
    one, other = sealing.seal(Secret(KEY)), sealing.seal(Secret(KEY))
    assert KEY not in one
    assert one != other
    assert sealing.opened(one, "m").reveal() == sealing.opened(other, "m").reveal() == KEY


def test_a_changed_pragma_key_is_said_and_the_old_one_opens_again(settings: Any, model: LanguageModel) -> None:
    old, settings.PRAGMA_KEY = settings.PRAGMA_KEY, OTHER
    with pytest.raises(sealing.CannotOpen, match="PRAGMA_OLD_KEYS"):
        registry.settings_of(model)
    settings.PRAGMA_OLD_KEYS = [old]
    key = registry.settings_of(model).key
    assert key is not None and key.reveal() == KEY


@pytest.mark.parametrize(("key", "said"), [("", "no PRAGMA_KEY"), ("short", "too short")])
def test_without_a_pragma_key_nothing_is_kept(settings: Any, key: str, said: str) -> None:
    settings.PRAGMA_KEY = key
    with pytest.raises(sealing.CannotSeal, match=said):
        sealing.seal(Secret(KEY))


def test_keys_are_sealed_anew_under_the_present_pragma_key(settings: Any, model: LanguageModel) -> None:
    settings.PRAGMA_OLD_KEYS, settings.PRAGMA_KEY = [settings.PRAGMA_KEY], OTHER
    out = StringIO()
    call_command("reseal_keys", stdout=out)
    settings.PRAGMA_OLD_KEYS = []
    model.refresh_from_db()
    key = registry.settings_of(model).key
    assert key is not None and key.reveal() == KEY
    assert "1 key(s)" in out.getvalue()
    settings.PRAGMA_KEY = "a-third-key-of-more-than-twenty-characters"
    with pytest.raises(CommandError, match="The key of scripted"):
        call_command("reseal_keys", stdout=out)


def test_a_variable_that_is_not_set_is_named(make_model: MakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(key_source=KeySource.VARIABLE, key_variable="TEAM_API_KEY", key_sealed="")
    monkeypatch.delenv("TEAM_API_KEY", raising=False)
    with pytest.raises(registry.NoKey, match="environment variable TEAM_API_KEY"):
        registry.settings_of(model)
    monkeypatch.setenv("TEAM_API_KEY", KEY)
    found = registry.settings_of(model)
    assert found.key is not None and found.key.reveal() == KEY
    assert KEY not in repr(found)
