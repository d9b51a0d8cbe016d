"""Forms of the pages: what is typed becomes an order, or errors that say what to do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict

from apps.agents.coders import BUILTIN
from apps.agents.words import Seed
from apps.kernels.evaluation import Language, Policy
from apps.ledger.forms import read_temperatures, words_of
from apps.runs.launch import CANDIDATES_LIMIT, LaunchOrder, order_of
from apps.runs.models import Problem, Run, Version
from apps.runs.problems import Overrides
from apps.runs.seeding import of_version
from apps.runs.steering import ITERATIONS_LIMIT

SIZE = "set-"
LARGEST_UPLOAD = 256 * 1024


class SourceField(forms.CharField):
    """A pasted source as it is in a file: browsers send every line end as CR LF, and the content's hash counts them."""

    def to_python(self, value: object) -> str:
        """The text with plain line ends."""
        return (super().to_python(value) or "").replace("\r\n", "\n")


class LaunchForm(forms.Form):
    """Everything of a launch but the sizes, which depend on the problem (`overrides_of`)."""

    how = forms.ChoiceField(choices=[("choose", ""), ("paste", "")], required=False)
    problem = forms.SlugField(required=False)
    source = SourceField(required=False, strip=False)
    title = forms.CharField(required=False, max_length=120)
    file = forms.FileField(required=False)
    language = forms.ChoiceField(choices=[(word.value, word.value) for word in Language])
    policy = forms.ChoiceField(choices=[(word.value, word.value) for word in Policy])
    device = forms.CharField(error_messages={"required": "Choose a host."})
    coder = forms.CharField(initial=BUILTIN)
    iterations = forms.IntegerField(min_value=1, max_value=ITERATIONS_LIMIT)
    candidates = forms.IntegerField(min_value=1, max_value=CANDIDATES_LIMIT)
    profile = forms.ChoiceField(choices=[("on", "on"), ("off", "off"), ("twins", "both as twins")])
    goal = forms.FloatField(required=False, min_value=1)
    minutes = forms.FloatField(required=False, min_value=0)
    money = forms.DecimalField(required=False, min_value=Decimal(0), max_digits=12, decimal_places=6)
    tokens = forms.IntegerField(required=False, min_value=1)
    temperatures = forms.CharField(required=False)
    notes = forms.CharField(required=False)
    builtin_best = forms.BooleanField(required=False)
    own = SourceField(required=False, strip=False)
    own_file = forms.FileField(required=False)
    seed = forms.RegexField(r"^\d{1,9}\.\d{1,5}$", required=False, help_text="RUN.NUMBER of a version to start from")

    seeds_like = forms.IntegerField(required=False, min_value=1, help_text="a run: start from what it started from")

    def clean_seeds_like(self) -> Run | None:
        """The run that started from what this one starts from, if one was named."""
        number = self.cleaned_data["seeds_like"]
        if not number:
            return None
        found = Run.objects.select_related("problem").filter(pk=number).first()
        if found is None:
            raise forms.ValidationError(f"There is no run {number} any more. Take its starting versions away.")
        return found

    def clean_seed(self) -> Version | None:
        """The version the run starts from, if one was named."""
        named = self.cleaned_data["seed"]
        if not named:
            return None
        run, _, number = named.partition(".")
        found = Version.objects.select_related("run__problem").filter(run_id=int(run), number=int(number)).first()
        if found is None:
            raise forms.ValidationError(f"There is no version {named} to start from. Take it away, or choose another.")
        return found

    def clean_temperatures(self) -> tuple[float, ...]:
        """Numbers, one for each candidate."""
        return tuple(read_temperatures(words_of(self.cleaned_data["temperatures"])))

    def clean(self) -> dict[str, Any]:
        """An uploaded file takes the place of the pasted text; one of problem and text has to be there."""
        data: dict[str, Any] = super().clean() or {}
        upload = data.get("file")
        if upload is not None:
            if upload.size > LARGEST_UPLOAD:
                raise forms.ValidationError(
                    {"source": f"The file has {upload.size} bytes; a problem has at most {LARGEST_UPLOAD}."}
                )
            try:
                data["source"], data["how"] = upload.read().decode(), "paste"
            except UnicodeDecodeError:
                raise forms.ValidationError(
                    {"source": "The file is not UTF-8 text. A problem is a Python source."}
                ) from None
        if data.get("how") == "paste" and not data.get("source", "").strip():
            self.add_error("source", "Paste the problem's source, or upload its file.")
        if data.get("how") != "paste" and not data.get("problem"):
            self.add_error("problem", "Choose a problem, or paste one.")
        seed = data.get("seed")
        if seed is not None and (data.get("how") == "paste" or seed.run.problem.slug != data.get("problem")):
            self.add_error(
                "seed",
                f"Run {seed.run_id} {seed} solves {seed.run.problem}: a run of another problem can't start from it.",
            )
        like = data.get("seeds_like")
        if like is not None and (data.get("how") == "paste" or like.problem.slug != data.get("problem")):
            self.add_error(
                "seeds_like",
                f"Run {like.pk} solves {like.problem}: a run of another problem can't start from what it started from.",
            )
        return data

    def order(self, problem: Problem, overrides: Overrides) -> LaunchOrder:
        """The order that this form is, once valid."""
        data = self.cleaned_data
        return LaunchOrder(
            problem=problem,
            device=data["device"],
            overrides=overrides,
            language=data["language"],
            policy=data["policy"],
            coder=data["coder"],
            iterations=data["iterations"],
            candidates=data["candidates"],
            profile=data["profile"] != "off",
            twins=data["profile"] == "twins",
            goal=data["goal"],
            seconds=data["minutes"] * 60 if data["minutes"] else None,
            money_usd=data["money"],
            tokens=data["tokens"],
            temperatures=data["temperatures"] if data["coder"] != BUILTIN else (),
            notes=data["notes"],
            seeds=tuple(_seeds(data.get("seed"), data.get("seeds_like"))),
        )


def _seeds(version: Version | None, like: Run | None) -> Iterator[Seed]:
    """That version, and what that run started from."""
    if version is not None:
        yield of_version(version)
    if like is not None:
        yield from order_of(like).seeds


def overrides_of(query: QueryDict) -> Overrides:
    """The sizes typed: `set-BATCH=4096`. A value is read as Python writes it, anything else is taken as text."""
    return {
        name.removeprefix(SIZE): _value(str(value))
        for name, value in query.items()
        if name.startswith(SIZE) and value != ""
    }


def _value(text: str) -> int | float | bool | str:
    try:
        value = ast.literal_eval(
            text.strip().replace(",", "_") if text.strip().replace(",", "").isdecimal() else text.strip()
        )
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | bool | str) else text
