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


def test_they_are_put_where_the_installation_is_reached_by_a_link(tmp_path: Path) -> None:
    link = tmp_path / "packages"
    link.symlink_to(Path(torch.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", PROGRAM, str(link / "torch" / "__init__.py")], check=True)
