"""Pages of REST's lists."""

from __future__ import annotations

from rest_framework.pagination import LimitOffsetPagination


class Paging(LimitOffsetPagination):
    """`limit` and `offset`; who asks for more than a page may hold gets a full one, and where the next begins."""

    max_limit = 200
