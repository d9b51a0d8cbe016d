"""Temporary directories: gone when their use ends; what a kill leaves goes with the next one made, what is used stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.kernels.jail import Zygote
from apps.kernels.temporary import PREFIX, TemporaryPlace, sweep, temporary, write_whole
from tests.patience import PATIENCE, until

HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from apps.kernels.temporary import TemporaryPlace
place = TemporaryPlace("held")
print(place.path, flush=True)
time.sleep(300)
"""
JUDGE = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from apps.kernels.jail import Zygote
with Zygote(bare=True) as zygote:
    zygote.spawn("apps.kernels.inside.probe:run", {"code": "import time; time.sleep(60)"})
    if sys.argv[2] == "killed":
        os.kill(zygote.pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[2] == "without an end":
        os._exit(0)
"""
ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What lies in a directory for temporary files of the test's own."""
    place = tmp_path / "temporary"
    place.mkdir()
    for directory in (place, *place.parents):
        if directory.stat().st_uid == os.getuid() and directory != Path(tempfile.gettempdir()):
            directory.chmod(directory.stat().st_mode | 0o011)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return lambda: sorted(one.name for one in place.iterdir())


def test_it_goes_when_its_use_ends(left: Callable[[], list[str]]) -> None:
    with temporary("perf") as place:
        assert left() == [place.name] and place.name.startswith(f"{PREFIX}perf-")
        deep = place / "a" / "b"
        deep.mkdir(parents=True)
    assert left() == []


def test_what_is_used_stays_and_what_a_kill_left_goes(left: Callable[[], list[str]]) -> None:
    held = subprocess.Popen([sys.executable, "-c", HOLD, ROOT], stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None
    theirs = Path(held.stdout.readline().strip())
    with temporary("ours") as ours:
        sweep()
        assert left() == sorted([theirs.name, ours.name])
        held.kill()
        held.wait()
        held.stdout.close()
        (theirs / "file").write_text("left")
        place = TemporaryPlace("next")
        assert left() == sorted([place.path.name, ours.name])
        place.remove()
        place.remove()
    assert left() == []


def test_a_stranger_s_directory_and_a_link_are_left_alone(left: Callable[[], list[str]], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("kept")
    here = Path(tempfile.gettempdir())
    (here / "pragma-other").mkdir()
    (here / f"{PREFIX}link").symlink_to(elsewhere)
    sweep()
    assert left() == ["pragma-other", f"{PREFIX}link"] and (elsewhere / "file").exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    write_whole(file, b"first")
    write_whole(file, b"second")
    assert file.read_bytes() == b"second" and [one.name for one in file.parent.iterdir()] == ["measured.json"]
    file.unlink()
    file.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(file, b"third")
    assert [one.name for one in file.parent.iterdir()] == ["measured.json"]


@pytest.mark.parametrize(("how", "stays"), [("well", False), ("without an end", False), ("killed", True)])
def test_a_judge_leaves_nothing_unless_all_of_it_is_killed(
    left: Callable[[], list[str]], how: str, stays: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, ROOT, how],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if stays else 0), done.stderr
    if stays:
        assert left() != []
        with Zygote(bare=True):
            assert len(left()) == 1  # its own
    until(lambda: left() == [], "the zygote doesn't notice that its judge is gone")


def test_a_zygote_that_died_is_followed_by_one_that_leaves_no_more(left: Callable[[], list[str]]) -> None:
    with Zygote(bare=True) as zygote:
        pid = zygote.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while zygote.alive:
            pass
        assert zygote.start().pid != pid
        assert len(left()) == 1
    assert left() == []
