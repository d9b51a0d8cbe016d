"""Attacks on the jail, in each mode this host has: what is tried, and that it is contained."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.kernels.jail import ChannelBroken, Limits, Zygote, cgroups
from apps.kernels.jail.cell import Cell
from apps.kernels.jail.isolation import _namespaces_work
from tests.patience import PATIENCE, until

MODES = [m for m in ("root", "user") if (m != "root" or os.geteuid() == 0) and _namespaces_work(m)[0]] + ["light"]
ATTEMPT = """
import ctypes, os, socket, subprocess
def outcome(attempt):
    try:
        return "did: " + str(attempt())[:200]
    except BaseException as refusal:
        return "refused: " + type(refusal).__name__
def compiled():
    open("a.cpp", "w").write('#include "/etc/shadow"')
    return subprocess.run(["g++", "-c", "a.cpp"], capture_output=True, text=True, check=True).stderr
if payload.get("close"):
    from apps.kernels.inside.phases import close_building
    close_building()
channel.send({name: outcome(eval(attempt)) for name, attempt in payload["attempts"].items()})
"""
DAEMON = "if os.fork() == 0: os.setsid()\nchannel.send({'up': True})\ntime.sleep(600)"


@pytest.fixture(scope="module", params=MODES)
def jail(request: pytest.FixtureRequest) -> Iterator[Zygote]:
    with Zygote(request.param, bare=True) as zygote:
        yield zygote


def tried(jail: Zygote, attempts: dict[str, str], *, close: bool = False) -> dict[str, str]:
    """What became of each attempt."""
    payload = {
        "code": ATTEMPT,
        "attempts": {name: f"lambda: {what}" for name, what in attempts.items()},
        "close": close,
    }
    with jail.spawn("apps.kernels.inside.probe:run", payload) as jailed:
        return {name: str(said) for name, said in jailed.receive(PATIENCE).items()}


def test_it_sees_no_files_but_its_own_and_the_systems(jail: Zygote, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    found = tried(
        jail,
        {
            "passwords": "open('/etc/shadow').read()",
            "home": f"os.listdir({str(Path.home())!r})",
            "data": f"open({str(secret)!r}).read()",
            "repository": f"os.listdir({str(Path(__file__).resolve().parents[2])!r})",
            "other memory": f"open('/proc/{os.getpid()}/environ', 'rb').read()",
            "a header": "compiled()",
            "usr": "open('/usr/written', 'w')",
        },
    )
    # Of the repository no more than where Python's packages lie, which may be below a directory of the jail's own.
    assert found.pop("repository") in ("did: ['.venv']", "refused: PermissionError", "refused: FileNotFoundError")
    assert all(said.startswith("refused") for said in found.values()), found


def test_it_reaches_no_network_and_no_other_process(jail: Zygote) -> None:
    found = tried(
        jail,
        {
            "socket": "socket.socket()",
            "local": "socket.socket(socket.AF_UNIX)",
            "the judge": f"os.kill({os.getpid()}, 0)",
            "everyone": "os.kill(-1, 0) if os.getpid() > 1 else os.kill(2, 0)",
            "trace": f"ctypes.CDLL(None, use_errno=True).ptrace(16, {os.getpid()}, 0, 0) and 1 / 0",
            "hide": "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) and 1 / 0",
            "unshare": "ctypes.CDLL(None).unshare(0x10000000) and 1 / 0",
        },
    )
    assert all(said.startswith("refused") for said in found.values()), found


def test_the_judged_phase_starts_nothing_and_writes_nothing(jail: Zygote) -> None:
    attempts = {
        "fork": "os.fork()",
        "exec": "os.execv('/bin/true', ['true'])",
        "spawn": "subprocess.run(['/bin/true'])",
        "file": "open('kept', 'w')",
        "remove": "os.rename('a', 'b')",
    }
    found = tried(jail, attempts, close=True)
    assert all(said.startswith("refused") for said in found.values()), found
    open_phase = tried(jail, {"spawn": "subprocess.run(['/bin/true']).returncode", "file": "open('kept', 'w').close()"})
    assert all(said.startswith("did") for said in open_phase.values()), open_phase


def test_its_environment_and_descriptors_are_its_own(jail: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tried(
        jail,
        {
            "environment": "sorted(os.environ)",
            "descriptors": "[fd for fd in range(3, 200) if os.path.exists(f'/proc/self/fd/{fd}')]",
        },
    )
    assert "KEY" not in found["environment"] and "DJANGO" not in found["environment"]
    assert found["descriptors"] in ("did: [10]", "did: [10, 11]", "did: [3, 10]"), found


def test_memory_files_and_time_are_bounded(jail: Zygote) -> None:
    limits = Limits(memory_bytes=3 << 30, file_bytes=1 << 20, wall_seconds=2 * PATIENCE, cpu_seconds=60)
    code = "x = bytearray(8 << 30)"
    with jail.spawn("apps.kernels.inside.probe:run", {"code": code}, limits=limits) as jailed:
        assert jailed.wait(PATIENCE).out_of_memory
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); open('f', 'wb').write(bytes(2 << 20))"
    with jail.spawn("apps.kernels.inside.probe:run", {"code": code}, limits=limits) as jailed:
        assert jailed.wait(PATIENCE).code == 70 and "File too large" in jailed.output
    with jail.spawn("apps.kernels.inside.probe:run", {"code": "while True: time.sleep(1)"}, limits=limits) as jailed:
        assert jailed.wait(0.3).timed_out


def test_flooding_stdout_harms_nobody(jail: Zygote) -> None:
    code = "\nfor _ in range(2000): print('x' * 10000)\nchannel.send({'done': True})"
    with jail.spawn("apps.kernels.inside.probe:run", {"code": code}) as jailed:
        assert jailed.receive(PATIENCE)["done"] is True
        assert len(jailed.output) <= 64 << 10


def test_the_whole_tree_dies_with_it(jail: Zygote) -> None:
    code = (
        "\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(600)"
        "\nchannel.send({'up': True})\ntime.sleep(600)"
    )
    with jail.spawn("apps.kernels.inside.probe:run", {"code": code}) as jailed:
        jailed.receive(PATIENCE)
        keeper = jailed.keeper
        assert len(_below(keeper)) == 4
    until(lambda: not _below(keeper))


@pytest.mark.parametrize("victim", ["judge", "zygote", "keeper"])
@pytest.mark.parametrize("mode", MODES)
def test_everything_dies_when_one_of_the_chain_is_killed(mode: str, victim: str) -> None:
    code = (
        "import time; from apps.kernels.jail import Zygote\n"
        f"z = Zygote({mode!r}, bare=True).start()\n"
        f"j = z.spawn('apps.kernels.inside.probe:run', {{'code': {DAEMON!r}}})\n"
        f"j.receive({PATIENCE}); print(z.pid, j.keeper, j.pid, flush=True); time.sleep(600)"
    )
    root = str(Path(__file__).resolve().parents[2])
    judge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": root})
    assert judge.stdout is not None
    pids = [int(pid) for pid in judge.stdout.readline().split()]
    pids += [pid for pid in _below(pids[1]) if pid not in pids]
    assert len(pids) == 4
    spared = [pids[0]] if victim == "keeper" else []  # the zygote goes on without that keeper
    os.kill({"judge": judge.pid, "zygote": pids[0], "keeper": pids[1]}[victim], signal.SIGKILL)
    try:
        until(lambda: not any(_lives(pid) for pid in pids if pid not in spared))
    finally:
        judge.kill()
        judge.wait()
        judge.stdout.close()
    until(lambda: not any(_lives(pid) for pid in pids))


@pytest.mark.skipif(not cgroups.parents().memory, reason="no control groups can be made here")
@pytest.mark.parametrize("mode", MODES)
def test_daemons_die_even_if_all_who_know_them_are_killed_at_once(mode: str) -> None:
    zygote = Zygote(mode, bare=True).start()
    with zygote:
        jailed = zygote.spawn("apps.kernels.inside.probe:run", {"code": DAEMON})
        jailed.receive(PATIENCE)
        below = _below(jailed.keeper)
        assert len(below) == 2 and zygote.pid
        os.kill(zygote.pid, signal.SIGSTOP)  # it can't help any more
        for pid in (jailed.keeper, zygote.pid):
            os.kill(pid, signal.SIGKILL)
        jailed.close()
    until(lambda: not any(_lives(pid) for pid in below))


WITHOUT_MOUNT_SETATTR = """
import os, sys
sys.path.insert(0, sys.argv[1])
from apps.kernels.jail import namespaces, syscalls
from apps.kernels.jail.isolation import readable_prefixes
syscalls.SYS_MOUNT_SETATTR = 1023
(namespaces.separate_as_root if sys.argv[2] == "root" else namespaces.separate_as_user)()
pid = os.fork()
if pid == 0:
    namespaces.build_root(sys.argv[3], readable_prefixes(), 1 << 20, 0 if sys.argv[2] == "root" else 65534)
    tried = ["/written", "/usr/written", "/etc/ld.so.cache", "/dev/written", *(f"{p}/written" for p in readable_prefixes())]
    opened = []
    for path in tried:
        try:
            opened.append(os.open(path, os.O_WRONLY | os.O_CREAT))
        except OSError:
            pass
    os._exit(7 if not opened and os.access("/tmp", os.W_OK) else 8)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "light"])
