"""Trying a model out: a page asks, an agents worker does it (the web process loads no litellm), the page shows the result."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.agents.gateway.purse import Call as Made
from apps.agents.gateway.purse import Largest
from apps.kernels.plain import to_plain
from apps.ledger import accounts, registry
from apps.ledger.accounts import Place
from apps.ledger.limits import Account
from apps.ledger.models import LanguageModel, Trial, TrialState
from apps.ledger.registry import Listed
from apps.people.models import Person
from apps.people.refusals import Refused

TASK, QUEUE = "ledger.try_model", "runs"
SECONDS = 45.0  # the longest a trial asks; a model that reasons first takes its time
PATIENCE = timedelta(seconds=15)  # until the page wonders whether a worker is there
GIVEN_UP = timedelta(seconds=90)

log = logging.getLogger(__name__)


def begin(model: LanguageModel, by: Person) -> Trial:
    """Have the model tried, or the trial that is going on already."""
    with transaction.atomic():
        going = Trial.objects.filter(model=model, asked_at__gt=timezone.now() - GIVEN_UP).exclude(state=TrialState.DONE)
        if (trial := going.first()) is not None:
            return trial
        trial = Trial.objects.create(model=model, asked_by=by)
        transaction.on_commit(lambda: _send(trial.pk))
    return trial


def carry_out(number: int) -> None:
    """Ask the model, in a worker; once, however often the message comes."""
    if not Trial.objects.filter(pk=number, state=TrialState.WAITING).update(state=TrialState.RUNNING):
        return
    trial = Trial.objects.select_related("model", "asked_by").get(pk=number)
    try:
        _ask(trial)
    except Refused as refusal:
        _end(number, "key", refusal.message)
    except Exception:
        log.exception("Trial %s of %s broke off", number, trial.model)
        _end(number, "strange", "The trial broke off in PRAGMA itself; the agents worker's log says where.")


def has_no_worker(trial: Trial) -> bool:
    """Whether it has waited so long that no worker seems to be there."""
    return trial.state == TrialState.WAITING and timezone.now() - trial.asked_at > PATIENCE


def is_given_up(trial: Trial) -> bool:
    """Whether nothing will come of it any more."""
    return not trial.is_over and timezone.now() - trial.asked_at > GIVEN_UP


class TrialPurse:
    """`apps.agents.gateway.purse.Purse` of a trial: it spends the money of whoever asked."""

    def __init__(self, model: LanguageModel, by: Person | None) -> None:
        self._model = model
        self._account = Account(None, by.pk if by else None, str(by or ""))

    def reserve(self, model: str, purpose: str, largest: Largest) -> str:
        """See `Purse`."""
        return str(accounts.reserve(self._model, self._account, Place("trial"), largest))

    def settle(self, token: str, call: Made) -> None:
        """See `Purse`."""
        accounts.settle(int(token), call)


def _ask(trial: Trial) -> None:
    from apps.agents.gateway.probing import probe
    from apps.agents.gateway.provider import terms

    settings = registry.settings_of(trial.model)
    LanguageModel.objects.filter(pk=trial.model_id).update(listed=to_plain(_listed(trial.model)))
    found = probe(settings, seconds=SECONDS, purse=TrialPurse(trial.model, trial.asked_by))
    taken = terms(settings)
    message = found.message
    if found.well:
        message = (
            f"{message.rstrip('.')}. Context {taken.context_tokens:,} tokens, answers up to {taken.answer_tokens:,}."
        )
    _end(trial.pk, found.fault or "", message, found.seconds, found.first_text_seconds)


def _listed(model: LanguageModel) -> Listed:
    """What litellm's own list says of the model, whatever was typed."""
    from apps.agents.gateway.provider import listed

    known = listed(model.model_id, model.api_base or None)
    return Listed(known.context_tokens, known.answer_tokens, _million(known.usd_in), _million(known.usd_out))


def _million(price: float | None) -> float | None:
    return None if price is None else round(price * 1e6, 6)


def _end(
    number: int, fault: str, message: str, seconds: float | None = None, first_text_seconds: float | None = None
) -> None:
    Trial.objects.filter(pk=number).update(
        state=TrialState.DONE,
        fault=fault,
        message=message,
        seconds=seconds,
        first_text_seconds=first_text_seconds,
        ended_at=timezone.now(),
    )


def _send(number: int) -> None:
    try:
        current_app.send_task(TASK, args=[number], queue=QUEUE, retry=False, ignore_result=True, expires=60)
    except (OperationalError, RedisError, OSError) as problem:
        log.warning("The broker did not take trial %s: %s", number, problem)
        _end(number, "broker", "The broker does not answer, so no worker could be asked. Start it, and try again.")
