"""Builds the PrimFunc of one graph function that is marked ``Primitive``, for FuseTIR.

Its body is the bodies of the PrimFuncs that the function calls, in order. Tensors that one of them
writes and another reads are allocated in the root block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from weft.ir.attrs import Attrs
from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.node import Map, expect
from weft.ir.structural import structural_equal
from weft.relax.analysis.bindings import all_bindings
from weft.relax.expr import Binding, Call, Function, MatchCast, ShapeExpr, Tuple, TupleGetItem, Var
from weft.relax.ir.lattice import symbolic_vars, tensor_dims
from weft.relax.op.base import CALL_TIR, CALL_TIR_INPLACE
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.fusion.axis_separators import (
    are_stored_alike,
    separators_of,
    separators_of_params,
)
from weft.relax.transform.fusion.kernel_bodies import (
    root_block,
    unique_block_names,
    with_joined_regions,
    with_regions,
)
from weft.support.errors import UnsupportedError
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, Stmt, seq
from weft.tir.stmt_functor import renew_defs

Value = Any
"""The value of a graph variable: a Buffer, or a tuple of Values."""

NEW_OUTPUT: Final = -1
"""The in-place index of an output that is not written over an argument."""
OWN_ATTRS: Final = frozenset(
    ("global_symbol", "op_pattern", "operator_name", "layout_free_buffers")
)
"""Attributes of a PrimFunc that are not copied to the function that it is fused into."""


class KernelFuser:
    """Builds the PrimFunc of one Primitive function."""

    def __init__(self, mod: IRModule, name: str, func: Function) -> None:
        self.mod, self.name, self.func = mod, name, func
        self.values: dict[Var, Value] = {}
        self.inputs: list[Buffer] = []
        self.used: set[Buffer] = set()
        self.inplace: dict[Buffer, int] = {}
        self.allocated: list[Buffer] = []
        self.bodies: list[Stmt] = []
        self.scalars: dict[TirVar, None] = {}
        self.all_te = True
        self.callees: list[PrimFunc] = []
        self.annotations: dict[str, object] = {}

    def fail(self, text: str) -> UnsupportedError:
        return UnsupportedError(f"FuseTIR: {self.name}: {text}")

    def fuse(self) -> PrimFunc:
        stored = separators_of_params(self.mod, self.func)
        for param in self.func.params:
            separators = stored.get(param, [])
            self.values[param] = self.parameter(param.name_hint, param.struct_info, separators)
        for binding in all_bindings(self.func):
            self.binding(binding)
        return self.finish(self.results())

    def parameter(
        self, name: str, info: StructInfo | None, separators: Sequence[int] = ()
    ) -> Value:
        """The buffers of a parameter; the fields of a tuple get numbered names."""
        if isinstance(info, TupleStructInfo):
            return tuple(
                [self.parameter(f"{name}_{i}", item) for i, item in enumerate(info.fields)]
            )
        if isinstance(info, ShapeStructInfo):
            return None
        if isinstance(info, PrimStructInfo) and info.value is not None:
            return None
        dims = tensor_dims(info)
        if dims is None or not isinstance(info, TensorStructInfo):
            raise self.fail(f"parameter {name}: expected a tensor of known shape, got {info}")
        buffer = decl_buffer(dims, info.dtype, name, axis_separators=separators)
        self.inputs.append(buffer)
        return buffer

    def binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(value, Call):
            self.values[binding.var] = self.call(value)
        elif isinstance(value, Var | Tuple | TupleGetItem) or isinstance(binding, MatchCast):
            self.values[binding.var] = self.value(value)
        else:
            raise self.fail(f"{binding.var.name_hint} is bound to a {type(value).__name__}")

    def value(self, expr: RelaxExpr) -> Value:
        if isinstance(expr, Tuple):
            return tuple([self.value(item) for item in expr.fields])
        if isinstance(expr, TupleGetItem):
            return self.value(expr.tuple_value)[expr.index]
        if isinstance(expr, Var):
            return self.values[expr]
        raise self.fail(f"an argument is a {type(expr).__name__}; pass it as a parameter")

    def call(self, call: Call) -> Value:
        if call.op not in (CALL_TIR, CALL_TIR_INPLACE):
            name = getattr(call.op, "name", getattr(call.op, "name_hint", type(call.op).__name__))
            raise self.fail(f"expected only call_tir, got {name}; run LegalizeOps first")
        gvar, args = expect(call.args[0], GlobalVar), call.args[1]
        callee = self.mod[gvar]
        if not isinstance(callee, PrimFunc):
            raise self.fail(f"call_tir of {gvar.name_hint}, which is no PrimFunc")
        self.all_te = self.all_te and callee.provenance == "te"
        self.callees.append(callee)
        callee = renew_defs(callee)
        infos = flat_infos(call.struct_info)
        inputs = list(flat_buffers(self.value(args)))
        params = [param for param in callee.params if param in callee.buffer_map]
        everywhere_new = [NEW_OUTPUT] * len(infos)
        places = [int(index) for index in call.attrs.get("inplace_indices", everywhere_new)]
        fresh = [info for info, place in zip(infos, places, strict=True) if place == NEW_OUTPUT]
        outputs = [callee.buffer_map[param] for param in params[len(inputs) :]]
        if len(outputs) != len(fresh):
            raise self.fail(
                f"call_tir of {gvar.name_hint}: {len(inputs)} inputs and {len(fresh)} outputs for "
                f"{len(params)} buffers"
            )
        results_of_call = [
            _result_buffer(expect(info, TensorStructInfo), out)
            for info, out in zip(fresh, outputs, strict=True)
        ]
        self.inline(callee, params, [*inputs, *results_of_call], call)
        self.allocated.extend(results_of_call)
        self.used.update(inputs)
        unplaced = iter(results_of_call)
        results = [next(unplaced) if i == NEW_OUTPUT else inputs[i] for i in places]
        for buffer, place in zip(results, places, strict=True):
            if place != NEW_OUTPUT and buffer in self.inputs:
                self.inplace[buffer] = self.inputs.index(buffer)
        is_tuple = isinstance(call.struct_info, TupleStructInfo)
        return tuple(results) if is_tuple else results[0]

    def inline(
        self, callee: PrimFunc, params: Sequence[TirVar], targets: list[Buffer], call: Call
    ) -> None:
        """Append the body of a callee, with its parameters and buffers replaced."""
        mapping: dict[Any, Any] = {}
        seen: set[Buffer] = set()
        repeated = False
        for param, target in zip(params, targets, strict=True):
            buffer = callee.buffer_map[param]
            if not are_stored_alike(buffer, target):
                raise self.fail(
                    f"Inconsistent buffers {buffer.name} (axis separators {separators_of(buffer)}) "
                    f"and {target.name} ({separators_of(target)}) are mapped to the same relax "
                    "var: transform the layout between the kernels"
                )
            mapping[buffer] = target
            repeated = repeated or target in seen
            seen.add(target)
            mapping[buffer.data] = target.data
            for dim, value in zip(buffer.shape, target.shape, strict=True):
                if isinstance(dim, TirVar):
                    mapping.setdefault(dim, value)
        scalars = [param for param in callee.params if param not in callee.buffer_map]
        scalar_args = list(expect(call.args[2], ShapeExpr).values) if len(call.args) > 2 else []
        for scalar, value in zip(scalars, scalar_args, strict=True):
            mapping[scalar] = value
            for var in symbolic_vars(value):
                self.scalars[var] = None
        root = root_block(callee.body)
        if root is None:
            body = substitute(callee.body, mapping)
            self.bodies.append(with_regions(body, [*mapping.values()]))
            return
        allocated = [substitute(buffer, mapping) for buffer in root.alloc_buffers]
        for old, new in zip(root.alloc_buffers, allocated, strict=True):
            mapping[old] = new
        self.allocated.extend(allocated)
        for key, value in root.annotations.items():
            self.annotations.setdefault(key, substitute(value, mapping))
        body = substitute(root.body, mapping)
        self.bodies.append(with_joined_regions(body) if repeated else body)

    def results(self) -> list[Buffer]:
        """The output buffers, each once; ``structure`` says where they are in the result.

        A parameter that is returned unchanged is no output.
        """
        value = self.value(self.func.body.body)
        passed = {buffer: index for index, buffer in enumerate(self.inputs)}
        buffers = [
            buffer
            for buffer in dict.fromkeys(flat_buffers(value))
            if buffer in self.inplace or buffer not in passed
        ]
        if not buffers:
            raise self.fail("it computes nothing that it returns")
        self.structure = structure_of(value, buffers, passed)
        self.allocated = [buffer for buffer in self.allocated if buffer not in buffers]
        self.places = [self.inplace.get(buffer, NEW_OUTPUT) for buffer in buffers]
        return buffers

    def keep_used_inputs(self) -> None:
        """Drop parameters that no kernel takes, if the function is private: its calls are known."""
        used = self.used if "global_symbol" not in self.func.attrs else set(self.inputs)
        self.kept = [index for index, buffer in enumerate(self.inputs) if buffer in used]
        position = {index: new for new, index in enumerate(self.kept)}
        self.places = [position.get(place, NEW_OUTPUT) for place in self.places]
        self.inputs = [self.inputs[index] for index in self.kept]

    def finish(self, results: list[Buffer]) -> PrimFunc:
        self.keep_used_inputs()
        results = [
            buffer
            for buffer, place in zip(results, self.places, strict=True)
            if place == NEW_OUTPUT
        ]
        buffers = [*self.inputs, *results]
        defined = [dim for buffer in buffers for dim in buffer.shape if isinstance(dim, TirVar)]
        for buffer in [*buffers, *self.allocated]:
            for var in symbolic_vars(buffer.shape):
                self.scalars[var] = None
        self.extra = [var for var in self.scalars if var not in defined]
        body = unique_block_names(seq(*self.bodies))
        root = Block([], [], [], "root", body, None, self.allocated, [], self.annotations)
        names = [f"p_{buffer.name}" for buffer in self.inputs]
        names += [f"p_output{index}" for index in range(len(results))]
        handles = [TirVar(name, "handle") for name in names]
        func = PrimFunc(
            [*handles, *self.extra],
            BlockRealize([], IntImm("bool", 1), root),
            None,
            Map(dict(zip(handles, buffers, strict=True))),
            Attrs({**shared_attrs(self.callees), "tir.noalias": True}),
        )
        func.provenance = "te" if self.all_te else None
        return func


def _result_buffer(info: TensorStructInfo, out: Buffer) -> Buffer:
    """A buffer for a result, with the memory scope and axis separators of the callee's ``out``."""
    return decl_buffer(
        tensor_dims(info) or (),
        info.dtype,
        out.name,
        scope=out.scope(),
        axis_separators=separators_of(out),
    )


