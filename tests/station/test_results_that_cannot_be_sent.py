"""A result outlives an outage of the broker and the station's own death: it is on disk until the broker has taken it."""

from __future__ import annotations

from pathlib import Path

from apps.station.messages import Report, ReportKind
from apps.station.outbox import Outbox


class Away:
    """A broker that is away until told otherwise."""

    def __init__(self) -> None:
        self.here = False
        self.taken: list[int] = []

    def __call__(self, report: Report) -> bool:
        if self.here:
            self.taken.append(report.job)
        return self.here


def result(job: int) -> Report:
    return Report("here", "s", ReportKind.DONE, "cpu", job, 1, 7, payload={"x": [1, "ü"]})


def test_what_could_not_be_sent_is_sent_later_in_order(tmp_path: Path) -> None:
    broker = Away()
    outbox = Outbox(tmp_path, broker)
    outbox.put(result(1))
    outbox.put(result(2))
    assert outbox.flush() == 2
    broker.here = True
    assert outbox.flush() == 0
    assert broker.taken == [1, 2]
    assert outbox.flush() == 0
    assert broker.taken == [1, 2]


def test_the_next_station_of_the_place_sends_it(tmp_path: Path) -> None:
    Outbox(tmp_path, Away()).put(result(3))
    broker = Away()
    broker.here = True
    Outbox(tmp_path, broker).flush()
    assert broker.taken == [3]


def test_a_file_cut_short_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000001-000000.json").write_text('{"host": "he')
    broker = Away()
    broker.here = True
    outbox = Outbox(tmp_path, broker)
    outbox.put(result(4))
    assert broker.taken == [4]
    assert list(tmp_path.iterdir()) == []
