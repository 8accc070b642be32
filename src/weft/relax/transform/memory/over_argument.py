"""A kernel whose result is the memory of one of its arguments: ``over_argument``."""

from __future__ import annotations

from weft.ir.functor import substitute
from weft.tir.function import PrimFunc
from weft.tir.stmt_functor import renew_defs


def over_argument(kernel: PrimFunc, index: int) -> PrimFunc:
    """The kernel with its last buffer, the result, replaced by buffer ``index``.

    The caller sees to it that this is right (``weft.tir.analysis.overwritable``). No buffer comes
    behind the result, so that attributes that number them (``layout_free_buffers``) stay right.
    """
    params = [param for param in kernel.params if param in kernel.buffer_map]
    result = kernel.buffer_map[params[-1]]
    kept = [param for param in kernel.params if param is not params[-1]]
    mapping = {param: kernel.buffer_map[param] for param in kept if param in kernel.buffer_map}
    body = substitute(kernel.body, {result: mapping[params[index]]})
    return renew_defs(PrimFunc(kept, body, kernel.ret_type, mapping, kernel.attrs))