def shared_attrs(callees: list[PrimFunc]) -> dict[str, object]:
    """The attributes for the fused function: those that are the same in all callees.

    Names, patterns and positions of parameters are not copied.
    """
    if not callees:
        return {}
    first, *others = callees
    return {
        key: value
        for key, value in first.attrs.items()
        if key not in OWN_ATTRS
        and all(key in f.attrs and structural_equal(f.attrs[key], value) for f in others)
    }


def flat_buffers(value: Value) -> Iterator[Buffer]:
    """All buffers in a value, including those in nested tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from flat_buffers(item)
    elif value is not None:
        yield value


def structure_of(value: Value, outputs: list[Buffer], passed: dict[Buffer, int]) -> Any:
    """A value with numbers instead of buffers.

    The number is the position of an output, or ``-1 - i`` for input ``i`` that is returned
    unchanged.
    """
    if isinstance(value, tuple):
        return tuple([structure_of(item, outputs, passed) for item in value])
    if value is None:
        raise UnsupportedError("FuseTIR: a fused function returns a shape; return tensors only")
    return outputs.index(value) if value in outputs else -1 - passed[value]


def flat_infos(info: StructInfo) -> list[StructInfo]:
    """All tensors in a struct info, including those in nested tuples."""
    if isinstance(info, TupleStructInfo):
        return [inner for item in info.fields for inner in flat_infos(item)]
    return [info]
