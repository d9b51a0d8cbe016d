"""The command line of a host: `python -m apps.kernels`."""
