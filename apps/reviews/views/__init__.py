"""Pages of reviews and kernels: each view parses, asks `may`, calls one service and renders."""
