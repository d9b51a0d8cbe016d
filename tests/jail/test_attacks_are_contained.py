"""Every attack is contained in each way to jail that this host has, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from apps.kernels.attacks import ATTEMPTS, SIEGES, try_all
from apps.kernels.jail import Zygote
from apps.kernels.jail.isolation import _namespaces_work
from tests.jail.somebody import KINDS, run_as

MODES = [m for m in ("root", "user") if (m != "root" or os.geteuid() == 0) and _namespaces_work(m)[0]] + ["light"]
# Slow ones are tried where what holds differs.
MEMORY = {"memory, in many processes", "memory, in one process"}
SPARED = {"root": {"inodes"}, "user": {siege.name for siege in SIEGES}, "light": MEMORY}


@pytest.mark.parametrize("mode", MODES)
def test_in_each_way_to_jail(mode: str) -> None:
    sieges = [siege for siege in SIEGES if siege.name not in SPARED[mode]]
    with Zygote(mode, bare=True) as zygote:
        outcomes = try_all(zygote, sieges=sieges)
    assert len(outcomes) == len(ATTEMPTS) + len(sieges) + 1
    assert not [outcome for outcome in outcomes if not outcome.contained]
    assert all(outcome.by and outcome.seen for outcome in outcomes)


@pytest.mark.parametrize("kind", KINDS)
def test_as_other_kinds_of_users(kind: str) -> None:
    done = run_as(kind, ["tests/jail/try_here.py"])
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert not [attack for attack in found["attacks"] if not attack["contained"]]
    rows = {row["name"]: row for row in found["isolation"]}
    if kind == "ordinary user":
        assert (found["mode"], found["level"]) == ("user", "full")
        return
    assert (found["mode"], found["level"]) == ("light", "partial")
    assert not rows["namespaces"]["enforced"] and rows["namespaces"]["detail"]
    assert (found["user"] == 0) is (kind == "root in a container")


def test_an_attack_that_succeeds_is_shown_as_not_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.kernels.attacks import trying
    from apps.kernels.attacks.attack import Attack, Layer

    harmless = Attack("files", "read what it may", "return len(open('/proc/self/status').read())", (Layer.ROOT,))
    mistaken = Attack("files", "a slip of its author", "return nothing_of_that_name", (Layer.ROOT,))
    deadly = Attack("files", "end itself", "os._exit(3)", (Layer.ROOT,))
    monkeypatch.setattr(trying, "ATTEMPTS", (harmless, mistaken, deadly))
    monkeypatch.setattr(trying, "SIEGES", ())
    with Zygote(bare=True) as zygote:
        first, second, third = try_all(zygote)
    assert (first.contained, first.by) == (False, "") and first.seen.isdigit()
    assert not second.contained and second.seen.startswith("NameError")
    assert third.contained and "exit code 3" in third.seen
