"""The watchdog: who has lost the broker or takes nothing though work waits leaves; who is merely idle or full stays."""

from __future__ import annotations

import pytest
import redis

from apps.station.broker import Broker
from apps.station.watchdog import LOST_SECONDS, STARVED_SECONDS, Judgement, Watchdog


def test_an_idle_worker_stays() -> None:
    judgement = Judgement()
    assert all(judgement.look(t, reachable=True, waiting=0, taken=0, free=True) is None for t in range(0, 600, 2))


def test_a_worker_that_takes_nothing_though_work_waits_leaves() -> None:
    judgement = Judgement()
    assert judgement.look(0, reachable=True, waiting=3, taken=5, free=True) is None  # it took some since the last look
    assert judgement.look(2, reachable=True, waiting=3, taken=5, free=True) is None
    why = judgement.look(2 + STARVED_SECONDS, reachable=True, waiting=3, taken=5, free=True)
    assert why is not None and "3 messages wait" in why


def test_a_worker_that_is_full_or_takes_now_and_then_stays() -> None:
    full, slow = Judgement(), Judgement()
    for t in range(0, 600, 2):
        assert full.look(t, reachable=True, waiting=9, taken=0, free=False) is None
        assert slow.look(t, reachable=True, waiting=9, taken=t // 10, free=True) is None


def test_a_worker_whose_broker_stays_away_leaves_but_not_for_a_short_while() -> None:
    judgement = Judgement()
    assert judgement.look(0, reachable=False, waiting=0, taken=0, free=True) is None
    assert judgement.look(LOST_SECONDS - 1, reachable=False, waiting=0, taken=0, free=True) is None
    assert judgement.look(LOST_SECONDS, reachable=True, waiting=0, taken=0, free=True) is None
    assert judgement.look(LOST_SECONDS + 2, reachable=False, waiting=0, taken=0, free=True) is None
    assert "not answered" in str(judgement.look(2 * LOST_SECONDS + 2, reachable=False, waiting=0, taken=0, free=True))


class Queue(Broker):
    """A broker in whose queue one message lies."""

    def waiting(self, queue: str) -> int:
        return 1


def test_a_message_on_its_way_is_no_sign_of_ill_health_and_one_that_stays_is() -> None:
    watchdog = Watchdog("server", Queue("redis://127.0.0.1:1"), ["reports"], 4, lambda: 0)
    watchdog.count()
    watchdog.look(0)
    watchdog.look(2)
    assert watchdog.health().ok
    watchdog.look(4)
    assert watchdog.health().detail == "work waits and is not taken"
    watchdog.count()
    watchdog.look(6)
    assert watchdog.health().ok


class Gone(Broker):
    """A broker that does not answer."""

    def waiting(self, queue: str) -> int:
        raise redis.ConnectionError("gone")


@pytest.mark.parametrize(("patient", "busy", "leaves"), [(True, 1, False), (True, 0, True), (False, 1, True)])
def test_work_that_needs_no_broker_is_not_broken_off_for_one(patient: bool, busy: int, leaves: bool) -> None:
    watchdog = Watchdog("agents", Gone("redis://127.0.0.1:1"), ["runs"], 4, lambda: busy, patient=patient)
    watchdog.look(0)
    assert (watchdog.look(LOST_SECONDS + 1) is not None) is leaves
    assert not watchdog.health().ok
