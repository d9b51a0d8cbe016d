"""Money as pages show it: what is unknown is said, never shown as nothing."""

from __future__ import annotations

from decimal import Decimal

from django import template

from apps.ledger.limits import dollars as in_words
from apps.ledger.models import Call, Outcome
from apps.ledger.spending import Spent

register = template.Library()


@register.filter
def dollars(amount: Decimal | None) -> str:
    """An amount: `$1.20`, `$0.0312`; an unknown one is said to be."""
    return "unknown" if amount is None else in_words(amount)


@register.filter
def usd(spent: Spent) -> str:
    """What was spent, as far as prices are known; `≈` where tokens were estimated."""
    priced = spent.calls - spent.unpriced - spent.lost
    if spent.unpriced and not spent.usd and priced <= 0:
        return "unknown"
    said = ("≈ " if spent.estimated else "") + in_words(spent.usd)
    return f"over {said}" if spent.unpriced or spent.lost else said


@register.filter
def tokens(spent: Spent) -> str:
    """Tokens in and out together."""
    return f"{spent.tokens_in + spent.tokens_out:,}"


@register.filter
def notes(spent: Spent) -> str:
    """What a reader of the sum must know."""
    said = []
    if spent.unpriced:
        said.append(f"{spent.unpriced} at an unknown price")
    if spent.lost:
        said.append(f"{spent.lost} lost with their worker, cost unknown")
    if spent.estimated:
        said.append(f"{spent.estimated} estimated")
    return ", ".join(said)


@register.filter
def cost(call: Call) -> str:
    """What one call cost, or that it is not known (yet)."""
    if call.outcome == Outcome.OPEN:
        return f"up to {dollars(call.reserved_usd)}"
    return ("≈ " if call.estimated and call.cost_usd is not None else "") + dollars(call.cost_usd)
