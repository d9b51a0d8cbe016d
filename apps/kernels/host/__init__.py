"""What a machine is and what it can do at most: processor, caches, tools, devices, counters, measured ceilings."""
