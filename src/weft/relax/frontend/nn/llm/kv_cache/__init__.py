"""Paged caches of keys and values: names that are to come with the language-model issue.

A package, since ``from module import name`` hides the message of a plain module.
"""

from weft.support.facade import module_getattr

_PLANNED = dict.fromkeys(
    (
        "AttnKind", "FlashInferPagedKVCache", "PagedKVCache", "RopeMode", "TIRPagedKVCache",
        "llama_rope_with_position_map", "tree_attn_cpu", "tree_attn_with_paged_kv_cache_cpu",
    ),
    "paged caches for large language models, a later issue; nn.KVCache is a cache for one sequence",
)  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, {}, (), _PLANNED)
