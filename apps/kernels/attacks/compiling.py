"""Attacks by what a compiler is told: they run real compilers where candidates do, in the build phase of a jail.

A compiler reads and runs whatever its user may. What holds is that its user is the jail: each attack asks it for a file
that everybody on the machine may read.
"""

from __future__ import annotations

from apps.kernels.attacks.attack import Attack, Layer

FILES = (Layer.ROOT, Layer.LANDLOCK)


def _compile(name: str, source: str, *flags: str) -> Attack:
    """The compiler's words and what it writes are searched for the secret."""
    return Attack("compilers", name, f"return compiled({source!r}, {flags!r})", FILES)


COMPILING = (
    _compile("#include of a file", '#include "{secret}"\n'),
    _compile("#include of another process's environment", '#include "/proc/{judge}/environ"\n'),
    _compile("-include", "", "-include", "{secret}"),
    _compile(".incbin", 'asm(".section .rodata\\n.incbin \\"{secret}\\"\\n");\n'),
    _compile("#embed", 'const unsigned char data[] = {{\n#embed "{secret}"\n}};\n', "-std=c++26"),
    _compile("#embed in C", 'const unsigned char data[] = {{\n#embed "{secret}"\n}};\n', "-x", "c", "-std=c23"),
    _compile("whether a file is there", '#if __has_include("{secret}")\nasm(".ascii \\"{token}\\"");\n#endif\n'),
    _compile("a response file", "", "@{secret}"),
    _compile("-wrapper", "", "-wrapper", "/bin/sh,-c,cat {secret} >&2"),
    _compile("a plugin", "", "-fplugin={secret}"),
    _compile("specs", "", "-specs={secret}"),
    _compile("a linker script", "INPUT", "-shared", "-Wl,-T,{secret}"),
    _compile("a linker's response file", "", "-shared", "-Wl,@{secret}"),
    _compile("an assembler's include", 'asm(".include \\"{secret}\\"");\n'),
    Attack("compilers", "write outside by -o", "return written('-o')", FILES),
    Attack("compilers", "write outside by -MF", "return written('-MMD', '-MF')", FILES),
)
