"""Code that runs jailed: each module's entries take (channel, payload). Torch is imported here and nowhere else."""
