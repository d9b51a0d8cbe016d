"""How a run thinks: the loop, its ports, the coders, the Verifier, the Profiler, the Conductor and the memory of a run.

No Django and no torch: a problem reaches this package as facts and a graph, a kernel leaves it as text.
"""
