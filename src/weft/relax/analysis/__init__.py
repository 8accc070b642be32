"""Analyses of graph programs: ``relax.analysis.<name>``."""

from weft.relax.analysis.bindings import get_var2val, name_to_binding, udchain
from weft.relax.analysis.compile_time import computable_at_compile_time, has_reshape_pattern
from weft.relax.analysis.layout_transforms import suggest_layout_transforms
from weft.relax.analysis.memory_usage import estimate_memory_usage
from weft.relax.analysis.purity import contains_impure_call, detect_recursion
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.analysis.variables import (
    all_global_vars,
    all_vars,
    bound_vars,
    called_global_vars,
    collect_non_negative_expressions,
    definable_tir_vars_in_struct_info,
    defined_symbolic_vars,
    free_symbolic_vars,
    free_vars,
    tir_vars_in_struct_info,
)
from weft.relax.analysis.well_formed import well_formed
from weft.relax.expr_functor import post_order_visit
from weft.relax.ir.lattice import (
    BaseCheckResult,
    derive_call_ret_struct_info,
    erase_to_well_defined,
    get_static_type,
    struct_info_base_check,
    struct_info_lca,
)

__all__ = [
    "BaseCheckResult",
    "all_global_vars",
    "all_vars",
    "bound_vars",
    "called_global_vars",
    "collect_non_negative_expressions",
    "computable_at_compile_time",
    "contains_impure_call",
    "definable_tir_vars_in_struct_info",
    "defined_symbolic_vars",
    "derive_call_ret_struct_info",
    "detect_recursion",
    "erase_to_well_defined",
    "estimate_memory_usage",
    "free_symbolic_vars",
    "free_vars",
    "get_static_type",
    "get_var2val",
    "has_reshape_pattern",
    "name_to_binding",
    "post_order_visit",
    "remove_all_unused",
    "struct_info_base_check",
    "struct_info_lca",
    "suggest_layout_transforms",
    "tir_vars_in_struct_info",
    "udchain",
    "well_formed",
]
