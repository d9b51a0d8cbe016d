"""`load_inline` in about a second: C++ extensions compiled against a header of our own, or Torch's where that must be.

Jailed code that imports `torch.utils.cpp_extension` gets a module whose `load_inline` is this one; everything else in it
is Torch's, loaded when it is asked for. What the header doesn't know is compiled with Torch's own headers. CUDA and
whatever else is out of the ordinary goes to Torch's `load_inline`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

# Read when the zygote imports this module: the jail can't see where it lies.
_INCLUDE = Path(__file__).parents[1] / "include"
HEADERS = {str(path.relative_to(_INCLUDE)): path.read_text() for path in sorted(_INCLUDE.rglob("*.h"))}
NAME = "torch.utils.cpp_extension"
STANDARD = "-std=c++20"
COMPILE_SECONDS = 200.0
LONGEST_LOG = 12_000
# Errors that Torch's own headers may not give: something in their namespaces or macros that ours lack.
_NOT_OURS = re.compile(
    r"torch::|at::|c10::|py::|pybind11|\bAT_\w+|\bTORCH_\w+|C10_\w+|'Tensor'|has no member|No such file or directory"
    r"|no match for .operator|Scalar|brief|static assertion|no matching function|could not convert|cannot convert"
)


@dataclasses.dataclass(frozen=True)
class Extension:
    """One extension to build, as `load_inline` is told it."""

    name: str
    source: str
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    verbose: bool = False

    @property
    def digest(self) -> str:
        """What decides the result: sources, flags, our headers and torch's version."""
        parts = (*dataclasses.astuple(self), sorted(HEADERS.items()), torch.__version__)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


class CompilerFailed(Exception):
    """The compiler refused; the message is what it said."""


def install(*, real_headers: bool = False) -> None:
    """Put our `load_inline` in front of Torch's for this process. `real_headers` keeps our header out of it."""
    module = _Extensions(NAME)
    module.__dict__["real_headers"] = real_headers
    sys.modules[NAME] = module
    torch.utils.cpp_extension = module


class _Extensions(ModuleType):
    """`torch.utils.cpp_extension` with another `load_inline`; the real one is imported when something else is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "load_inline":
            return self._load_inline
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def _real(self) -> ModuleType:
        if "_imported" not in self.__dict__:
            path = Path(torch.__file__).parent / "utils" / "cpp_extension.py"
            spec = importlib.util.spec_from_file_location(NAME, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.__dict__["_imported"] = module
        imported: ModuleType = self.__dict__["_imported"]
        return imported

    def _load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        sycl_sources: str | Sequence[str] | None = None,
        functions: str | Sequence[str] | Mapping[str, str] | None = None,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        extra_sycl_cflags: Sequence[str] | None = None,
        extra_ldflags: Sequence[str] | None = None,
        extra_include_paths: Sequence[str] | None = None,
        build_directory: str | None = None,
        verbose: bool = False,
        **others: Any,
    ) -> Any:
        """Torch's signature; see `torch.utils.cpp_extension.load_inline`."""
        unusual = cuda_sources or sycl_sources or others.get("with_cuda") or others.get("with_sycl")
        if unusual or not others.get("is_python_module", True):
            given = {k: v for k, v in locals().items() if k not in ("self", "others", "unusual")}
            return self._real().load_inline(**given, **others)
        sources = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
        if not others.get("no_implicit_headers"):
            sources.insert(0, "#include <torch/extension.h>")
        extension = Extension(
            name=name,
            source="\n".join([*sources, *_bindings(functions)]) + "\n",
            compile_flags=tuple(flag.strip() for flag in extra_cflags or ()),
            link_flags=tuple(extra_ldflags or ()),
            include_paths=tuple(str(Path(path).absolute()) for path in extra_include_paths or ()),
            verbose=verbose,
        )
        return load(extension, real_headers=bool(self.__dict__["real_headers"]))


def _bindings(functions: str | Sequence[str] | Mapping[str, str] | None) -> list[str]:
    """The module's definition, as Torch writes it."""
    if functions is None:
        return []
    names = [functions] if isinstance(functions, str) else functions
    documented = names if isinstance(names, Mapping) else {name: name for name in names}
    lines = [f'm.def("{name}", torch::wrap_pybind_function({name}), "{text}");' for name, text in documented.items()]
    return ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"]


