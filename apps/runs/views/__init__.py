"""Pages. Each view asks `may`, calls one service or presentation, and renders what comes of it."""
