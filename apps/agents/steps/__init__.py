"""The steps of a run, by agent: for each its key, what it is done from, who does it, and the facts that follow.

Each goes through the journal and then into the memory, so a resumed run, which gets the same results back, knows the
same. What comes from outside (a stop, a device that can't judge, a coder that can't write) is a result like any other and
is journalled: a replay without it would go another way.
"""
