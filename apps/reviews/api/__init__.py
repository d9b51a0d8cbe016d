"""REST about reviews and accepted kernels, under /api/v1/ (docs/api.md)."""