def test_its_root_is_read_only_on_kernels_that_have_no_mount_setattr(mode: str, tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", WITHOUT_MOUNT_SETATTR, root, mode, str(tmp_path)]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr


def test_a_message_that_is_none_is_refused(jail: Zygote) -> None:
    code = "os.write(channel.fileno(), b'\\xff' * 64)\ntime.sleep(600)"
    with jail.spawn("apps.kernels.inside.probe:run", {"code": code}) as jailed, pytest.raises(ChannelBroken):
        jailed.receive(PATIENCE)


def test_an_unknown_way_to_jail_is_refused_before_anything_is_started() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Zygote("nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        Cell("nonsense", "/nowhere", 1, (), Limits())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could harm its host")
def test_a_root_is_never_built_where_others_would_lose_theirs() -> None:
    """Tried in a mount namespace that plays the host's, so that a failure of this test harms nobody."""
    code = (
        "from apps.kernels.jail import namespaces as n, syscalls\n"
        "syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID)\n"
        "import os\n"
        "n._FIRST_MOUNTS = n._mounts_of_this_process()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try: n.build_root('/nowhere', (), 1 << 20, 62000)\n"
        "    except OSError as refusal: os._exit(7 if 'of its own' in str(refusal) else 8)\n"
        "    os._exit(0)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": root}, check=False).returncode == 7


def _below(pid: int) -> list[int]:
    """Every process under this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    found, wave = [], [pid]
    while wave:
        wave = [child for child, parent in parents.items() if parent in wave]
        found += wave
    return found


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
