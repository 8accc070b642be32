"""FoldConstant: computes what depends on constants only when the model is built.

A ``call_tir`` on constants of known shapes is compiled, run, and replaced by its result. An
operator on constants is lowered by its rule first (or computed by numpy, see ``fold_by_numpy``). A
result is not folded if it is larger than ``LIMIT`` bytes and than twice its inputs: ``R.zeros``
takes less memory as a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

import numpy as np

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule, with_functions
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.analysis.written import written_variables
from weft.relax.expr import (
    Call,
    Constant,
    Expr,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.base import CALL_TIR
from weft.relax.op.lowering import Rule
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.graph.fold_by_numpy import fold_by_numpy
from weft.relax.transform.graph.fold_moves import moved_by_numpy
from weft.relax.transform.legalize import rule_of
from weft.runtime.ndarray import NDArray
from weft.runtime.weight_names import inherit_name
from weft.support import slots
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, Stmt

LIMIT: Final = 1 << 20
"""A folded array may have so many bytes even if its inputs are smaller."""

WORK: Final = 1 << 34
"""A function is not run at build time if its statements would be executed more often than this."""


def _work(func: PrimFunc) -> int:
    """How often the innermost statements of a function of constant extents are executed."""
    total = 0
    stack: list[tuple[Stmt, int]] = [(func.body, 1)]
    while stack:
        stmt, times = stack.pop()
        if isinstance(stmt, For):
            times *= constant_value(stmt.extent) or 1
        parts = [getattr(stmt, name) for name in stmt.CHILDREN]
        flat = [item for part in parts for item in (part if isinstance(part, tuple) else [part])]
        inner = [item for item in flat if isinstance(item, Stmt)]
        total += 0 if inner else times
        stack.extend([(item, times) for item in inner])
    return total


class _Folder(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.written: set[Var] = set()
        self.folded: dict[tuple[object, ...], tuple[Expr, object]] = {}
        """What was computed of constants -> the result, and what must live while its id is a key.
        Layers that share weights share what is computed of them, too."""
        self.is_written = False
        """Whether the value of the current binding is overwritten by an in-place call later: such
        a value must not become a constant."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        outer, self.is_written = self.is_written, binding.var in self.written
        super().visit_var_binding_(binding)
        self.is_written = outer

    def visit_var_(self, op: Var) -> RelaxExpr:
        var = super().visit_var_(op)
        value = self.lookup_binding(var)
        return value if isinstance(value, Constant) or _is_fixed(value) else var

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelaxExpr:
        item = expect(super().visit_tuple_getitem_(op), TupleGetItem)
        value = self.lookup_binding(getattr(item, "tuple_value", None))
        if isinstance(value, Tuple) and isinstance(value.fields[item.index], Constant):
            return value.fields[item.index]
        return item

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call.op, Op) or self.is_written:
            return call
        if call.op is CALL_TIR:
            kernel = call.args[0]
            func = self.builder_.function_of(kernel) if isinstance(kernel, GlobalVar) else None
            return self.fold(call, func)
        return self.fold_operator(call)

    def fold_operator(self, call: Call) -> Expr:
        """Lower an operator on constants in a scratch builder and fold the call_tir."""
        if call.op in _SHAPES:
            return _SHAPES[call.op](call)
        rule = rule_of(call.op)
        if rule is None or not _all_constant(call.args) or not _is_small(call):
            return call
        key = _key(call)
        if key not in self.folded:
            exact = fold_by_numpy(call)
            result = self.lowered(call, rule) if exact is None else exact
            if result is call:
                return call
            self.folded[key] = (result, call)
        return self.folded[key][0]

    def lowered(self, call: Call, rule: Rule) -> Expr:
        """What the lowering of an operator on constants computes; the call if it is not folded."""
        scratch = type(self.builder_)()
        lowered = rule(scratch, call)
        if isinstance(lowered, Constant):
            return lowered
        if not isinstance(lowered, Call) or lowered.op is not CALL_TIR:
            return call
        constant = self.fold(lowered, scratch.function_of(expect(lowered.args[0], GlobalVar)))
        return call if constant is lowered else constant

    def fold(self, call: Call, func: BaseFunc | None) -> Expr:
        if len(call.args) > 2 or not isinstance(func, PrimFunc) or not _is_small(call):
            return call
        operands = call.args[1]
        if not isinstance(operands, Tuple) or not _all_constant(operands.fields):
            return call
        arrays = [expect(arg, Constant).data for arg in operands.fields]
        key = (id(func), str(call.sinfo_args[0]), *map(id, arrays))
        known = self.folded.get(key)
        if known is not None:
            return known[0]
        result = _computed(call, func, arrays)
        if result is not call:
            self.folded[key] = (result, (func, arrays))
        return result


def _computed(call: Call, func: PrimFunc, arrays: list[NDArray]) -> Expr:
    """What a function makes of arrays, as constants; the call if that is too much work."""
    func = _specialised(func, call)
    if _work(func) > WORK:
        return call
    outputs = moved_by_numpy(func, arrays) or slots.evaluate.get()(func, arrays)
    constants = [Constant(inherit_name(array, arrays)) for array in outputs]
    if isinstance(call.sinfo_args[0], TupleStructInfo):
        return Tuple(constants)
    return constants[0]


