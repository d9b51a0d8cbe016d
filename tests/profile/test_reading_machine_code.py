"""Listings are read rightly: loops, widths, loads and stores, strides, dependencies."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from apps.kernels.profile.access import Access, memory_access
from apps.kernels.profile.disassembly import Loop, NoDisassembly, disassemble, innermost_loops, read_objdump
from apps.kernels.profile.elf import BadElf, read_symbols
from apps.kernels.profile.instruction_mix import instruction_mix, vector_bits
from apps.kernels.profile.prediction import read_report
from apps.kernels.profile.recurrence import recurrence_cycles, throughput_cycles


def loop(*lines: str) -> Loop:
    """A loop of these instructions, four bytes each, and the jump back."""
    listing = ["0000000000001000 <kernel>:"]
    listing += [f"    {0x1000 + 4 * i:x}:\t{line}" for i, line in enumerate(lines)]
    listing.append(f"    {0x1000 + 4 * len(lines):x}:\tjne    1000 <kernel>")
    (found,) = innermost_loops(read_objdump(listing))
    return found


def counted(found: Loop) -> dict[str, int]:
    return {kind: n for kind, n in instruction_mix(found).items() if n}


def test_only_innermost_loops_of_kernels_are_taken() -> None:
    listing = textwrap.dedent("""
        0000000000001000 <kernel>:
            1000:\txor    %eax,%eax
            1002:\txor    %ecx,%ecx
            1004:\tinc    %rcx
            1007:\tcmp    %rcx,%rdx
            100a:\tjne    1004 <kernel+0x4>
            100c:\tinc    %rax
            100f:\tcmp    %rax,%rsi
            1012:\tjne    1002 <kernel+0x2>
            1014:\tret
        0000000000002000 <register_tm_clones>:
            2000:\tinc    %rax
            2003:\tjne    2000 <register_tm_clones>
        0000000000003000 <other>:
            3000:\tjmp    1000 <kernel>
    """)
    (found,) = innermost_loops(read_objdump(listing.splitlines()))
    assert (found.symbol, found.start, found.end) == ("kernel", 0x1004, 0x100A)


@pytest.mark.parametrize(
    ("lines", "mix", "bits"),
    [
        (
            ("vmovups (%rdi,%rax,1),%zmm0", "vfmadd231ps (%rsi,%rax,1),%zmm1,%zmm0", "vmovups %zmm0,(%rdx,%rax,1)"),
            {"instructions": 4, "vector_512": 3, "fma": 1, "loads": 2, "stores": 1},
            512,
        ),
        (
            ("vmovss (%rdi),%xmm0", "vdivss %xmm1,%xmm0,%xmm0", "vmovss %xmm0,(%rdx)"),
            {"instructions": 4, "scalar": 3, "div_sqrt": 1, "loads": 1, "stores": 1},
            64,
        ),
        (
            ("vbroadcastss (%rdi),%ymm0", "vpackssdw %ymm1,%ymm0,%ymm0", "vmovntps %ymm0,(%rdx)"),
            {"instructions": 4, "vector_256": 3, "loads": 1, "stores": 1, "nt_stores": 1},
            256,
        ),
        (("addl $0x1,(%rdi)", "cmpl $0x5,(%rsi)"), {"instructions": 3, "loads": 2, "stores": 1}, 64),
        (("lea 0x4(%rdi),%rdi", "prefetcht0 0x200(%rdi)"), {"instructions": 3}, 64),
        (
            ("mov 0x8(%rsp),%rax", "vmovaps %xmm0,-0x40(%rbp)"),
            {"instructions": 3, "vector_128": 1, "loads": 1, "stores": 1, "spills": 2},
            128,
        ),
        (
            ("call 1040 <tanhf@plt>", "call 1050 <_ZGVeN16v_expf@plt>"),
            {"instructions": 3, "calls": 1, "vector_math_calls": 1},
            64,
        ),
        (("vgatherdps (%rdi,%zmm1,4),%zmm0{%k1}",), {"instructions": 2, "vector_512": 1, "gather": 1, "loads": 1}, 512),
        (("cvtsi2ss %eax,%xmm0", "addps %xmm1,%xmm2"), {"instructions": 3, "scalar": 1, "vector_128": 1}, 128),
        (("idivq 0x8(%rdi)",), {"instructions": 2, "div_sqrt": 1, "loads": 1}, 64),
    ],
)  # fmt: skip
def test_instructions_are_counted_by_kind(lines: tuple[str, ...], mix: dict[str, int], bits: int) -> None:
    found = loop(*lines)
    assert counted(found) == mix
    assert vector_bits(found) == bits


@pytest.mark.parametrize(
    ("lines", "access"),
    [
        (("vmovups (%rdi,%rax,1),%zmm0", "add $0x40,%rax"), Access(0, 0)),
        (("vmovups (%rdi),%ymm0", "vmovups 0x20(%rdi),%ymm1", "add $0x40,%rdi"), Access(0, 0)),
        (("vaddss (%rdx),%xmm0,%xmm0", "add %rcx,%rdx"), Access(1, 0)),
        (("vaddss (%rdx),%xmm0,%xmm0", "add $0x1000,%rdx"), Access(1, 0)),
        (("vmovss (%rdx,%rax,4),%xmm0", "inc %rax"), Access(0, 0)),
        (("vbroadcastss (%rdx),%zmm0", "add $0x40,%rax"), Access(0, 0)),
        (("mov (%r8,%rdx,8),%rcx", "vmovss (%rdi,%rcx,4),%xmm0", "inc %rdx"), Access(0, 1)),
        (("movslq (%r8,%rdx,4),%rcx", "lea (%rdi,%rcx,4),%r9", "vmovss (%r9),%xmm0", "inc %rdx"), Access(0, 1)),
        (("vgatherdps (%rdi,%zmm1,4),%zmm0{%k1}", "add $0x40,%rax"), Access(0, 1)),
        (("mov (%rdi,%rax,8),%r8d", "inc %rax"), Access(0, 0)),
    ],
)
def test_strides_and_indirection_are_seen(lines: tuple[str, ...], access: Access) -> None:
    assert memory_access(loop(*lines)) == access


def test_one_accumulator_waits_for_itself_and_eight_do_not() -> None:
    chained = loop(
        "vfmadd231ps (%rdi),%zmm1,%zmm0", "vfmadd231ps 0x40(%rdi),%zmm1,%zmm0", "sub $0xffffffffffffff80,%rdi"
    )
    apart = loop(*(f"vfmadd231ps 0x{64 * i:x}(%rdi),%zmm9,%zmm{i}" for i in range(8)))
    assert recurrence_cycles(chained) == 8
    assert recurrence_cycles(apart) == 4
    assert throughput_cycles(apart) == 4
    assert throughput_cycles(chained) < 4


def test_a_register_that_is_set_anew_carries_nothing_over() -> None:
    assert recurrence_cycles(loop("vxorps %xmm0,%xmm0,%xmm0", "vaddps (%rdi),%zmm0,%zmm0")) == 0
    assert recurrence_cycles(loop("vmovups (%rdi),%zmm0", "vmulps %zmm1,%zmm0,%zmm0", "vmovups %zmm0,(%rdi)")) == 0
    # flipping a sign by exclusive or is no zeroing
    assert recurrence_cycles(loop("vxorps (%rdi),%zmm0,%zmm0", "vaddps %zmm1,%zmm0,%zmm0")) == 5


def test_llvm_mcas_summary_is_read() -> None:
    report = """Iterations:        100
    Instructions:      500
    Total Cycles:      411
    Total uOps:        500
    Block RThroughput: 1.0
    Cycles with backend pressure increase [ 90.10% ]
      Data Dependencies:      [ 70.00% ]
      - Register Dependencies [ 67.15% ]
    """
    found = read_report(report)
    assert found is not None
    assert (found.cycles, found.throughput_cycles, found.dependency_pressure) == (4.11, 1.0, pytest.approx(0.6715))
    assert read_report("error: found an unsupported instruction") is None


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    for name, content in {"text": b"hello", "empty": b"", "cut": b"\x7fELF\x02\x01" + b"\xff" * 70}.items():
        path = tmp_path / f"{name}.so"
        path.write_bytes(content)
        with pytest.raises(BadElf):
            read_symbols(path)
        with pytest.raises(NoDisassembly):
            disassemble(path)
