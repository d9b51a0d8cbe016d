"""Which versions a menu offers: all of a few; of many those that led, the newest ones and the neighbours. Any other is
reached by its number."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from apps.runs.models import Version

MOST = 24
_LEADS, _NEWEST, _BESIDE = 8, 8, 4


def worth_naming(versions: Sequence[Version], shown: Collection[int] = ()) -> list[Version]:
    """Of one run's versions in order, at most about `MOST`; always those whose numbers are `shown`."""
    if len(versions) <= MOST:
        return list(versions)
    leads: list[int] = []
    best = 1.0
    for version in versions:
        speedup = version.measurement.speedup if version.measurement else None
        if speedup is not None and speedup > best:
            best = speedup
            leads.append(version.number)
    chosen = {*leads[-_LEADS:], *(version.number for version in versions[-_NEWEST:]), *shown}
    places = [place for place, version in enumerate(versions) if version.number in shown]
    for place in places:
        chosen |= {version.number for version in versions[max(0, place - _BESIDE) : place + _BESIDE + 1]}
    return [version for version in versions if version.number in chosen]
