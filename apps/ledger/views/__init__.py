"""Pages of models, limits and calls."""
