"""``over_argument``: a kernel that writes its result over one of its arguments."""

from __future__ import annotations

from weft.ir.functor import substitute
from weft.tir.function import PrimFunc
from weft.tir.stmt_functor import renew_defs


def over_argument(kernel: PrimFunc, index: int) -> PrimFunc:
    """The kernel with buffer ``index`` in place of its last buffer, the result.

    The caller must know that this is correct (``weft.tir.analysis.overwritable``). Since the result
    is last, the other buffers keep their numbers, and attributes with such numbers stay right.
    """
    params = [param for param in kernel.params if param in kernel.buffer_map]
    result = kernel.buffer_map[params[-1]]
    kept = [param for param in kernel.params if param is not params[-1]]
    mapping = {param: kernel.buffer_map[param] for param in kept if param in kernel.buffer_map}
    body = substitute(kernel.body, {result: mapping[params[index]]})
    return renew_defs(kernel.with_(params=kept, body=body, buffer_map=mapping))
