"""`host --attacks`: try the jail's attacks on this host and say which are contained, and by what."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence

from apps.kernels.attacks import Outcome, try_all
from apps.kernels.cli.exit_codes import GOOD, OTHER_VERDICT, HostFailed
from apps.kernels.cli.inputs import log
from apps.kernels.cli.tables import table
from apps.kernels.evaluation import Progress
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed, isolation_level
from apps.kernels.plain import to_plain


def run(options: Namespace) -> int:
    """Print the table; 0 where every attack is contained, 1 where one is not."""
    try:
        with Zygote(options.mode) as zygote:
            outcomes = try_all(zygote, lambda name: log(Progress("attack", name)))
            mode, level = zygote.mode, isolation_level(zygote.mode).value
    except (JailFailed, ZygoteFailed) as failure:
        raise HostFailed(f"this host can't jail: {failure}") from None
    if options.json:
        print(json.dumps({"mode": mode, "level": level, "attacks": to_plain(outcomes)}))
    else:
        print(described(mode, level, outcomes))
    return GOOD if all(outcome.contained for outcome in outcomes) else OTHER_VERDICT


def described(mode: str, level: str, outcomes: Sequence[Outcome]) -> str:
    """The table for a terminal."""
    rows = [(o.area, o.name, "contained" if o.contained else "NOT CONTAINED", o.by, o.seen) for o in outcomes]
    held = sum(outcome.contained for outcome in outcomes)
    head = f"{held} of {len(outcomes)} attacks contained (mode {mode}, isolation {level})"
    return f"{head}\n\n{table(rows, ('on', 'attack', '', 'by', 'seen'))}"
