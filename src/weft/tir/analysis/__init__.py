"""Analyses of TensorIR programs, one module each."""

from weft.support.facade import module_getattr

# These functions have the names of their submodules. They are imported here and not by the table
# below, since importing a submodule sets the package's attribute of that name to the module.
from weft.tir.analysis.domain_touched import domain_touched as domain_touched
from weft.tir.analysis.undefined_vars import undefined_vars as undefined_vars
from weft.tir.analysis.verify_well_formed import verify_well_formed as verify_well_formed

_NAMES = {
    "ThreadMemoryError": "weft.tir.analysis.thread_memory",
    "ThreadMemoryFault": "weft.tir.analysis.thread_memory",
    "AccessBound": "weft.tir.analysis.bounds",
    "AccessStatus": "weft.tir.analysis.bounds",
    "OOBChecker": "weft.tir.analysis.bounds",
    "access_bounds": "weft.tir.analysis.bounds",
    "assert_pure_function": "weft.tir.analysis.purity",
    "calculate_allocated_bytes": "weft.tir.analysis.resources",
    "check_bounds": "weft.tir.analysis.bounds",
    "detect_buffer_access_lca": "weft.tir.analysis.buffer_access_lca",
    "domain_touched": "weft.tir.analysis.domain_touched",
    "estimate_tir_flops": "weft.tir.analysis.resources",
    "expr_deep_equal": "weft.arith.deep_equal",
    "find_anchor_block": "weft.tir.analysis.anchor_block",
    "find_thread_memory_fault": "weft.tir.analysis.thread_memory",
    "get_block_access_region": "weft.tir.analysis.block_access_region",
    "get_block_read_write_region": "weft.tir.analysis.block_access_region",
    "has_unknown_bounds": "weft.tir.analysis.bounds",
    "index_data_dependence": "weft.tir.analysis.bounds",
    "is_pure_function": "weft.tir.analysis.purity",
    "undefined_vars": "weft.tir.analysis.undefined_vars",
    "verify_ssa": "weft.tir.analysis.verify_well_formed",
    "verify_thread_memory": "weft.tir.analysis.thread_memory",
    "verify_well_formed": "weft.tir.analysis.verify_well_formed",
}
__getattr__, __dir__ = module_getattr(
    __name__, _NAMES, ("block_access_region", "bounds", "purity", "resources")
)
