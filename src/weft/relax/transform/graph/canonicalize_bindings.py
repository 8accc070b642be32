"""CanonicalizeBindings: removes bindings that only rename (``weft.relax.rewrite.canonical``).

Before: ``y = x; z = R.add(y, y)``. After: ``z = R.add(x, x)``.
"""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.passes import make_function_pass


def CanonicalizeBindings() -> Pass:  # noqa: N802 - TVM's name
    """The pass that removes bindings that only rename."""
    return make_function_pass("CanonicalizeBindings", canonicalize_bindings)
