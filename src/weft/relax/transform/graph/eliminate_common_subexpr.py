"""EliminateCommonSubexpr: a value that was computed before is not computed again.

Before: ``a = R.exp(x); b = R.exp(x); c = R.add(a, b)``. After: ``a = R.exp(x); b = a; c =
R.add(a, a)``; CanonicalizeBindings removes ``b``. See ``weft.relax.rewrite.common_subexpr``.
"""

from __future__ import annotations

from weft.relax.rewrite.common_subexpr import eliminate_common_subexpr
from weft.relax.transform.passes import define_function_pass

EliminateCommonSubexpr = define_function_pass("EliminateCommonSubexpr", eliminate_common_subexpr)
