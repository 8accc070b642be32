"""Where a call in a dataflow block may write its result over one of its arguments.

Three questions, each with its own answer: from where to where each variable is live
(``liveness``), which values may be the same memory (``aliases``), and which calls have an argument
of the result's shape that nothing needs afterwards (``inplace_opportunities``). Memory is numbered;
a tuple has a number of its own and a list of what its fields may be; -1 is memory from outside.
After TVM's in-place analysis of dataflow blocks; unlike there, constants are never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.op import Op
from weft.relax.analysis.variables import all_vars, free_vars
from weft.relax.expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    PrimValue,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.lattice import tensor_dims
from weft.relax.shape_arith import constant_value, product, same_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

OUTSIDE: Final = -1
ELEMENT_WISE: Final = frozenset(
    {"relax.add", "relax.subtract", "relax.multiply", "relax.divide", "relax.maximum",
     "relax.minimum", "relax.negative", "relax.abs", "relax.exp", "relax.sqrt", "relax.tanh",
     "relax.sigmoid", "relax.nn.silu", "relax.nn.relu", "relax.nn.gelu"}
)  # fmt: skip
"""Operators whose kernels read each element of an argument before they write that of the result."""


def liveness(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """First and last binding that needs each variable.

    -1 is before the block, and the number of bindings behind it: where variables that are not
    dataflow variables still are. Taking a field of a tuple is no use of it: the field is.
    """
    ranges: dict[Var, tuple[int, int]] = {}
    end = len(block.bindings)
    for index in range(end - 1, -1, -1):
        binding = block.bindings[index]
        for var in _used(binding.value):
            ranges.setdefault(var, (-1, index if isinstance(var, DataflowVar) else end))
        var = binding.var
        last = ranges[var][1] if var in ranges else index
        ranges[var] = (index, last if isinstance(var, DataflowVar) else end)
    return ranges


def _used(value: Any) -> Sequence[Var]:
    if isinstance(value, Function):
        return free_vars(value)
    return () if isinstance(value, TupleGetItem) else all_vars(value)


class _Aliases:
    """The state of one alias analysis."""

    def __init__(self) -> None:
        self.sets: dict[Var, set[int]] = {}
        self.tuples: dict[int, list[set[int]]] = {}
        self.constants: set[int] = set()
        self.count = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def fresh_of(self, info: StructInfo | None) -> int:
        """New memory; of a tuple, with new memory for its fields."""
        number = self.fresh()
        if isinstance(info, TupleStructInfo):
            self.fill(number, info)
        return number

    def fill(self, number: int, info: TupleStructInfo) -> None:
        fields = []
        for field in info.fields:
            inner = self.fresh()
            fields.append({inner})
            if isinstance(field, TupleStructInfo):
                self.fill(inner, field)
        self.tuples[number] = fields

    def of(self, value: Any, info: StructInfo | None) -> set[int]:
        """What memory a value may be."""
        if isinstance(value, Constant | PrimValue | Function):
            number = self.fresh()
            if isinstance(value, Constant):
                self.constants.add(number)
            return {number}
        if isinstance(value, Var):
            return set(self.sets.get(value, {OUTSIDE}))
        if isinstance(value, Tuple):
            number = self.fresh()
            self.tuples[number] = [self.of(item, item.struct_info) for item in value.fields]
            return {number}
        if isinstance(value, TupleGetItem):
            return self.field(value)
        if isinstance(value, Call):
            return self.call(value, info)
        return {OUTSIDE}

    def field(self, value: TupleGetItem) -> set[int]:
        whole = self.of(value.tuple_value, value.tuple_value.struct_info)
        found = whole & {OUTSIDE}
        for number in whole:
            fields = self.tuples.get(number, [])
            if len(fields) > value.index:
                found |= fields[value.index]
        return found

    def call(self, call: Call, info: StructInfo | None) -> set[int]:
        """Operators and kernels make new memory; what others return may be what they got."""
        if isinstance(call.op, Op) and call.op.name != "relax.call_pure_packed":
            return {self.fresh_of(info)}
        arguments = call.args[1:] if isinstance(call.op, Op) else call.args
        number = self.fresh_of(info)
        found = self.reached(number)
        for arg in arguments:
            for item in self.of(arg, arg.struct_info):
                found |= self.reached(item)
        self.widen(number, found)
        return found

    def reached(self, number: int) -> set[int]:
        """A piece of memory and all that is inside of it, which may be itself (``widen``)."""
        found, waiting = {number}, [number]
        while waiting:
            inside = set().union(*self.tuples.get(waiting.pop(), ())) - found
            found |= inside
            waiting += inside
        return found

    def widen(self, number: int, more: set[int]) -> None:
        """Any field of a tuple may be any of ``more``."""
        for field in self.tuples.get(number, ()):
            for item in list(field):
                self.widen(item, more)
            field |= more


def aliases(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """What memory each variable may be, and what each tuple among that memory holds."""
    state = _analyzed(block, inputs)
    return state.sets, state.tuples


def _analyzed(block: DataflowBlock, inputs: Sequence[Var]) -> _Aliases:
    state = _Aliases()
    for var in inputs:
        state.sets[var] = {state.fresh_of(var.struct_info)}
    for binding in block.bindings:
        state.sets[binding.var] = state.of(binding.value, binding.var.struct_info)
    return state


@dataclass(frozen=True)
class InplaceOpportunity:
    """Binding ``binding_idx`` of a block may write over any one of the arguments ``arg_idxs``."""

    binding_idx: int
    arg_idxs: tuple[int, ...]


def inplace_opportunities(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[list[InplaceOpportunity], list[InplaceOpportunity]]:
    """The opportunities by size (the argument is large enough), and those of the very shape."""
    memory = _analyzed(block, inputs)
    until = _needed_until(liveness(block), memory)
    by_size, exact = [], []
    for index, binding in enumerate(block.bindings):
        call = binding.value
        if not isinstance(call, Call) or getattr(call.op, "name", "") not in ELEMENT_WISE:
            continue
        fits = [_fit(binding.var.struct_info, arg.struct_info) for arg in call.args]
        free = [
            position
            for position, arg in enumerate(call.args)
            if fits[position] and _is_free(arg, index, until, memory)
        ]
        if free:
            by_size.append(InplaceOpportunity(index, tuple(free)))
        same = tuple([position for position in free if fits[position] == "exact"])
        if same:
            exact.append(InplaceOpportunity(index, same))
    return by_size, exact


def _fit(result: StructInfo | None, argument: StructInfo | None) -> str:
    """"exact" for the same shape, "size" for enough elements of the dtype, else ""."""
    if not isinstance(result, TensorStructInfo) or not isinstance(argument, TensorStructInfo):
        return ""
    mine, its = tensor_dims(result), tensor_dims(argument)
    if mine is None or its is None or result.dtype != argument.dtype or result.dtype == "void":
        return ""
    if same_dims(mine, its):
        return "exact"
    wanted, have = constant_value(product(mine)), constant_value(product(its))
    return "size" if wanted is not None and have is not None and have >= wanted else ""


def _needed_until(ranges: dict[Var, tuple[int, int]], memory: _Aliases) -> dict[int, int]:
    """For each piece of memory the last binding that needs it, by any name or inside of a tuple."""
    until: dict[int, int] = {}
    for var, (_, last) in ranges.items():
        for number in memory.sets.get(var, ()):
            for inner in memory.reached(number):
                until[inner] = max(last, until.get(inner, last))
    return until


def _is_free(arg: Any, index: int, until: dict[int, int], memory: _Aliases) -> bool:
    """Whether nothing needs the memory of an argument after binding ``index``."""
    mine = memory.sets.get(arg) if isinstance(arg, Var) else None
    if mine is None or OUTSIDE in mine or mine & memory.constants:
        return False
    held = {inner for number in mine for inner in memory.reached(number)}
    return OUTSIDE not in held and all(until.get(number, -1) <= index for number in held)
