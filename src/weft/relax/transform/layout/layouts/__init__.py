"""How an operator works in another layout: a rule for each operator, used by ConvertLayout.

An operator without a rule gets its arguments in the order of axes that the program names.
"""

from __future__ import annotations

from weft.relax.transform.layout.layouts import shapes, values, windows
from weft.relax.transform.layout.layouts.rule import LAYOUTS

__all__ = ["LAYOUTS", "shapes", "values", "windows"]
