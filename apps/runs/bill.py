"""What a run has come to, on its own row: the ledger's sums over its calls, and nothing else where a model was asked.

The journal alone doesn't know it. A worker that dies between an answer's arrival and its journalling has paid for the answer,
and its successor pays for the same question again.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from apps.ledger import spending


def of(run: int) -> dict[str, Any] | None:
    """The fields of the run's row that say what it took; None where it has made no call, as the built-in coder and what
    came out of a transcript haven't. What a call took whose worker died is unknown, like a call without a price."""
    spent = spending.of_run(run)
    if not spent.calls:
        return None
    return {
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "cost_usd": spent.usd.quantize(Decimal("1e-6")),
        "cost_unknown": spent.unpriced > 0 or spent.lost > 0,
        "cost_estimated": spent.estimated > 0,
    }
