"""The compilers inside the jail: wrappers that write down what was compiled and don't compile the same thing twice.

A judgement starts a candidate in a dozen processes; each imports it and would compile it again. The wrapper keeps
objects by command and content in the jail's own directory, which the judge carries from one process of the *same*
judgement to the next, as it lay at the end of the build phase.
"""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

from apps.kernels.inside.toolchain_names import DIRECTORY, RECORD
from apps.kernels.plain import Plain

WRAPPER = """#!{python} -IS
import hashlib, json, os, shutil, subprocess, sys, time
REAL, HOME = {real!r}, {home!r}
arguments = sys.argv[1:]
out = None
key = hashlib.sha256(repr((REAL, os.getcwd() if "-g" in arguments else "")).encode())
skip = False
for i, a in enumerate(arguments):
    if skip:
        skip = False
        continue
    if a == "-o" and i + 1 < len(arguments):
        out, skip = arguments[i + 1], True
        continue
    key.update(a.encode() if not os.path.isfile(a) else b"file:")
    if os.path.isfile(a):
        key.update(open(a, "rb").read())
directory = os.getcwd()
for name in sorted(os.listdir(directory))[:200]:
    if name.endswith((".h", ".hpp", ".hh", ".inc")):
        key.update(open(os.path.join(directory, name), "rb").read())
digest = key.hexdigest()
kept = os.path.join(HOME, digest)
started = time.time()
def record(code, cached):
    with open(os.path.join(HOME, {record!r}), "a") as file:
        line = dict(compiler=REAL, arguments=arguments, directory=directory, code=code, cached=cached)
        line.update(output=out and os.path.join(directory, out), seconds=time.time() - started)
        file.write(json.dumps(line) + chr(10))
linking = out is not None and "-E" not in arguments and "-" not in arguments and "-M" not in arguments
if linking and os.path.isfile(kept):
    shutil.copyfile(kept, out)
    os.chmod(out, 0o755)
    record(0, True)
    sys.exit(0)
code = subprocess.call([REAL, *arguments])
if code == 0 and linking and os.path.isfile(out):
    shutil.copyfile(out, kept + ".new")
    os.replace(kept + ".new", kept)
record(code, False)
sys.exit(code if code >= 0 else 1)
"""


def unpack(descriptor: int) -> None:
    """Lay out what an earlier process of the same judgement built."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        if os.fstat(descriptor).st_size:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                tar.extractall(os.environ["HOME"], filter="fully_trusted")  # noqa: S202 - the jail's own, inside the jail


def prepare(payload: Plain) -> None:
    """Put the wrappers in front of the compilers and make CXX and CC name them."""
    home = Path(os.environ["HOME"]) / DIRECTORY
    home.mkdir(exist_ok=True)
    binaries = home / "bin"
    binaries.mkdir(exist_ok=True)
    for name, real in payload["compilers"].items():
        script = binaries / name
        text = WRAPPER.format(python=sys.executable, real=real, home=str(home), record=RECORD)
        script.write_text(text)
        script.chmod(0o755)
    os.environ["PATH"] = f"{binaries}:{os.environ['PATH']}"
    if payload["compilers"]:
        os.environ["CXX"] = str(binaries / next(iter(payload["compilers"])))
    os.environ["TORCH_EXTENSIONS_DIR"] = str(Path(os.environ["HOME"]) / ".torch-extensions")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(os.environ["HOME"]) / ".inductor")
    os.environ["MAX_JOBS"] = "2"
