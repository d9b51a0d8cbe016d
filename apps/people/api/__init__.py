"""What every room's REST views share, and REST about people: one shape of errors, tokens, members, audit (docs/api.md)."""
