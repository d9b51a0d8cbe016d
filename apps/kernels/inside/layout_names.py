"""Ways of storing the same inputs, by name: what is tried beyond the strides that a problem's `get_inputs` gives."""

from __future__ import annotations

TRANSPOSED = "transposed storage"
STEPPED = "every second element"
CUT_OUT = "cut out of a larger tensor"  # gaps between rows, and a start that torch's allocator would not choose
EXPANDED = "expanded"
LAYOUTS = (TRANSPOSED, CUT_OUT, STEPPED, EXPANDED)  # where time is short the first ones are tried
