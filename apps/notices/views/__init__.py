"""Pages: the list of notices, and who wants which by which way."""
