"""`python -m apps.kernels`: inspect a problem, evaluate a candidate, describe this host."""

from __future__ import annotations

import sys

from apps.kernels.cli.main import main

sys.exit(main(sys.argv[1:]))
