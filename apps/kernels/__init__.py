"""A kernel on a machine: read, built, jailed, checked, timed and profiled.

Standard library alone; torch is imported in jailed processes only, so this package runs bare on a GPU box.
"""
