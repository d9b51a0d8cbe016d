"""REST about models and what their calls took."""
