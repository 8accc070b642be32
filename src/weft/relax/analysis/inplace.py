"""Finds calls in a dataflow block that may write their result over one of their arguments.

``liveness`` says from where to where each variable is needed; ``aliases`` says which values may be
the same memory; ``inplace_opportunities`` combines both: calls with an argument of the result's
shape that nothing needs afterwards. Once there are such calls, ``copies_to_keep`` says which copies
may not become views. Pieces of memory are numbered; a tuple has a number of its own and, for each
field, the set of numbers that it may be; -1 is memory from outside. The analysis follows TVM's for
dataflow blocks; unlike that one, it never lets a call write over a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.analysis.variables import all_vars, free_vars
from weft.relax.expr import (
    Binding,
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
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, product, same_dims
from weft.relax.op.base import CALL_TIR_INPLACE
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

OUTSIDE: Final = -1
Candidates = Callable[[Call], Sequence[tuple[int, RelaxExpr]]]
"""For a call: (position, argument) of each argument that its result might overwrite."""


def operands(call: Call) -> Sequence[tuple[int, RelaxExpr]]:
    """All arguments of an element-wise operator, none of another: the default ``Candidates``."""
    return tuple(enumerate(call.args)) if has(call.op, Trait.ELEMENTWISE) else ()


def liveness(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """The indices of the first and the last binding that need each variable.

    The first is -1 for a variable from before the block; the last is the number of bindings for one
    that is needed after it (every variable that is not a dataflow variable). ``t[0]`` is no use of
    the tuple ``t``: the use of the field counts.
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


def _used(value: RelaxExpr) -> Sequence[Var]:
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
        """A new piece of memory; for a tuple, with new memory for each field."""
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

    def bound(self, binding: Binding) -> set[int]:
        """The memory that the variable of a binding may be."""
        return self.of(binding.value, binding.var.struct_info)

    def of(self, value: RelaxExpr, info: StructInfo | None) -> set[int]:
        """The memory that a value may be."""
        if isinstance(value, Constant | PrimValue):
            number = self.fresh()
            if isinstance(value, Constant):
                self.constants.add(number)
            return {number}
        if isinstance(value, Function):
            return {self.fresh()}.union(*[self.of(var, None) for var in free_vars(value)])
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
        memory = whole & {OUTSIDE}
        for number in whole:
            fields = self.tuples.get(number, [])
            if len(fields) > value.index:
                memory |= fields[value.index]
        return memory

    def call(self, call: Call, info: StructInfo | None) -> set[int]:
        """The memory that a call's result may be.

        Operators and kernels return new memory, a view of an argument, or what they write in place.
        The result of any other call may be an argument, a constant, or memory that the callee owns.
        """
        if has(call.op, Trait.VIEW | Trait.SAME_VALUE):
            return self.of(call.args[0], call.args[0].struct_info)
        if call.op is CALL_TIR_INPLACE:
            return self.in_place(call, info)
        is_operator = isinstance(call.op, Op)
        if is_operator and not has(call.op, Trait.OPAQUE):
            return {self.fresh_of(info)}
        arguments = call.args if is_operator else [call.op, *call.args]
        number = self.fresh_of(info)
        memory = self.reached(number) | {OUTSIDE}
        for arg in arguments:
            for item in self.of(arg, getattr(arg, "struct_info", None)):
                memory |= self.reached(item)
        self.widen(number, memory)
        return memory

    def in_place(self, call: Call, info: StructInfo | None) -> set[int]:
        """The memory of a call_tir_inplace's result: overwritten arguments, or new memory (-1)."""
        given = call.args[1]
        fields = given.fields if isinstance(given, Tuple) else None
        places = [int(index) for index in call.attrs["inplace_indices"]]
        outputs = [
            {self.fresh()}
            if place < 0
            else {OUTSIDE}
            if fields is None
            else self.of(fields[place], fields[place].struct_info)
            for place in places
        ]
        if not isinstance(info, TupleStructInfo):
            return outputs[0]
        number = self.fresh()
        self.tuples[number] = outputs
        return {number}

    def reached(self, number: int) -> set[int]:
        """A piece of memory and everything inside; ``widen`` may make a tuple contain itself."""
        reached, waiting = {number}, [number]
        while waiting:
            inside = set().union(*self.tuples.get(waiting.pop(), ())) - reached
            reached |= inside
            waiting += inside
        return reached

    def widen(self, number: int, more: set[int]) -> None:
        """Record that each field of a tuple, at any depth, may be any of ``more``."""
        for field in self.tuples.get(number, ()):
            for item in list(field):
                self.widen(item, more)
            field |= more


