"""Pages that can't be touched lie around every tensor in the processes that check, however the installation is reached."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

PROGRAM = """
import sys
from pathlib import Path
import torch
torch.__file__ = sys.argv[1]
from apps.kernels.inside import guard
assert guard.install()
x = torch.zeros(100)
assert x.data_ptr() in guard._regions
"""


MANY = """
import torch
from apps.kernels.inside import guard
assert guard.install()
for _ in range(40):
    x = torch.empty(16 << 20, dtype=torch.uint8)
    del x
closed = sum(size for _, size in guard._closed)
assert closed <= guard.CLOSED_BYTES, closed
lines = open("/proc/self/status").read().split("VmRSS:")[1].split()
print(int(lines[0]))
"""


def test_what_was_given_back_takes_no_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MANY], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 640 * 1024, "forty closed tensors of 16 MiB would take as much, in KiB"


def test_they_are_put_where_the_installation_is_reached_by_a_link(tmp_path: Path) -> None:
    link = tmp_path / "packages"
    link.symlink_to(Path(torch.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", PROGRAM, str(link / "torch" / "__init__.py")], check=True)
