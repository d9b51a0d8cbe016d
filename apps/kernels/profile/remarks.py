"""What the compiler says of a kernel's loops: which it vectorised and how wide, which it did not and why.

The kernel is compiled once more, to assembly that is thrown away, with its own flags and the flag that makes the
compiler talk. Flags come from generated code, so only those that can't load, run or write anything are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from apps.kernels.host.toolchains import host_compiler
from apps.kernels.profile.compiler_log import Remark, read_clang, read_gcc
from apps.kernels.profile.runner import BuiltLibrary
from apps.kernels.profile.tool import ToolFailed, run_tool
from apps.kernels.temporary import temporary

_SAFE_FLAG = re.compile(
    r"-O(\w+)?|-std=[\w+]+|-f(?!plugin|profile|auto-profile|dump|save|sanitize|use-|pass-|working|stack-usage|callgraph)"
    r"[\w-]+(=[\w,.-]+)?|-m[\w.-]+(=[\w,.+-]+)?|-D\w+(=[\w.+-]*)?|-U\w+|-I[\w./+-]+|-g\d?|-w|-W[a-z][\w-]*(=\w+)?"
)
# The vectoriser's whole log: -fopt-info keeps the reason of the last, narrowest vector size tried, which misleads.
_GCC_FLAGS = ("-fdump-tree-vect-details=stderr",)
_CLANG_FLAGS = ("-Rpass=loop-vectorize", "-Rpass-missed=loop-vectorize", "-Rpass-analysis=loop-vectorize")
_MOST_SECONDS = 25
Compile = Callable[[Sequence[str], Path], str]


class NoRemarks(RuntimeError):
    """The compiler could not be asked; the message says why."""


def vectorisation_remarks(library: BuiltLibrary, compile_text: Compile | None = None) -> tuple[Remark, ...]:
    """Remarks on the source's own lines, in order. `compile_text` runs a command in a directory, for its diagnostics.

    Without it the compiler runs here, limited but not jailed: for sources of one's own. The judge gives a jailed one.

    Raises `NoRemarks` where the command line or source is unknown or the compiler does not finish.
    """
    if not library.command or not library.source:
        raise NoRemarks("how the kernel was compiled is not known")
    if "torch/extension.h" in library.source:
        raise NoRemarks("the source includes Torch's headers, which take half a minute to compile again")
    with temporary("remarks") as directory:
        source = directory / "kernel.cpp"
        source.write_text(library.source)
        command, clang = remark_command(library.command, source.name)
        text = (compile_text or compile_here)(command, directory)
    return read_clang(text, source.name) if clang else read_gcc(text, source.name)


def remark_command(command: Sequence[str], source: str) -> tuple[list[str], bool]:
    """The command that makes the compiler talk about `source`, and whether the compiler is clang."""
    name = Path(command[0]).name
    clang = "clang" in name
    known = re.fullmatch(r"(clang|g|c)\+\+(-\d+)?|(clang|gcc)(-\d+)?|[\w]+-linux-gnu-g\+\+(-\d+)?", name)
    compiler = command[0] if known else host_compiler()
    if compiler is None:
        raise NoRemarks("no C++ compiler is installed")
    flags = [flag for flag in command[1:] if _SAFE_FLAG.fullmatch(flag)]
    talk = _CLANG_FLAGS if clang else _GCC_FLAGS
    return [compiler, *flags, *talk, "-x", "c++", "-S", "-o", "/dev/null", source], clang


def compile_here(command: Sequence[str], directory: Path) -> str:
    """Runs the compiler with limits; its diagnostics. Raises `NoRemarks`."""
    try:
        return run_tool(command, seconds=_MOST_SECONDS, directory=directory).errors
    except ToolFailed as problem:
        # What the compiler says of an error may quote other files: it is not passed on.
        raise NoRemarks(f"the kernel could not be compiled once more: {problem}") from None