def aliases(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """The memory that each variable may be, and the memory that each tuple's fields may be."""
    state = _analyzed(block, inputs, _Aliases())
    return state.sets, state.tuples


def _analyzed(block: DataflowBlock, inputs: Sequence[Var], state: _Aliases) -> _Aliases:
    for var in inputs:
        state.sets[var] = {state.fresh_of(var.struct_info)}
    for binding in block.bindings:
        state.sets[binding.var] = state.bound(binding)
    return state


@dataclass(frozen=True)
class InplaceOpportunity:
    """The call of binding ``binding_idx`` may overwrite any one of its arguments ``arg_idxs``."""

    binding_idx: int
    arg_idxs: tuple[int, ...]


def inplace_opportunities(
    block: DataflowBlock, inputs: Sequence[Var], candidates: Candidates = operands
) -> tuple[list[InplaceOpportunity], list[InplaceOpportunity]]:
    """The opportunities where the argument is large enough, and those where its shape is equal."""
    memory = _analyzed(block, inputs, _Aliases())
    until = _needed_until(liveness(block), memory)
    by_size, exact = [], []
    for index, binding in enumerate(block.bindings):
        call = binding.value
        if not isinstance(call, Call):
            continue
        fits = {
            position: fit
            for position, arg in candidates(call)
            if (fit := _fit(binding.var.struct_info, arg.struct_info))
            and _is_free(arg, index, until, memory)
            and not _is_shared(arg, call, memory)
        }
        if fits:
            by_size.append(InplaceOpportunity(index, tuple(fits)))
        same = tuple([position for position, fit in fits.items() if fit == "exact"])
        if same:
            exact.append(InplaceOpportunity(index, same))
    return by_size, exact


def copies_to_keep(
    block: DataflowBlock, inputs: Sequence[Var], copies: Collection[Var]
) -> set[Var]:
    """The ``copies`` (variables bound to copies of a first argument) that may not become views.

    As a view, such a copy would share memory that an in-place call overwrites while another name
    for the old contents is still needed. The result of that call counts as new memory.
    """
    calls = [binding.value for binding in block.bindings]
    if not copies or not any(getattr(call, "op", None) is CALL_TIR_INPLACE for call in calls):
        return set()
    memory = _analyzed(block, inputs, _Views(copies))
    until = _needed_until(liveness(block), memory)
    needed: set[int] = set()
    for index, call in enumerate(calls):
        if getattr(call, "op", None) is CALL_TIR_INPLACE:
            written = {n for number in _written(call, memory) for n in memory.reached(number)}
            needed |= {number for number in written if until.get(number, -1) > index}
    return {var for var in copies if memory.sets[var] & needed}


class _Views(_Aliases):
    """Alias analysis as if the copies were views; the result of an in-place call is new memory."""

    def __init__(self, copies: Collection[Var]) -> None:
        super().__init__()
        self.views = copies

    def bound(self, binding: Binding) -> set[int]:
        value: RelaxExpr = binding.value
        if binding.var in self.views:
            value = expect(expect(value, Call).args[1], Tuple).fields[0]
        elif getattr(value, "op", None) is CALL_TIR_INPLACE:
            return {self.fresh_of(binding.var.struct_info)}
        return self.of(value, binding.var.struct_info)


def _written(call: Call, memory: _Aliases) -> set[int]:
    """The memory of the arguments that an in-place call overwrites."""
    fields = call.args[1].fields if isinstance(call.args[1], Tuple) else [call.args[1]]
    places = [int(index) for index in call.attrs["inplace_indices"] if int(index) >= 0]
    targets = [fields[place] if len(fields) > place else call.args[1] for place in places]
    return set().union(*[memory.of(target, target.struct_info) for target in targets])


def _fit(result: StructInfo | None, argument: StructInfo | None) -> str:
    """What fits: "exact" for the same shape and dtype, "size" for enough elements, else ""."""
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
    """For each piece of memory, the last binding that needs it, by any name or inside a tuple."""
    until: dict[int, int] = {}
    for var, (_, last) in ranges.items():
        for number in memory.sets.get(var, ()):
            for inner in memory.reached(number):
                until[inner] = max(last, until.get(inner, last))
    return until


def _is_free(arg: RelaxExpr, index: int, until: dict[int, int], memory: _Aliases) -> bool:
    """Whether nothing needs the memory of an argument after binding ``index``."""
    mine = memory.sets.get(arg) if isinstance(arg, Var) else None
    if mine is None or OUTSIDE in mine or mine & memory.constants:
        return False
    held = {inner for number in mine for inner in memory.reached(number)}
    return OUTSIDE not in held and all(until.get(number, -1) <= index for number in held)


def _is_shared(arg: RelaxExpr, call: Call, memory: _Aliases) -> bool:
    """Whether another argument of the call may be the same memory."""
    named = memory.sets.get(arg, set()) if isinstance(arg, Var) else set()
    mine = {inner for number in named for inner in memory.reached(number)}
    others = [var for var in all_vars(call) if var is not arg]
    return any(
        mine & memory.reached(number) for var in others for number in memory.sets.get(var, ())
    )
