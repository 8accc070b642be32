"""Questions about blocks and loops of a schedule: their kinds, their accesses, what fits them."""

from weft.support.facade import module_getattr

_NAMES = {
    "get_loop_iter_type": "weft.tir.schedule.analysis.block_kinds",
    "has_block": "weft.tir.schedule.analysis.block_kinds",
    "is_output_block": "weft.tir.schedule.analysis.block_kinds",
    "suggest_index_map": "weft.tir.schedule.analysis.layout_by_use",
    "AutoTensorizeMappingInfo": "weft.tir.schedule.analysis.tensorize_mapping",
    "get_auto_tensorize_mapping_info": "weft.tir.schedule.analysis.tensorize_mapping",
    "TensorizeInfo": "weft.tir.schedule.analysis.loop_mapping",
    "get_tensorize_loop_mapping": "weft.tir.schedule.analysis.loop_mapping",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
