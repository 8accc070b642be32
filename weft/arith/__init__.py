"""Arithmetic on index expressions: bounds, modular sets, simplification, integer sets, iter maps."""

from weft.support.facade import module_getattr

_NAMES = {
    "Analyzer": "weft.arith.analyzer",
    "ConstIntBound": "weft.arith.const_int_bound",
    "IntSet": "weft.arith.int_set",
    "IntervalSet": "weft.arith.int_set",
    "ModularSet": "weft.arith.modular_set",
    "ProofStrength": "weft.arith.analyzer",
    "detect_clip_bound": "weft.arith.linear",
    "detect_linear_equation": "weft.arith.linear",
    "estimate_region_lower_bound": "weft.arith.region",
    "estimate_region_strict_bound": "weft.arith.region",
    "estimate_region_upper_bound": "weft.arith.region",
    "neg_inf": "weft.arith.int_set",
    "pos_inf": "weft.arith.int_set",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, ("analyzer", "int_set"))
