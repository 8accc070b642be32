"""CanonicalizeBindings: removes bindings that only rename (``weft.relax.rewrite.canonical``).

Before: ``y = x; z = R.add(y, y)``. After: ``z = R.add(x, x)``.
"""

from __future__ import annotations

from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.passes import define_function_pass

CanonicalizeBindings = define_function_pass("CanonicalizeBindings", canonicalize_bindings)
