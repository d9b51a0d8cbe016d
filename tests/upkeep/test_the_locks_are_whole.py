"""What is installed comes from the lock files alone, so they have to name everything that is needed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"


@pytest.fixture
def packages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up_packages", ROOT / "tools" / "packages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_lock_is_installed_without_looking_for_anything_else(packages: ModuleType) -> None:
    commands = [command for step in packages._python_steps(ROOT, dev=True) for command in step.commands]
    locked = [command for command in commands if "torch.txt" not in command[-1]]
    assert [Path(command[-1]).name for command in locked] == ["run.txt", "dev.txt"]
    assert all({"--no-deps", "--require-hashes"} <= set(command) for command in locked)


def test_nothing_that_a_package_needs_is_missing() -> None:
    said = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("name", ["run", "dev", "node"])
def test_every_package_of_a_lock_has_a_version_and_hashes(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text().replace("\\\n", "")
    entries = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry), entry.split("--hash")[0]
