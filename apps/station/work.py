"""What a bench does for each kind of job, by calling `apps.kernels`. Runs in the bench's process alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.kernels.evaluation import EvaluationRequest, Progress, Tier
from apps.kernels.facts import ProblemFacts
from apps.kernels.host.report import host_report
from apps.kernels.inspect import PRELOADED, inspect
from apps.kernels.jail import IsolationTooWeak, Jailed, JailFailed, Zygote, ZygoteFailed
from apps.kernels.judge import HostCannotJudge, ProblemRefused, evaluate
from apps.kernels.judge.lock import device_lock
from apps.kernels.machine import HostReport
from apps.kernels.plain import BadPlain, Plain, from_plain, to_plain
from apps.kernels.problem import BadProblem
from apps.station.messages import Order

Observe = Callable[[Progress], None]

EVALUATE, INSPECT, MEASURE = "evaluate", "inspect", "measure"


class CannotDo(Exception):
    """This host can't do the job, however often it tries; the message says why."""


class HostTrouble(Exception):
    """The host's own machinery failed under the job; another attempt may do better."""


class WatchedZygote(Zygote):
    """A zygote that knows whether foreign code of the job in hand may be running."""

    def __init__(self) -> None:
        super().__init__()
        self._foreign: Callable[[dict[str, Plain]], bool] = lambda payload: False
        self._jailed: list[Jailed] = []

    def watch_for(self, foreign: Callable[[dict[str, Plain]], bool]) -> None:
        """From now on the processes to watch are those whose payload `foreign` says so of."""
        self._foreign = foreign
        self._jailed = []

    @property
    def in_jail(self) -> bool:
        """Whether a process that runs the code in question lives."""
        return any(jailed.ended is None for jailed in self._jailed)

    def spawn(self, entry: str, payload: Plain, **options: Any) -> Jailed:
        """See `Zygote.spawn`."""
        jailed = super().spawn(entry, payload, **options)
        if isinstance(payload, dict) and self._foreign(payload):
            self._jailed.append(jailed)
        return jailed


class Work:
    """The kernels' rooms as one bench uses them, with a zygote kept from job to job: torch is imported once."""

    def __init__(self) -> None:
        self.zygote = WatchedZygote()
        self._host: HostReport | None = None
        self._measured = False  # by this process, whatever came of it

    def warm_up(self) -> None:
        """Pay for torch's import before the first job does. Trouble is left for that job to meet and tell."""
        try:
            self.zygote.start()
            self.zygote.preload(PRELOADED)
        except (ZygoteFailed, JailFailed, OSError):
            return

    def do(self, order: Order, observe: Observe) -> Plain:
        """The job's result as plain data. Raises `CannotDo` or `HostTrouble`, and whatever `observe` raises."""
        try:
            if order.kind == EVALUATE:
                return to_plain(self._evaluate(order, observe))
            if order.kind == INSPECT:
                return to_plain(self._inspect(order, observe))
            if order.kind == MEASURE:
                return to_plain(self._measure(order, observe))
        except BadPlain as problem:
            raise CannotDo(f"The request can't be read by this station; are both of one version? {problem}") from None
        except (HostCannotJudge, ProblemRefused) as problem:
            if isinstance(problem.__context__, ZygoteFailed | JailFailed):
                self.zygote.close()
                raise HostTrouble(f"{problem}") from problem
            raise CannotDo(f"{problem}") from problem
        except (ZygoteFailed, JailFailed, OSError) as problem:
            self.zygote.close()
            raise HostTrouble(f"{problem}") from problem
        raise CannotDo(f"This station knows no job of kind {order.kind!r}; update it.")

    def close(self) -> None:
        """End the zygote and all it forked."""
        self.zygote.close()

    def _evaluate(self, order: Order, observe: Observe) -> object:
        request = from_plain(EvaluationRequest, order.request)
        self._fresh_zygote()
        self.zygote.watch_for(lambda payload: payload.get("role") == "candidate")
        if request.tier is Tier.FULL and not self._here().ceilings.bandwidth and not self._measured:
            self._measure(order, observe)  # without it nothing is too fast to be true
        return evaluate(request, zygote=self.zygote, host=self._here(), observe=observe)

    def _inspect(self, order: Order, observe: Observe) -> ProblemFacts:
        request = order.request if isinstance(order.request, dict) else {}
        source, overrides = str(request.get("problem", "")), dict(request.get("overrides") or {})
        self._fresh_zygote()
        self.zygote.watch_for(lambda payload: True)  # all it jails is the problem
        try:
            allowed = bool(request.get("allow_weak_isolation"))
            return inspect(source, overrides, zygote=self.zygote, observe=observe, allow_weak_isolation=allowed)
        except IsolationTooWeak as why:
            raise CannotDo(f"This host doesn't run problems: {why}") from None
        except BadProblem as problem:
            return ProblemFacts(refusal=str(problem))

    def _measure(self, order: Order, observe: Observe) -> HostReport:
        """Ceilings are worth nothing while somebody else uses the device."""
        observe(Progress("measure", "waiting for the device"))
        with device_lock(order.device, timeout=order.deadline_seconds):
            self._host = host_report(observe=observe)
        self._measured = True
        return self._host

    def _here(self) -> HostReport:
        if self._host is None:
            self._host = host_report(quick=True)
        return self._host

    def _fresh_zygote(self) -> None:
        """A zygote that died since the last job is no reason to fail this one."""
        if not self.zygote.alive:
            self.zygote.close()
            self.zygote.start()
