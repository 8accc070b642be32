"""AlterOpImpl: replaces PrimFuncs by others, which may take their tensors in other layouts.

Before: ``z = call_tir(add, (x, y))`` where ``add`` has the attribute ``operator_name`` = ``"add"``.
After, for a replacement over (4, 4) and ``lambda i: (i // 4, i % 4)`` for each buffer:
``a = layout_transform(x, ...); b = layout_transform(y, ...); c = call_tir(add_replacement, (a, b));
z = layout_transform(c, lambda i, j: i * 4 + j)``.

Where a transformation pads, a PrimFunc ``remove_pad`` cuts the padding off the result. The values
in the padding are not defined, so whoever gives a replacement must know that it may ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import te
from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import ModulePass, define_module_pass
from weft.relax import op
from weft.relax.expr import Call, Constant, Tuple, TupleGetItem
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import INT64, constant_value
from weft.relax.op.base import CALL_TIR
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.passes import mutate_module
from weft.support.errors import PassError
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.stmt_functor import renew_defs

_NAME = "operator_name"

Transform = IndexMap | Callable[..., object] | tuple[IndexMap, Sequence[int]] | None
"""How one buffer is transformed: an index map, a function of indices, (map, axis separators), or
None for not at all."""
Transforms = Sequence[Transform]
"""The transformation of each buffer of a PrimFunc."""


def AlterOpImpl(  # noqa: N802 - as TVM
    op_impl_map: Mapping[str, PrimFunc],
    op_buffer_transforms: Mapping[str, Transforms],
    op_buffer_axis_separators: Mapping[str, Any],
    op_buffer_input_axis_separators: Mapping[str, Any],
) -> ModulePass:
    """Replace the PrimFuncs whose ``operator_name`` is a key of ``op_impl_map``.

    The other maps have, by the same keys, a list with an entry for each buffer, inputs first: how
    it is transformed, and the axis separators of the transformed and of the original tensor.
    """
    transforms = {
        name: [_index_map(item) for item in items] for name, items in op_buffer_transforms.items()
    }
    for name, func in op_impl_map.items():
        buffer_transforms = transforms.get(name)
        if buffer_transforms and len(buffer_transforms) != len(func.params):
            raise PassError(
                f"AlterOpImpl: {name}: expected a transformation (or None) for each of the "
                f"{len(func.params)} parameters of the replacement, got {len(buffer_transforms)}"
            )
    separators = op_buffer_axis_separators, op_buffer_input_axis_separators

    def run(mod: IRModule) -> IRModule:
        return mutate_module(mod, _Alterer(mod, op_impl_map, transforms, separators))

    return define_module_pass("AlterOpImpl", run)()


def _index_map(transform: Transform) -> IndexMap | None:
    """The IndexMap of a transformation in any of its forms."""
    if transform is None or isinstance(transform, IndexMap):
        return transform
    if callable(transform):
        return IndexMap.from_func_with_separators(transform)[0]
    return transform[0]


class _Buffer:
    """How one buffer of a replacement is transformed."""

    def __init__(self, index_map: IndexMap | None, separators: Any, inputs: Any) -> None:
        self.index_map, self.separators, self.inputs = index_map, separators, inputs

    def info(self, info: StructInfo) -> StructInfo:
        """The struct info of the tensor after the transformation."""
        if self.index_map is None:
            return info
        dims = self.index_map.map_shape(_dims(info))
        tensor = expect(info, TensorStructInfo)
        return TensorStructInfo(dims, tensor.dtype, tensor.vdevice)

    def transformed(self, value: RelaxExpr, index_map: IndexMap | None) -> RelaxExpr:
        """The value after the transformation; scalar constants are the same in every layout."""
        if index_map is None or (isinstance(value, Constant) and not _dims(value.struct_info)):
            return value
        fresh = _renewed(index_map)
        return op.layout_transform(value, fresh, None, self.separators, self.inputs)


class _Alterer(PyExprMutator):
    def __init__(
        self,
        mod: IRModule,
        implementations: Mapping[str, PrimFunc],
        transforms: Mapping[str, Sequence[IndexMap | None]],
        separators: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> None:
        super().__init__(mod)
        self.mod, self.implementations = mod, implementations
        self.transforms, self.separators = transforms, separators
        self.altered_kernels: dict[str, GlobalVar] = {}

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        kernel = call.args[0] if call.op is CALL_TIR else None
        if not isinstance(kernel, GlobalVar) or kernel not in self.mod:
            return call
        old = self.mod[kernel]
        name = str(old.attrs.get(_NAME, "")) if isinstance(old, PrimFunc) else ""
        if name not in self.implementations:
            return call
        return self.altered(call, old, name)

    def altered(self, call: Call, old: PrimFunc, name: str) -> RelaxExpr:
        """Transform the arguments, call the replacement, and transform its results back."""
        new = self.implementations[name]
        if len(new.params) != len(old.params):
            raise PassError(
                f"AlterOpImpl: {name}: expected a replacement with {len(old.params)} parameters "
                f"as {expect(call.args[0], GlobalVar).name_hint} has, got {len(new.params)}"
            )
        if name not in self.altered_kernels:
            func = new.with_attr(_NAME, name).without_attr("global_symbol")
            hint = f"{name}_replacement".replace(".", "_")
            self.altered_kernels[name] = self.builder_.add_func(func, hint)
        buffers = self.buffers(name, len(new.params))
        (out,) = call.sinfo_args
        outs = list(out.fields) if isinstance(out, TupleStructInfo) else [out]
        inputs = expect(call.args[1], Tuple).fields
        args = [b.transformed(a, b.index_map) for b, a in zip(buffers, inputs, strict=False)]
        last = buffers[len(inputs) : len(inputs) + len(outs)]
        infos = [b.info(info) for b, info in zip(last, outs, strict=True)]
        new_out = TupleStructInfo(infos) if isinstance(out, TupleStructInfo) else infos[0]
        operands: list[RelaxExpr] = [self.altered_kernels[name], Tuple(args), *call.args[2:]]
        replacement = Call(CALL_TIR, operands, call.attrs, [new_out])
        if not isinstance(out, TupleStructInfo):
            return self.restored(replacement, last[0], out)
        if all(buffer.index_map is None for buffer in last):
            return replacement
        whole = self.builder_.emit(replacement)
        fields = [TupleGetItem(whole, index) for index in range(len(outs))]
        return Tuple([self.restored(*item) for item in zip(fields, last, outs, strict=True)])

    def buffers(self, name: str, count: int) -> list[_Buffer]:
        """The transformations of all ``count`` buffers of an operator's replacement."""
        transforms = self.transforms.get(name) or [None] * count
        after, before = ((table.get(name) or [None] * count) for table in self.separators)
        return [_Buffer(*item) for item in zip(transforms, after, before, strict=True)]

    def restored(self, value: RelaxExpr, buffer: _Buffer, info: StructInfo) -> RelaxExpr:
        """An output in the layout that the program had before."""
        if buffer.index_map is None:
            return value
        dims = _dims(info)
        inverse, padding = buffer.index_map.non_surjective_inverse(dims)
        if constant_value(padding) == 0:
            return buffer.transformed(value, inverse)
        padded = self.builder_.emit(buffer.transformed(value, inverse))
        gvar = self.builder_.add_func(
            _remove_pad(len(dims), str(expect(info, TensorStructInfo).dtype)), "remove_pad"
        )
        return Call(CALL_TIR, [gvar, Tuple([padded])], None, [info])


def _dims(info: StructInfo) -> Sequence[PrimExpr]:
    dims = tensor_dims(info)
    if dims is None:
        raise PassError(f"AlterOpImpl: expected a tensor of known shape to transform, got {info}")
    return dims


def _renewed(index_map: IndexMap) -> IndexMap:
    """A copy of the map with new variables: each call must define its own."""
    fresh = [Var(var.name, var.dtype) for var in index_map.initial_indices]
    return IndexMap(fresh, index_map.map_indices(fresh))


def _remove_pad(ndim: int, dtype: str) -> PrimFunc:
    """A PrimFunc that copies the start of each dimension, as much as its output has."""
    padded = [Var(f"p{axis}", INT64) for axis in range(ndim)]
    extents = [Var(f"i{axis}", INT64) for axis in range(ndim)]
    source = te.placeholder(padded, dtype, "input")
    out = te.compute(extents, lambda *indices: source(*indices), "output")
    func = renew_defs(te.create_prim_func([source, out]))
    return func.with_attr(_NAME, "remove_pad").without_attr("global_symbol")
