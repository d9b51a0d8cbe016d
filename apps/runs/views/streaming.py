"""Long answers that leave piece by piece, however long they get."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import cast

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

TOGETHER = 200  # pieces that are sent together


class Streamed(StreamingHttpResponse):
    """A streamed answer whose pieces are made in the request's thread as they are sent.

    Django itself would make them all first and hold them, since an ASGI server can't wait for a plain iterator.
    """

    def __init__(self, pieces: Iterable[str], content_type: str, name: str) -> None:
        super().__init__(pieces, content_type=content_type)
        self["Content-Disposition"] = f'attachment; filename="{name}"'

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces, some at a time."""
        pieces = cast("Iterator[bytes]", self.streaming_content)
        take = sync_to_async(lambda: b"".join(islice(pieces, TOGETHER)))
        while some := await take():
            yield some
