"""What pages show, built from rows and evaluations as frozen dataclasses; templates only lay it out."""
