"""Pages about people: signing in, passwords, settings."""
