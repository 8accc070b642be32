"""Checks that ``call_tir`` passes a PrimFunc the arguments that its signature asks for.

Only what is certainly wrong is reported: a wrong number of arguments, a wrong dtype or number of
dimensions, extents that cannot be equal once the kernel's symbols are bound by its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.expr import Call, ShapeExpr
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import differ
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

KERNEL_CALLS: Final = (
    "relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad",
)  # fmt: skip

_ORDER: Final = "a kernel takes its inputs, then its outputs, then the scalars of tir_vars"


def kernel_call_problem(call: Call, module: IRModule) -> str | None:
    """What is wrong with a call of a PrimFunc of ``module``, as a text; None if nothing is."""
    target = call.args[0]
    if not isinstance(target, GlobalVar) or target not in module:
        return None
    kernel, name = module[target], target.name_hint
    if not isinstance(kernel, PrimFunc):
        return f"{call.op.name} calls {name}, which is no PrimFunc"
    given = _infos(call.args[1].struct_info)
    if given is None:
        return None
    results = _infos(call.sinfo_args[0]) or []
    if call.op.name == "relax.call_tir_inplace":
        problem = _inplace_problem(call, given, results, name)
        if problem is not None:
            return problem
        indices = [int(index) for index in call.attrs["inplace_indices"]]
        results = [info for index, info in zip(indices, results, strict=True) if index < 0]
    scalars = len(expect(call.args[2], ShapeExpr).values) if len(call.args) > 2 else 0
    count = len(given) + len(results) + scalars
    if count != len(kernel.params):
        return (
            f"{name} takes {len(kernel.params)} parameters, but {call.op.name} gives it "
            f"{len(given)} inputs, {len(results)} outputs and {scalars} scalars"
        )
    return _Signature(kernel, name).compare([*given, *results], len(given))


def _infos(info: StructInfo | None) -> list[StructInfo] | None:
    if isinstance(info, TupleStructInfo):
        return list(info.fields)
    return None if info is None else [info]


def _inplace_problem(
    call: Call, given: list[StructInfo], results: list[StructInfo], name: str
) -> str | None:
    for position, (index, info) in enumerate(
        zip(call.attrs["inplace_indices"], results, strict=True)
    ):
        at = int(index)
        if at >= len(given):
            return f"{name}: output {position} is to be argument {at} of {len(given)}"
        if at >= 0:
            dtype = getattr(given[at], "dtype", "void")
            reason = _tensor_problem(tensor_dims(given[at]), dtype, info)
            if reason is not None:
                return f"{name}: output {position} is written into argument {at}: {reason}"
    return None


class _Signature:
    """A kernel's parameters, and the values of its symbols in one call."""

    def __init__(self, kernel: PrimFunc, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.symbols: dict[Var, PrimExpr] = {}

    def compare(self, infos: list[StructInfo], inputs: int) -> str | None:
        """The first argument that does not fit, as a text, or None."""
        kind = self.kind_problem(infos, inputs)
        if kind is not None:
            return kind
        buffers = [self.kernel.buffer_map.get(param) for param in self.kernel.params]
        pairs = list(zip(buffers, infos, strict=False))
        for buffer, info in pairs:
            if buffer is not None and isinstance(info, TensorStructInfo):
                self.bind(buffer, info)
        for position, (buffer, info) in enumerate(pairs):
            if buffer is None or not isinstance(info, TensorStructInfo):
                continue
            dims = [substitute(extent, self.symbols) for extent in buffer.shape]
            reason = _tensor_problem(dims, buffer.dtype, info)
            if reason is not None:
                place = f"input {position}" if position < inputs else f"output {position - inputs}"
                return f"{self.name}: {place} ({buffer.name}): {reason}"
        return None

    def kind_problem(self, infos: list[StructInfo], inputs: int) -> str | None:
        """The first tensor where the kernel takes a scalar, or scalar where it takes a buffer."""
        for position, param in enumerate(self.kernel.params):
            is_buffer = param in self.kernel.buffer_map
            if position >= len(infos) and is_buffer:
                where = f"scalar {position - len(infos)}"
                return f"{self.name}: {where}: parameter {param.name} is a buffer; {_ORDER}"
            given = infos[position] if position < len(infos) else None
            if isinstance(given, TensorStructInfo) and not is_buffer and param.dtype != "handle":
                where = f"input {position}" if position < inputs else f"output {position - inputs}"
                what = f"parameter {param.name} is a scalar {param.dtype}, got {given}"
                return f"{self.name}: {where}: {what}; {_ORDER}"
        return None

    def bind(self, buffer: Buffer, info: TensorStructInfo) -> None:
        """Bind each symbol that is a whole extent of the buffer to the argument's extent."""
        dims = tensor_dims(info)
        if dims is None or len(dims) != len(buffer.shape):
            return
        for mine, its in zip(buffer.shape, dims, strict=True):
            if isinstance(mine, Var):
                self.symbols.setdefault(mine, its)


def _tensor_problem(dims: Sequence[PrimExpr] | None, dtype: str, info: StructInfo) -> str | None:
    if not isinstance(info, TensorStructInfo):
        return None
    expected = None if dims is None else f"({', '.join(str(extent) for extent in dims)})"
    if info.dtype != "void" and dtype != "void" and info.dtype != dtype:
        return f"expected dtype {dtype}, got {info}"
    if dims is None:
        return None
    if info.ndim >= 0 and info.ndim != len(dims):
        return f"expected {len(dims)} dimensions {expected}, got {info}"
    actual = tensor_dims(info)
    for mine, its in zip(dims, actual or (), strict=False):
        different = (
            mine.value != its.value
            if isinstance(mine, IntImm) and isinstance(its, IntImm)
            else differ(mine, its)
        )
        if different:
            return f"expected shape {expected}, got {info}"
    return None
