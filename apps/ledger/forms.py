"""Forms of models and limits: what is typed is checked here, with errors that say what to do."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django import forms

from apps.agents.gateway.secret import Secret
from apps.ledger import sealing
from apps.ledger.models import KeySource, LanguageModel, Limits
from apps.people.refusals import Refused

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
# What the agents worker is given of the environment: a name outside would be empty there, or a secret of another kind.
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY|PRAGMA_MODEL[A-Z0-9_]*")
MOST_TEMPERATURES = 8
MOST_AT_ONCE = 8  # a run has no more candidates in an iteration


class ModelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A model. The key is typed, never shown: empty leaves a kept one as it is."""

    key = forms.CharField(
        required=False,
        max_length=4000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    temperatures = forms.CharField(required=False)

    class Meta:
        model = LanguageModel
        fields = (
            "name", "model_id", "api_base", "key_source", "key_variable", "usd_per_million_in", "usd_per_million_out",
            "context_tokens", "answer_tokens", "silence_seconds", "call_seconds", "at_once", "enabled",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].disabled = self.instance.pk is not None
        self.fields["at_once"].required = False
        for name in ("usd_per_million_in", "usd_per_million_out"):
            if self.initial.get(name) is not None:
                self.initial[name] = f"{self.initial[name].normalize():f}"
        self.initial.setdefault("temperatures", ", ".join(f"{one:g}" for one in self.instance.temperatures))

    def clean_name(self) -> str:
        """A name that fits on a command line."""
        name: str = self.cleaned_data["name"]
        if self.instance.pk is None and (not NAME.fullmatch(name) or name == "builtin"):
            raise forms.ValidationError("A name has letters, digits and . _ : / @ + - only, and is not builtin.")
        return name

    def clean_model_id(self) -> str:
        """litellm's name of the model."""
        model_id: str = self.cleaned_data["model_id"].strip()
        if "/" not in model_id.strip("/") or re.search(r"\s", model_id):
            raise forms.ValidationError(
                "Write PROVIDER/MODEL, as litellm names it: openai/gpt-5, anthropic/claude-sonnet-4-5, ollama_chat/qwen3. "
                "For any server that speaks OpenAI's protocol it is openai/ and the name that server gives the model."
            )
        return model_id

    def clean_api_base(self) -> str:
        """An address without credentials: those would be shown."""
        address: str = self.cleaned_data["api_base"].strip()
        if not address:
            return ""
        try:
            parts = urlsplit(address)
            hidden = parts.username or parts.password
        except ValueError:
            raise forms.ValidationError("That is no address. It looks like https://models.example.org/v1.") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise forms.ValidationError("An address begins with http:// or https:// and names a host.")
        if hidden or parts.query or parts.fragment:
            raise forms.ValidationError(
                "Leave user, password and everything after ? out of the address; the key has a field of its own."
            )
        return address

    def clean_at_once(self) -> int:
        """A number of questions; empty leaves it as it is."""
        given: int | None = self.cleaned_data["at_once"]
        many = self.instance.at_once if given is None else given
        if not 1 <= many <= MOST_AT_ONCE:
            raise forms.ValidationError(f"A run asks between 1 and {MOST_AT_ONCE} questions at once.")
        return many

    def clean_temperatures(self) -> list[float]:
        """Numbers between 0 and 2, one for each candidate."""
        return read_temperatures(words_of(self.cleaned_data["temperatures"]))

    def clean(self) -> dict[str, Any]:
        """A key where one is to be used, both prices or none."""
        data: dict[str, Any] = super().clean() or {}
        self._check_key(data)
        prices = (data.get("usd_per_million_in"), data.get("usd_per_million_out"))
        if (prices[0] is None) != (prices[1] is None):
            self.add_error("usd_per_million_out", "Give both prices, or leave both empty.")
        for name in ("usd_per_million_in", "usd_per_million_out"):
            if data.get(name) is not None and data[name] < 0:
                self.add_error(name, "A price is not less than 0.")
        for name in ("context_tokens", "answer_tokens", "silence_seconds", "call_seconds"):
            if data.get(name) == 0:
                self.add_error(name, "Must be more than 0.")
        return data

    def _check_key(self, data: dict[str, Any]) -> None:
        match data.get("key_source"):
            case KeySource.VARIABLE:
                if not VARIABLE.fullmatch(data.get("key_variable", "")):
                    self.add_error(
                        "key_variable",
                        "Name the variable: one that ends in _API_KEY or begins with PRAGMA_MODEL. Others do not reach the "
                        "agents worker.",
                    )
            case KeySource.KEPT:
                self._seal(data)

    def _seal(self, data: dict[str, Any]) -> None:
        """Encrypt the key at once, so that a missing PRAGMA_KEY is said beside the field."""
        typed = Secret(data.pop("key", "") or "")
        if not typed:
            if not self.instance.key_sealed:
                self.add_error("key", "Type the key in.")
            return
        try:
            data["key_sealed"] = sealing.seal(typed)
        except Refused as refusal:
            self.add_error("key", refusal.message)


class LimitsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The team's limits; an empty field is no limit."""

    class Meta:
        model = Limits
        fields = ("team_month_usd", "person_month_usd", "run_usd")

    def clean(self) -> dict[str, Any]:
        """None below nothing."""
        data: dict[str, Any] = super().clean() or {}
        for name, value in list(data.items()):
            if isinstance(value, Decimal) and value < 0:
                self.add_error(name, "A limit is not less than 0. Leave it empty for none.")
        return data


class PersonLimitForm(forms.Form):
    """One person's limit; empty: everyone's holds."""

    month_usd = forms.DecimalField(required=False, min_value=Decimal(0), max_digits=12, decimal_places=2)


def words_of(text: str) -> list[str]:
    """The words of a list as people type it: commas, semicolons or blanks between them."""
    return [word for word in re.split(r"[,;\s]+", text.strip()) if word]


def read_temperatures(words: list[str]) -> list[float]:
    """Temperatures as numbers. Raises `forms.ValidationError`."""
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise forms.ValidationError("Temperatures are numbers, commas between them: 0.2, 0.6, 0.8") from None
    if any(not 0 <= value <= 2 for value in values):
        raise forms.ValidationError("A temperature lies between 0 and 2.")
    if len(values) > MOST_TEMPERATURES:
        raise forms.ValidationError(f"At most {MOST_TEMPERATURES}: one for each candidate of an iteration.")
    return values
