"""C++ as a rule may read it: comments, strings and character literals blanked, lines kept."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*"""
    r"""|/\*.*?\*/"""
    r"""|(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)\""""
    r'''|"(?:\\.|[^"\\\n])*"'''
    r"""|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.S,
)
_LOOKS = re.compile(r'^\s*#\s*(include|pragma|define|if)\b|extern\s+"C"|__global__|torch::Tensor|at::Tensor', re.M)


def looks_like_cpp(text: str) -> bool:
    """Whether a text in a candidate is C++ or CUDA source."""
    return bool(_LOOKS.search(text))


def without_comments(text: str, *, keep_includes: bool = False) -> str:
    """The text with comments and literals replaced by blanks of the same shape; includes keep their file names."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        if keep_includes and token.startswith('"') and re.search(r"#\s*include\s*$", text[: match.start()][-40:]):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(blank, text)
