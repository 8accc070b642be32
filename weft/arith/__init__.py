"""Arithmetic on index expressions: bounds, simplification, integer sets, iteration maps."""

from weft.support.facade import module_getattr

_NAMES = {
    "Analyzer": "weft.arith.analyzer",
    "ConstIntBound": "weft.arith.const_int_bound",
    "IntConstraints": "weft.arith.int_constraints",
    "IntConstraintsTransform": "weft.arith.int_constraints",
    "IntGroupBounds": "weft.arith.int_constraints",
    "IntSet": "weft.arith.int_set",
    "IntervalSet": "weft.arith.int_set",
    "IterMapExpr": "weft.arith.iter_map",
    "IterMapLevel": "weft.arith.iter_map",
    "IterMapResult": "weft.arith.iter_map",
    "IterMark": "weft.arith.iter_map",
    "IterSplitExpr": "weft.arith.iter_map",
    "IterSumExpr": "weft.arith.iter_map",
    "ModularSet": "weft.arith.modular_set",
    "ProofStrength": "weft.arith.analyzer",
    "deduce_bound": "weft.arith.deduce",
    "detect_clip_bound": "weft.arith.linear",
    "detect_common_subexpr": "weft.arith.common_subexpr",
    "detect_iter_map": "weft.arith.iter_map",
    "detect_linear_equation": "weft.arith.linear",
    "estimate_region_lower_bound": "weft.arith.region",
    "estimate_region_strict_bound": "weft.arith.region",
    "estimate_region_upper_bound": "weft.arith.region",
    "inverse_affine_iter_map": "weft.arith.iter_map",
    "iter_map_simplify": "weft.arith.iter_map",
    "neg_inf": "weft.arith.int_set",
    "normalize_iter_map_to_expr": "weft.arith.iter_map",
    "normalize_to_iter_sum": "weft.arith.iter_map",
    "pos_inf": "weft.arith.int_set",
    "solve_linear_equations": "weft.arith.int_solver",
    "solve_linear_inequalities": "weft.arith.int_solver",
    "subspace_divide": "weft.arith.iter_map",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, ("analyzer", "int_set", "int_solver"))