# --- building ---------------------------------------------------------------------------------------------------------


def load(extension: Extension, *, real_headers: bool = False) -> Any:
    """The extension as a Python module, built if it isn't yet. Raises RuntimeError with the compiler's words."""
    home = Path(os.environ.get("HOME", ".")) / ".extensions"
    directory = home / f"{extension.digest}{'-real' if real_headers else ''}"
    library = directory / f"{extension.name}.so"
    if not library.exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "main.cpp").write_text(extension.source)
        try:
            if real_headers or not _build_briefly(extension, home, directory):
                _build(extension, directory, _torch_compile_flags(extension.name), _torch_link_flags())
        except CompilerFailed as failure:
            raise RuntimeError(f"Error building extension '{extension.name}': {failure}") from None
    return _imported(extension.name, library)


def _build_briefly(extension: Extension, home: Path, directory: Path) -> bool:
    """Build with our own header; False where only Torch's can tell whether the source is right."""
    include = home / "include"
    _write_headers(include)
    try:
        _build(extension, directory, ["-isystem", str(include), f"-DTORCH_EXTENSION_NAME={extension.name}"], [])
    except CompilerFailed as failure:
        if not blames_header(str(failure)):
            raise
        print(f"{extension.name}: built with Torch's own headers, because: {_first_error(str(failure))}", flush=True)
        return False
    return True


def blames_header(log: str) -> bool:
    """Whether a failed compilation may be our header's fault rather than the source's."""
    errors = [line for line in log.splitlines() if " error: " in line or " undefined " in line]
    return not errors or any(_NOT_OURS.search(line) for line in errors)


def _first_error(log: str) -> str:
    return next((line.split(" error: ", 1)[1] for line in log.splitlines() if " error: " in line), "no reason given")[
        :200
    ]


def _write_headers(include: Path) -> None:
    for name, text in HEADERS.items():
        path = include / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def _build(extension: Extension, directory: Path, compile_flags: Sequence[str], link_flags: Sequence[str]) -> None:
    compiler = os.environ.get("CXX", "g++")
    paths = [flag for path in extension.include_paths for flag in ("-I", path)]
    python = ["-isystem", sysconfig.get_path("include")]
    own = extension.compile_flags
    command = [compiler, *compile_flags, *paths, *python, "-fPIC", STANDARD, *own, "-c", "main.cpp", "-o", "main.o"]
    library = f"{extension.name}.so"
    try:
        _run(command, directory, extension.verbose)
        _run(
            [compiler, "main.o", "-shared", *_split(extension.link_flags), *link_flags, "-o", library], directory, False
        )
    finally:
        (directory / "main.o").unlink(missing_ok=True)


def _split(flags: Sequence[str]) -> list[str]:
    """Torch hands link flags to a shell: one text may hold several."""
    return [part for flag in flags for part in shlex.split(flag)]


def _run(command: Sequence[str], directory: Path, verbose: bool) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise CompilerFailed(f"there is no compiler {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise CompilerFailed(f"the compiler took more than {COMPILE_SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stderr.replace("\N{LEFT SINGLE QUOTATION MARK}", "'").replace(
            "\N{RIGHT SINGLE QUOTATION MARK}", "'"
        )
        raise CompilerFailed((said or f"exit code {done.returncode}")[:LONGEST_LOG])
    if verbose and done.stderr:
        print(done.stderr[:LONGEST_LOG], flush=True)


def _torch_compile_flags(name: str) -> list[str]:
    """What Torch's own `load_inline` hands to the compiler."""
    include = Path(torch.__file__).parent / "include"
    flags = [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
    for path in (include, include / "torch" / "csrc" / "api" / "include"):
        flags += ["-isystem", str(path)]
    return flags


def _torch_link_flags() -> list[str]:
    directory = Path(torch.__file__).parent / "lib"
    return [f"-L{directory}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]


def _imported(name: str, library: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
