"""REST about one's own notices, what one is told of, and webhooks."""
