"""What holds a kernel back: measured while it runs, read from its machine code, and named by a table of thresholds."""
