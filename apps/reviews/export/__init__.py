"""Accepted kernels outside of PRAGMA: one file that runs with torch and a compiler, and a bundle with all that is known."""
