"""What the self-test finds not as expected while its own candidates take the cores from one another is tried again, alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from apps.kernels.cli.selftesting import described
from apps.kernels.selftest import trying
from apps.kernels.selftest.bench import Tried
from apps.kernels.selftest.corpus import Entry, entries


class Starved:
    """A bench on which one candidate is not as expected unless it is alone, and another never is."""

    def __init__(self, _zygote: object) -> None:
        self.alone = threading.current_thread() is threading.main_thread()

    def tried(self, entry: Entry) -> Tried:
        fine = {"zeros": self.alone, "uninitialised": False}.get(entry.name, True)
        why = "" if fine else "the verdict should be incorrect"
        return Tried(
            entry.kind, entry.name, entry.problem, "kernel", ("incorrect",), "incorrect", "", (), fine, why, 1.0
        )

    def __exit__(self, *_: object) -> None:
        pass


def test_what_is_not_as_expected_beside_others_is_tried_again_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    monkeypatch.setattr(trying, "Bench", Starved)
    news: list[tuple[int, str, bool]] = []
    chosen = entries(("stale/zeros", "stale/uninitialised", "stale/a_plausible_constant"))
    found, _ = trying.try_all(chosen, lambda done, one: news.append((done, one.candidate, one.as_expected)))
    by_name = {one.candidate: one for one in found}
    assert by_name["zeros"].as_expected and by_name["zeros"].at_first == "the verdict should be incorrect"
    assert not by_name["uninitialised"].as_expected and by_name["uninitialised"].at_first
    assert by_name["a_plausible_constant"].at_first == "" and by_name["a_plausible_constant"].seconds == 1
    assert by_name["zeros"].seconds == 4, "a dishonest one three times alone"
    assert by_name["uninitialised"].seconds == 2, "once alone, and not as expected again"
    assert [done for done, _, _ in news] == [1, 2, 3, 3, 3]
    text = described(found, 5.0)
    assert "As expected only when tried again, alone" in text
    assert text.endswith("1 not as expected. 1 as expected only when tried again, alone.")
