"""The compiler that is asked for remarks runs where the candidate's own compilers ran: inside the jail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.kernels.host.toolchains import find_tool
from apps.kernels.jail import Zygote
from apps.kernels.judge.compiling import jailed_compiler
from apps.kernels.profile.remarks import NoRemarks, vectorisation_remarks
from apps.kernels.profile.runner import BuiltLibrary

LOOP = """
extern "C" void add(float *__restrict y, const float *__restrict x, long n) {
  for (long i = 0; i < n; i++) y[i] += x[i];
}
"""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    if find_tool("g++") is None:
        pytest.skip("needs g++ (package g++)")
    with Zygote() as started:
        yield started


def built(source: str, *flags: str) -> BuiltLibrary:
    return BuiltLibrary(Path("/nowhere/kernel.so"), ("/usr/bin/g++", "-O3", *flags), source)


def test_remarks_are_the_same_as_outside(zygote: Zygote) -> None:
    remarks = vectorisation_remarks(built(LOOP), jailed_compiler(zygote))
    assert any(remark.line == 3 and not remark.missed for remark in remarks)
    assert remarks == vectorisation_remarks(built(LOOP))


def test_what_only_the_host_can_read_is_not_there(zygote: Zygote, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("#define HUNTER2 1\n")
    source = f'#if __has_include("{secret}")\n{LOOP}\n#endif\n'
    assert vectorisation_remarks(built(source))
    assert not vectorisation_remarks(built(source), jailed_compiler(zygote))


def test_a_source_that_does_not_compile_tells_nothing_of_other_files(zygote: Zygote) -> None:
    with pytest.raises(NoRemarks) as refused:
        vectorisation_remarks(built('#include "/etc/passwd"\n'), jailed_compiler(zygote))
    assert "ended with 1" in str(refused.value) and "root" not in str(refused.value)
