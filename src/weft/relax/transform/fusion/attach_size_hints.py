"""AttachSizeHints: tells each kernel what its symbols usually are, for its schedule.

The hints of the module are about the symbols of its graphs: ``{"batch": 8}``. A kernel has symbols
of its own, which its calls bind: where ``x`` has the shape ``(batch * 2, 64)`` and a kernel takes a
buffer of the shape ``(n, 64)``, the call ``call_tir(kernel, (x,), ...)`` gives the kernel
``{"n": 16}``. Of several calls the largest size counts, since it takes the most time. Symbols of a
kernel that share a name get no hint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.expr import Call, Function, ShapeExpr, Tuple
from weft.relax.ir.lattice import tensor_dims
from weft.relax.op.base import CALL_TIR, CALL_TIR_INPLACE
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.size_hints import SIZE_HINTS, likely_size, size_hints_of


def attach_size_hints(mod: IRModule) -> IRModule:
    """The module whose kernels have the hints that follow from those of the module."""
    hints = size_hints_of(mod)
    if not hints:
        return mod
    sizes: dict[GlobalVar, dict[Var, int]] = {}
    for function in mod.functions.values():
        for call in collect(function, Call) if isinstance(function, Function) else ():
            if call.op in (CALL_TIR, CALL_TIR_INPLACE) and isinstance(call.args[0], GlobalVar):
                known = sizes.setdefault(call.args[0], {})
                for var, size in _sizes_in(call, mod, hints):
                    known[var] = max(size, known.get(var, 0))
    functions = dict(mod.functions)
    for kernel, known in sizes.items():
        if known:
            counts = Counter([var.name for var in known])
            named = {var.name: size for var, size in known.items() if counts[var.name] == 1}
            functions[kernel] = functions[kernel].with_attr(SIZE_HINTS, named)
    return mod.with_(functions=functions)


def _sizes_in(call: Call, mod: IRModule, hints: Mapping[str, int]) -> Iterator[tuple[Var, int]]:
    """The symbols of a kernel that a call binds, with what they usually are there."""
    kernel = mod.functions.get(expect(call.args[0], GlobalVar))
    if not isinstance(kernel, PrimFunc):
        return
    for symbol, extent in _bound(call, kernel):
        size = likely_size(extent, hints)
        if isinstance(symbol, Var) and size is not None:
            yield symbol, size


def _bound(call: Call, kernel: PrimFunc) -> Iterator[tuple[PrimExpr, PrimExpr]]:
    """The extents and scalars of a kernel, each with what a call binds it to."""
    tensors = expect(call.args[1], Tuple).fields
    buffers = [kernel.buffer_map[param] for param in kernel.params if param in kernel.buffer_map]
    for buffer, tensor in zip(buffers, tensors, strict=False):
        dims = tensor_dims(tensor.struct_info)
        if dims is not None and len(dims) == len(buffer.shape):
            yield from zip(buffer.shape, dims, strict=True)
    if len(call.args) > 2:
        scalars = [param for param in kernel.params if param not in kernel.buffer_map]
        yield from zip(scalars, expect(call.args[2], ShapeExpr).values, strict=False)


AttachSizeHints = define_module_pass("AttachSizeHints", attach_size_hints)
