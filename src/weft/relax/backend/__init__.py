"""``relax.backend``: patterns of what libraries compute, and the registry of such patterns."""

from weft.relax.backend import pattern_registry as pattern_registry
from weft.relax.backend import patterns as patterns
from weft.relax.backend.pattern_registry import get_pattern, get_patterns_with_prefix
from weft.relax.backend.pattern_registry import register_patterns as register_patterns
from weft.support.facade import module_getattr

__all__ = [
    "get_pattern", "get_patterns_with_prefix", "pattern_registry", "patterns", "register_patterns",
]  # fmt: skip
_PLANNED = dict.fromkeys(
    ("adreno", "contrib", "cuda", "gpu_generic", "metal", "rocm"), "code generation for GPUs"
)
__getattr__, _ = module_getattr(__name__, {}, planned=_PLANNED)
