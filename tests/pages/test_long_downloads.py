"""What is long leaves piece by piece: nothing waits for the end, and nobody holds all of it."""

from __future__ import annotations

from collections.abc import Iterator

from apps.runs.views.streaming import TOGETHER, Streamed


async def test_a_download_begins_before_all_of_it_is_made() -> None:
    made = 0

    def lines() -> Iterator[str]:
        nonlocal made
        for made in range(1, 10 * TOGETHER + 1):
            yield f"{made}\n"

    answer = Streamed(lines(), "text/plain; charset=utf-8", "lines.txt")
    pieces = aiter(answer)
    first = await anext(pieces)
    assert made == TOGETHER
    whole = first + b"".join([piece async for piece in pieces])
    assert whole.splitlines()[-1] == str(10 * TOGETHER).encode()
    assert answer["Content-Disposition"] == 'attachment; filename="lines.txt"'
