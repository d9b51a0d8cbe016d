"""Models, trials and terms as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from apps.agents.gateway.secret import shown_address
from apps.ledger import registry, trials
from apps.ledger.models import KeySource, LanguageModel, Trial
from apps.ledger.registry import Terms


@dataclass(frozen=True)
class TrialShown:
    """A trial as a person reads it; `again` says that the page should ask once more in a second."""

    number: int
    model: int
    tone: str
    words: str
    detail: str
    again: bool

    @classmethod
    def of(cls, trial: Trial) -> TrialShown:
        """What is to be said of it now."""
        if trial.is_over:
            tone = "good" if trial.is_well else "bad"
            words = (
                f"✓ well, {trial.seconds:.1f} s" if trial.is_well and trial.seconds is not None else "✕ can't be used"
            )
            return cls(trial.pk, trial.model_id, tone, words, trial.message, again=False)
        if trials.is_given_up(trial):
            why = "Nothing came back. See whether the agents worker runs (Hosts, or manage.py health), and try again."
            return cls(trial.pk, trial.model_id, "bad", "✕ no result", why, again=False)
        if trials.has_no_worker(trial):
            why = "No agents worker has taken it yet. It runs with make run; manage.py health says whether it does."
            return cls(trial.pk, trial.model_id, "warn", "waiting for a worker", why, again=True)
        return cls(trial.pk, trial.model_id, "run", "being asked …", "", again=True)


@dataclass(frozen=True)
class ModelRow:
    """One model of the list."""

    model: LanguageModel
    address: str
    key: str
    price: str
    price_source: str
    context: int | None
    trial: TrialShown | None


def model_rows() -> list[ModelRow]:
    """Every model, those that may be called first."""
    latest = Trial.objects.filter(model=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    models = list(LanguageModel.objects.annotate(latest=Subquery(latest)))
    shown = Trial.objects.select_related("model").in_bulk([one.latest for one in models if one.latest])
    return [_row(one, shown.get(one.latest)) for one in models]


def _row(model: LanguageModel, trial: Trial | None) -> ModelRow:
    terms = registry.terms_of(model)
    return ModelRow(
        model=model,
        address=shown_address(model.api_base) if model.api_base else f"{model.model_id.partition('/')[0]}'s own",
        key=key_words(model),
        price=price_words(terms),
        price_source="" if not terms.is_priced else "typed here" if model.has_price else "listed by litellm",
        context=terms.context_tokens,
        trial=TrialShown.of(trial) if trial else None,
    )


def key_words(model: LanguageModel) -> str:
    """Where its key is. The key itself is never shown."""
    match model.key_source:
        case KeySource.VARIABLE:
            return f"environment: {model.key_variable}"
        case KeySource.KEPT:
            return "kept here, encrypted"
    return "none is sent"


def price_words(terms: Terms) -> str:
    """Its price for a million tokens, or that nobody knows it."""
    if terms.usd_per_million_in is None or terms.usd_per_million_out is None:
        return "unknown" if terms.tried else "not looked up yet: test it"
    if terms.usd_per_million_in == terms.usd_per_million_out == 0:
        return "free"
    return f"${terms.usd_per_million_in.normalize():f} in, ${terms.usd_per_million_out.normalize():f} out"
