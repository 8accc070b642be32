"""Iteration maps: indices as digits of loops (TVM's IterAffineMap).

``nodes`` are marks, splits and sums; ``rewriter`` (with ``fuse``, ``combine``, ``padding``) turns
expressions into them; ``constraint`` reads predicates; ``check`` decides independence; ``detect``,
``subspace``, ``inverse`` and ``to_expr`` are what others call, re-exported here.
"""

from weft.arith.iter_map.detect import detect_iter_map, iter_map_simplify, normalize_to_iter_sum
from weft.arith.iter_map.inverse import inverse_affine_iter_map
from weft.arith.iter_map.nodes import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
)
from weft.arith.iter_map.subspace import subspace_divide
from weft.arith.iter_map.to_expr import normalize_iter_map_to_expr

__all__ = [
    "IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr",
    "detect_iter_map", "inverse_affine_iter_map", "iter_map_simplify",
    "normalize_iter_map_to_expr", "normalize_to_iter_sum", "subspace_divide",
]  # fmt: skip
