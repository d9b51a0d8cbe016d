"""Beyond what is promised: the same values in other storage, and the problem at other sizes.

It comes after everything that decides, and each try has an oracle and a runner of its own: nothing that happens here
(a wrong answer, a crash, a hang) reaches the verdict. What is found is shown as *holds*, *specialised* or *not tried*.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from apps.kernels.evaluation import Robustness, Trial
from apps.kernels.inside.layout_names import CUT_OUT, LAYOUTS
from apps.kernels.jail import JailFailed, ZygoteFailed
from apps.kernels.judge import correctness
from apps.kernels.judge.checking import runner_for_checks
from apps.kernels.judge.errors import CandidateFailed, HostCannotJudge, ProblemRefused
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.session import Opened, Session
from apps.kernels.problem import read_problem
from apps.kernels.sizes import OtherSizes, other_sizes

STRIDES, SHAPES = "strides", "shapes"
MINUTE = 57.0  # seconds into a judgement after which no try is begun any more
SECONDS, MOST_SECONDS = (
    2.0,
    6.0,
)  # a row begins tries for so long, whatever the time; it takes one where nothing is large
PATIENCE = 4.0  # seconds that a candidate is waited for at least: a hundred times what starting one takes
WHOLE_SECONDS = 20.0  # a try may take, with the reference's and the judge's own work, which is nobody's fault
CALLS = 20  # it makes three, on memory between guard pages
LONGEST_WORDS = 240  # characters of what went wrong


@dataclass(frozen=True)
class _Found:
    """What one try came to: whether it holds (None where it could not be tried), and why not."""

    name: str
    holds: bool | None
    words: str = ""
    hung: bool = False


def beyond(session: Session, findings: Findings, seconds: float) -> None:
    """Try other strides and shapes, and add what was found. `seconds` is what a call takes at the promised sizes."""
    if not session.full or session.trusted:
        return
    started = time.monotonic()
    session.tell("check", "other strides and shapes, beyond what is promised")
    tries = _Tries(session, findings, seconds)
    shapes = tries.shapes()  # first: small ones take no time
    findings.robustness += [tries.strides(), shapes]
    session.spend("other strides and shapes", started)


class _Tries:
    def __init__(self, session: Session, findings: Findings, seconds: float) -> None:
        self.session = session
        self.calls = CALLS * seconds
        self.patience = PATIENCE + (findings.build.seconds or 0) + (findings.setup.seconds or 0) + self.calls

    def strides(self) -> Robustness:
        """The problem as it is, its inputs' values in other storage."""
        source, last = self.session.problem_source, self._last()
        return _row(STRIDES, _until_one_hangs(self._try(layout, source, last, layout) for layout in LAYOUTS))

    def shapes(self) -> Robustness:
        """The problem at other sizes, as far as its constants and its reference let."""
        request = self.session.request
        kinds = other_sizes(read_problem(request.problem, request.overrides))
        if not kinds:
            return Robustness(SHAPES, False, "no constant of the module sizes the inputs", tried=False)
        last = self._last()
        return _row(SHAPES, _until_one_hangs(found for kind in kinds for found in self._sizes(kind, last)))

    def _sizes(self, kind: OtherSizes, last: float) -> Iterator[_Found]:
        """The choices of one kind up to the first that the reference takes."""
        request = self.session.request
        for choice in kind.choices:
            source = read_problem(request.problem, {**request.overrides, **choice}).source
            found = self._try(", ".join(f"{name} {value}" for name, value in choice.items()), source, last)
            yield found
            if found.holds is not None:
                return

    def _last(self) -> float:
        """When the last try of a row may begin."""
        now, session = time.monotonic(), self.session
        deadline = session.started + session.request.deadline_seconds - PATIENCE
        left = min(max(session.started + MINUTE - now, SECONDS), MOST_SECONDS)
        return min(now + left + self.calls, deadline)

    def _try(self, name: str, source: str, last: float, layout: str = "") -> _Found:
        if time.monotonic() > last:
            return _Found(name, None, "no time was left")
        session = self.session
        try:
            with closing(Opened.of(session.zygote, source, WHOLE_SECONDS, session.threads, layout)) as opened:
                if layout not in ("", CUT_OUT) and opened.oracle.problem.inputs == session.oracle.problem.inputs:
                    return _Found(name, None, "no input has the dimensions for it")
                opened.oracle.jumps = session.oracle.jumps
                return self._held_against(name, opened, askew=layout == CUT_OUT)
        except (HostCannotJudge, JailFailed, ZygoteFailed) as failure:
            return _Found(name, None, _line(str(failure)))
        except ProblemRefused as refused:
            return _Found(name, None, f"the reference can't be run so: {_line(str(refused))}")

    def _held_against(self, name: str, opened: Opened, *, askew: bool) -> _Found:
        """The candidate, built anew from what it compiled before, against the reference of this try."""
        session = Session(
            replace(self.session.request, deadline_seconds=WHOLE_SECONDS),
            "",
            self.session.zygote,
            lambda _progress: None,
            threads=self.session.threads,
            artefacts=self.session.artefacts,
            opened=opened,
            build_seconds=self.patience,
            call_seconds=self.patience,
        )
        try:
            with session:
                session.oracle.draw(0)
                session.oracle.set_state()
                with runner_for_checks(session, askew=askew) as runner:
                    return _as_found(name, correctness.once(session, runner, "as given"))
        except CandidateFailed as failure:
            if failure.verdict == "timed_out":
                return _Found(name, False, f"it did not end within {self.patience:.0f} s", hung=True)
            return _Found(name, False, _words(failure))


def _as_found(name: str, trial: Trial | None) -> _Found:
    if trial is None:
        return _Found(name, None, "torch's own result can't be judged by there")
    return _Found(name, trial.passed, "" if trial.passed else f"wrong: {_line(trial.detail).partition(';')[0]}")


def _words(failure: CandidateFailed) -> str:
    """A failure in one line: what was raised, or how it ended."""
    first, _, rest = failure.detail.partition("\n")
    if failure.verdict == "incorrect":
        return f"wrong: {_line(first)}"
    if first.endswith(":") and "raised" in first:
        return f"it raised {_line(rest)}"
    return _line(first.removesuffix(":").removeprefix("building ").removeprefix("in a call "))


def _line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    text = next((line for line in lines if line and not line.endswith("it raised:")), "")
    return text[:LONGEST_WORDS]


def _until_one_hangs(tries: Iterable[_Found]) -> list[_Found]:
    """All of them, or those up to the first that hangs: whoever waits has waited long enough."""
    found = []
    for one in tries:
        found.append(one)
        if one.hung:
            break
    return found


def _row(name: str, found: list[_Found]) -> Robustness:
    held = [one.name for one in found if one.holds]
    if failed := [one for one in found if one.holds is False]:
        return Robustness(name, False, _listed(failed) + (f" · holds: {'; '.join(held)}" if held else ""))
    if held:
        return Robustness(name, True, "; ".join(held))
    return Robustness(name, False, _listed(found), tried=False)


def _listed(found: list[_Found]) -> str:
    """Each try with its words; those of the same words together."""
    by_words: dict[str, list[str]] = {}
    for one in found:
        by_words.setdefault(one.words, []).append(one.name)
    return " · ".join(f"{'; '.join(names)}: {words}" for words, names in by_words.items())