def _key(call: Call) -> tuple[object, ...]:
    """What an operator's result depends on: constants by their arrays, the rest by its text."""

    def of(arg: RelaxExpr) -> object:
        if isinstance(arg, Constant):
            return id(arg.data)
        return tuple(map(of, arg.fields)) if isinstance(arg, Tuple) else str(arg)

    return (call.op, str(call.attrs), str(call.struct_info), *map(of, call.args))


def _specialised(func: PrimFunc, call: Call) -> PrimFunc:
    """The PrimFunc specialised for the known shapes of a call."""
    buffers = {param: func.buffer_map[param] for param in func.params if param in func.buffer_map}
    if all(constant_value(dim) is not None for b in buffers.values() for dim in b.shape):
        return func
    info = call.sinfo_args[0]
    results = info.fields if isinstance(info, TupleStructInfo) else [info]
    infos = [*[arg.struct_info for arg in expect(call.args[1], Tuple).fields], *results]
    known: dict[TirVar, Buffer] = {}
    for (param, buffer), of in zip(buffers.items(), infos, strict=True):
        known[param] = decl_buffer(tensor_dims(of), buffer.dtype, buffer.name)
    return func.specialize(known)


def _is_fixed(value: RelaxExpr | None) -> TypeGuard[ShapeExpr]:
    """Whether a value is a shape whose extents are constants."""
    if not isinstance(value, ShapeExpr):
        return False
    return all(constant_value(dim) is not None for dim in value.values)


def _shape_to_tensor(call: Call) -> Expr:
    """Fold a shape of constants to a constant tensor."""
    values = [constant_value(dim) for dim in getattr(call.args[0], "values", None) or [None]]
    if any(value is None for value in values):
        return call
    return Constant(np.array(values, "int64"))


def _tensor_to_shape(call: Call) -> Expr:
    """Fold a constant tensor to a shape."""
    tensor = call.args[0]
    if not isinstance(tensor, Constant) or tensor.data.dtype != "int64":
        return call
    return ShapeExpr([int(value) for value in tensor.data.numpy()])


_SHAPES: Final = {
    Op.get("relax.shape_to_tensor"): _shape_to_tensor,
    Op.get("relax.tensor_to_shape"): _tensor_to_shape,
}
"""Operators between shapes and tensors -> how to fold them; they have no rule of legalisation."""


def _all_constant(args: Sequence[RelaxExpr]) -> bool:
    """Whether every tensor among the arguments is a constant."""
    are_known = all(map(_has_known_fields, args))
    return are_known and all(isinstance(arg, Constant) for arg in _tensors(args))


def _has_known_fields(arg: RelaxExpr) -> bool:
    """Whether an argument is no tuple, or a tuple expression whose fields are so, too."""
    if isinstance(arg, Tuple):
        return all(map(_has_known_fields, arg.fields))
    return not isinstance(arg.struct_info, TupleStructInfo)


def _bytes(info: StructInfo) -> int | None:
    """The bytes of a tensor or tuple; None if a shape is not known."""
    if isinstance(info, TupleStructInfo):
        sizes = [_bytes(field) for field in info.fields]
        return None if None in sizes else sum(size or 0 for size in sizes)
    dims = tensor_dims(info)
    if dims is None or not isinstance(info, TensorStructInfo) or info.dtype == "void":
        return None
    total = int(info.dtype.itemsize)
    for dim in dims:
        value = constant_value(dim)
        if value is None:
            return None
        total *= value
    return total


def _is_small(call: Call) -> bool:
    """Whether the result has a known size and is small, or not much larger than the inputs."""
    info = call.sinfo_args[0] if call.sinfo_args else call.struct_info
    if not isinstance(info, TensorStructInfo | TupleStructInfo):
        return False
    size = _bytes(info)
    inputs = sum(_bytes(arg.struct_info) or 0 for arg in _tensors(call.args))
    return size is not None and (size <= LIMIT or size <= 2 * inputs)


def _tensors(args: Sequence[RelaxExpr]) -> list[RelaxExpr]:
    leaves: list[RelaxExpr] = []
    for arg in args:
        if isinstance(arg, Tuple):
            leaves.extend(_tensors(arg.fields))
        elif isinstance(arg.struct_info, TensorStructInfo):
            leaves.append(arg)
    return leaves


def fold_constant(mod: IRModule) -> IRModule:
    """The module with constant parts computed; the same object if there are none."""
    folder = _Folder(mod)
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        folded = func
        if isinstance(func, Function):
            folder.written = written_variables(func)
            folded = folder.visit_expr(func)
            if folded is not func:
                folded = remove_all_unused(folded)
        functions[gvar] = folded
    return with_functions(mod, functions)


FoldConstant = define_module_pass("FoldConstant", fold_constant)
