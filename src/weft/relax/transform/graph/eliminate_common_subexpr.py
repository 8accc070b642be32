"""EliminateCommonSubexpr: a value that was computed before is not computed again.

Before: ``a = R.exp(x); b = R.exp(x); c = R.add(a, b)``. After: ``a = R.exp(x); b = a; c =
R.add(a, a)``; CanonicalizeBindings removes ``b``. See ``weft.relax.rewrite.common_subexpr``.
"""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.relax.expr import Function
from weft.relax.rewrite.common_subexpr import eliminate_common_subexpr
from weft.relax.transform.passes import make_function_pass


def EliminateCommonSubexpr(call_only: bool = False) -> Pass:  # noqa: N802 - TVM's name
    """The pass that computes equal values once; ``call_only`` leaves tuples and fields alone."""

    def run(func: Function) -> Function:
        return eliminate_common_subexpr(func, call_only)

    return make_function_pass("EliminateCommonSubexpr", run)
