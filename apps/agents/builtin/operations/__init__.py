"""How each operation of the graph is written in the form. Importing this fills the table."""

from apps.agents.builtin.operations import creations, elementwise, folds, products, scans, views, windows
from apps.agents.builtin.reading import LOWERINGS

__all__ = ["LOWERINGS", "creations", "elementwise", "folds", "products", "scans", "views", "windows"]
