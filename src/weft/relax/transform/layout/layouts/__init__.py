"""How layouts go through operators: one rule for each, used by ConvertLayout.

An operator without a rule takes its arguments, and returns its result, as the program names axes.
"""

from __future__ import annotations

from weft.relax.transform.layout.layouts import shapes, values, windows
from weft.relax.transform.layout.layouts.rule import LAYOUTS

__all__ = ["LAYOUTS", "shapes", "values", "windows"]
