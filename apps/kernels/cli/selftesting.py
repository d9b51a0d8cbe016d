"""`selftest`: the judge tried on candidates whose verdict is known, honest and dishonest ones."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from apps.kernels.cli.complete import complete
from apps.kernels.cli.exit_codes import GOOD, HOST_FAILED, OTHER_VERDICT, BadInput, Ending, HostFailed
from apps.kernels.cli.tables import table
from apps.kernels.jail import JailFailed, ZygoteFailed
from apps.kernels.judge import HostCannotJudge
from apps.kernels.plain import Plain
from apps.kernels.selftest.bench import NOT_JUDGED, Tried
from apps.kernels.selftest.corpus import KINDS, Entry, entries
from apps.kernels.selftest.trying import at_once, try_all

SCHEMA = 1
REASON_SHOWN = 70  # characters of a reason in the table; --json has all of it


def run(options: Namespace) -> int:
    """Try them all and print; 0 where all is as expected, 1 where something is not, 3 where this host can't judge."""
    started = time.monotonic()
    try:
        found, host = _tried(_chosen(options.only))
    except Ending as ending:
        if options.json:
            print(json.dumps(report([], {}, 0.0, str(ending))))
        raise
    seconds = time.monotonic() - started
    print(json.dumps(report(found, host, seconds)) if options.json else described(found, seconds))
    if all(one.as_expected for one in found):
        return GOOD
    return HOST_FAILED if all(one.as_expected or one.why == NOT_JUDGED for one in found) else OTHER_VERDICT


def report(found: Sequence[Tried], host: dict[str, str], seconds: float, error: str | None = None) -> Plain:
    """The object that `--json` prints. Every key is always there; `error` says why nothing was tried, else null."""
    return {
        "schema": SCHEMA,
        "as_expected": bool(found) and all(one.as_expected for one in found),
        "tried": len(found),
        "unexpected": sum(not one.as_expected for one in found),
        "seconds": round(seconds, 1),
        "host": {key: host.get(key) for key in ("torch", "isolation", "level")},
        "candidates": [complete(one, Tried) for one in found],
        "error": error,
    }


def described(found: Sequence[Tried], seconds: float) -> str:
    """A table by kind for a terminal, what is not as expected once more, and the sum of it."""
    parts = []
    for kind, words in KINDS.items():
        rows = [_row(one) for one in found if one.kind == kind]
        if rows:
            header = ("candidate", "expected", "found", "", "reason", "s")
            parts.append(f"{kind}: {words}\n{table(rows, header)}")
    odd = [one for one in found if not one.as_expected]
    if odd:
        rows = [(f"{one.kind}/{one.candidate}", one.why, _short(one)) for one in odd]
        parts.append(f"Not as expected\n{table(rows)}")
    second = [one for one in found if one.as_expected and one.at_first]
    if second:
        rows = [(f"{one.kind}/{one.candidate}", f"at first {one.at_first}") for one in second]
        parts.append(f"As expected only when tried again, alone\n{table(rows)}")
    honest = sum(one.kind == "honest" for one in found)
    parts.append(
        f"{len(found)} candidates tried in {seconds:.0f} s: {len(found) - honest} dishonest or wrong, {honest} honest; "
        + (f"{len(odd)} not as expected." if odd else "all as expected.")
        + (f" {len(second)} as expected only when tried again, alone." if second else "")
    )
    return "\n\n".join(parts)


def _short(one: Tried) -> str:
    """The reason of what is not as expected."""
    return _on_one_line(one.reason)[:300]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _row(one: Tried) -> tuple[str, ...]:
    reason = _on_one_line(one.reason)
    shown = reason if len(reason) <= REASON_SHOWN else f"{reason[: REASON_SHOWN - 1]}…"
    return (
        one.candidate,
        " or ".join(one.expected),
        one.found or "not judged",
        "ok" if one.as_expected else "NOT",
        shown or "–",
        f"{one.seconds:.1f}",
    )


def _chosen(only: Sequence[str]) -> tuple[Entry, ...]:
    chosen = entries(tuple(only))
    if not chosen:
        raise BadInput(f"no candidate is called {' or '.join(only)}; there are the kinds {', '.join(KINDS)}.")
    return chosen


def _tried(chosen: Sequence[Entry]) -> tuple[list[Tried], dict[str, str]]:
    def watch(done: int, one: Tried) -> None:
        words = f"{one.found or 'not judged'}, {'as expected' if one.as_expected else f'{one.why}: {_short(one)}'}"
        again = ", again and alone" if one.at_first else ""
        print(f"{done}/{len(chosen)}{again} {one.kind}/{one.candidate}: {words}", file=sys.stderr, flush=True)

    def waiting(holder: str) -> None:
        print(f"waiting: process {holder} is using this machine's CPU", file=sys.stderr, flush=True)

    print(f"judging {len(chosen)} candidates, {at_once()} at once", file=sys.stderr, flush=True)
    try:
        return try_all(chosen, watch, waiting)
    except (HostCannotJudge, JailFailed, ZygoteFailed) as failure:
        raise HostFailed(f"this host could not judge: {failure}") from None
