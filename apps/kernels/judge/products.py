"""Where the library's products and convolutions run: the same calls, made by the judge in a process of its own.

Under policy `library` torch may compute them and nothing else, but all of torch lies in one object. So the calls that were
seen are made again, alone, and the pages of code they use are noted: what a candidate runs in torch's object besides is
torch computing something else, however it was called.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from apps.kernels.evaluation import Policy
from apps.kernels.jail import ChannelBroken, ChannelTimeout
from apps.kernels.jail import freeze as ice
from apps.kernels.judge import policy
from apps.kernels.judge.session import Session
from apps.kernels.plain import Plain
from apps.kernels.profile.sampling import NoSampling, sampled

PAGE_BITS = 12
NEIGHBOURS = 2  # pages beside one that was seen: a loop of which a sample hit only one end
LEARNING_SECONDS = 0.25
ENOUGH = 250
MOST_SECONDS = 4.0

# Code compiled as it runs: times as long as where products run alone, with cold caches and others beside it; and samples
# that are let pass, as they come by chance.
COMPILED_TIMES, COMPILED_AT_LEAST = 3, 20
FILLING = ("aten.zero_.default", "aten.fill_.Scalar")  # as `inside.replaying` calls it
# As `inside.process_state` names it, where the reference has set it otherwise.
PRECISION = "precision of float32 products"
NOWHERE = ("", 0)  # the page of all code without a file

Page = tuple[str, int]  # an object's name, and a page of its code counted from where that is mapped


@dataclass(frozen=True)
class Learned:
    """The pages that products were seen to use, and the share of their time that is spent on pages not seen yet.

    That share is estimated as Good and Turing do: by the samples whose page was hit only once. `compiled` is how many seconds a
    call's products spend in code without a file, which a library compiles as it runs; infinite where that isn't known.
    """

    pages: frozenset[Page] = frozenset()
    unseen: float = 0.0
    compiled: float = math.inf


def pages(addresses: Iterable[int], objects: Iterable[tuple[int, int, str]], work: str) -> Counter[Page]:
    """Samples in torch's and other libraries' code, by page. Code without a file is one page: a library's JIT."""
    ranges = sorted(objects)
    found: Counter[Page] = Counter()
    for address in addresses:
        start, _, path = next((r for r in ranges if r[0] <= address < r[1]), (0, 0, ""))
        if address >= 0 and policy.classify(path, work) in ("torch", "other"):
            found[(path, (address - start) >> PAGE_BITS if path else 0)] += 1
    return found


def allowed(seen: Mapping[Page, int], learned: Learned, calls: float = math.inf) -> int:
    """How many of the samples lie on pages that the library's products use, those that were not seen in proportion.

    Code without a file is all one page: of that no more than COMPILED_TIMES what the products take in so many `calls` (those
    of the samples times how many samples there are a second).
    """
    near = {(name, page + step) for name, page in learned.pages for step in range(-NEIGHBOURS, NEIGHBOURS + 1)}
    most = min(float(sum(seen.values())), COMPILED_TIMES * learned.compiled * calls + COMPILED_AT_LEAST)
    known = sum(min(count, int(most)) if page == NOWHERE else count for page, count in seen.items() if page in near)
    return min(sum(seen.values()), known + math.ceil(2 * learned.unseen * sum(seen.values())))


def allowed_calls(calls: Sequence[Plain], kind: Policy) -> tuple[Plain, ...]:
    """Those of the calls seen that a policy lets the library make: products under `library`, filling memory under any."""
    return tuple(call for call in calls if kind is Policy.LIBRARY or call["name"] in FILLING)


def learn(session: Session, calls: Sequence[Plain]) -> Learned:
    """What these calls of the library use.

    Where nothing can be sampled nothing can be told, and all is unseen. Calls that can't be made excuse nothing: that they were
    made at all is known from the candidate's own process only.
    """
    if not calls:
        return Learned()
    started = time.monotonic()
    session.tell("policy", "running the library's products alone")
    limits = replace(session.limits, wall_seconds=session.left)
    precision = session.oracle.problem.process_state.get(PRECISION, "")
    payload = {"calls": list(calls), "threads": session.threads, "precision": precision}
    found: Counter[Page] = Counter()
    times, period = 0, 0.0
    with session.zygote.spawn("apps.kernels.inside.replaying:main", payload, limits=limits) as jailed:
        try:
            jailed.receive(30.0)
            while found.total() < ENOUGH and time.monotonic() - started < MOST_SECONDS:
                with sampled(jailed.pid) as counters:
                    times += int(jailed.ask({"seconds": LEARNING_SECONDS}, 30.0)["times"])
                period = counters.period
                found += pages(counters.addresses, ice.mapped_objects(jailed.pid), jailed.work_inside)
        except NoSampling:
            return Learned(unseen=1.0)
        except (ChannelBroken, ChannelTimeout):
            pass
        finally:
            session.spend("policy", started)
    compiled = found[NOWHERE] * period / times if times and period else math.inf
    return replace(learned_from(found), compiled=compiled)


def learned_from(found: Mapping[Page, int]) -> Learned:
    """The pages that were hit, and how much of the time lies elsewhere."""
    total = sum(found.values())
    once = sum(1 for count in found.values() if count == 1)
    return Learned(frozenset(found), once / total if total else 0.0)
