"""REST under /api/v1/: parses, asks `may`, calls a service, answers (docs/api.md)."""
