"""python try_here.py: the attacks as whoever runs this, on a zygote without torch; one JSON object."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from apps.kernels.attacks import SIEGES, try_all
from apps.kernels.jail import Zygote, isolation
from apps.kernels.jail.isolation import isolation_level
from apps.kernels.plain import to_plain

WANTED = ("memory, in many processes", "disk", "processes", "daemons")  # where what holds depends on who runs it

with Zygote(bare=True) as zygote:
    found = {
        "user": os.geteuid(),
        "mode": zygote.mode,
        "level": isolation_level(zygote.mode).value,
        "isolation": to_plain(isolation(zygote.mode)),
        "attacks": to_plain(try_all(zygote, sieges=[siege for siege in SIEGES if siege.name in WANTED])),
    }
print(json.dumps(found))
