"""Nests printed as C++ with OpenMP, inside a candidate that runs with torch and a compiler alone."""
