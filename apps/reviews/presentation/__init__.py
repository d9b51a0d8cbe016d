"""What the pages of reviews and kernels show, as frozen dataclasses."""
