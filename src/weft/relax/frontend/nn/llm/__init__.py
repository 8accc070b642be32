"""Large language models: paged caches of keys and values, position embeddings (to come)."""

from weft.support.facade import module_getattr

_PLANNED = dict.fromkeys(
    ("position_embedding", "tree_attn"), "paged caches for large language models"
)
__getattr__, __dir__ = module_getattr(__name__, {}, ("kv_cache",), _PLANNED)
