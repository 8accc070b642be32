"""HoistLoopInvariants: what every step of a loop computes anew is computed once, before the loop.

A loop is a local function that calls itself (weft.relax.frontend.onnx.loops). Before::

    def loop(i, state, image):
        if i < n: keys = image @ w; ...; loop(i + 1, next_state, image + 0)
        else: (state, image)
    loop(0, first, encoded)

After::

    keys = encoded @ w
    def loop(i, state):
        if i < n: ...; loop(i + 1, next_state)
        else: (state, encoded)
    loop(0, first)

First the states that each step hands on as they are become values from outside; exporters wrap them
in reshapes and sums with zero, which count as no change (as for ONNX Runtime, a sum with zero may
keep -0). Then calls of operators move that take float tensors from outside only. They fault for no
value, so a loop that takes no step may compute them in vain, but not fail.

Loop-invariant code motion is in Aho, Sethi and Ullman, "Compilers" (1986), section 10.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.analysis.bindings import get_var2val, uses
from weft.relax.analysis.purity import is_impure_call
from weft.relax.analysis.variables import bound_vars, free_vars
from weft.relax.expr import (
    Call,
    Constant,
    DataflowBlock,
    Expr,
    Function,
    If,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.substitution import Substitution
from weft.relax.struct_info import FuncStructInfo, TensorStructInfo
from weft.relax.transform.graph.movement.layout import RESHAPES
from weft.relax.transform.passes import define_operator_pass
from weft.tir.expr import Var as TirVar

_COMPUTES: Final = Trait.CONTRACTION | Trait.REDUCTION | Trait.ALONG_AXIS | Trait.ELEMENTWISE
"""Calls of these operators are worth a tensor that lives as long as the loop."""
_RESHAPES: Final = frozenset([f"relax.{name}" for name in RESHAPES])


@dataclass(frozen=True)
class _Loop:
    """``own = function``, which calls ``own``; ``start`` is the only call from outside."""

    own: Var
    function: Function
    start: Call

    @property
    def calls(self) -> list[Call]:
        """Those that go on with the next step."""
        return _calls(self.function.body, self.own)


def _calls(root: object, callee: Var) -> list[Call]:
    return [call for call in collect(root, Call) if call.op is callee]


def _loops(func: Function) -> dict[Var, _Loop]:
    """The local functions that call themselves and that one other call starts, by variable."""
    loops: dict[Var, _Loop] = {}
    functions = {
        var: value
        for var, value in get_var2val(func).items()
        if isinstance(value, Function) and var in free_vars(value)
    }
    if not functions:
        return loops
    counts = uses(func)
    in_dataflow = {id(call) for call in collect(collect(func, DataflowBlock), Call)}
    for own, function in functions.items():
        calls = _calls(func, own)
        inside = {id(call) for call in _calls(function, own)}
        starts = [call for call in calls if id(call) not in inside]
        is_only_called = counts[own] == len(calls)
        if is_only_called and len(starts) == 1 and id(starts[0]) not in in_dataflow:
            loops[own] = _Loop(own, function, starts[0])
    return loops


# States that no step changes


def _without_kept_states(loop: _Loop) -> _Loop:
    """The loop without the states that each step hands on as it got them."""
    values = get_var2val(loop.function)
    kept: dict[int, Expr] = {}
    for index, (param, first) in enumerate(zip(loop.function.params, loop.start.args, strict=True)):
        is_known = isinstance(first, Var | Constant) and first.struct_info == param.struct_info
        if is_known and all(_is_same(call.args[index], param, values) for call in loop.calls):
            kept[index] = first
    return _without_arguments(loop, kept) if kept else loop


def _is_same(value: RelaxExpr, param: Var, values: Mapping[Var, Expr]) -> bool:
    """Whether a value has the elements and the shape of a parameter."""
    if value.struct_info != param.struct_info:
        return False
    while value is not param:
        if isinstance(value, Var) and value in values:
            value = values[value]
            continue
        kept = _operand_kept(value) if isinstance(value, Call) else None
        if kept is None:
            return False
        value = kept
    return True


def _operand_kept(call: Call) -> RelaxExpr | None:
    """The operand whose elements are those of the result, in their order."""
    name = call.op.name if isinstance(call.op, Op) else ""
    if name in _RESHAPES:
        return call.args[0]
    if name == "relax.add":
        for operand, other in (call.args, call.args[::-1]):
            if isinstance(other, Constant) and not other.data.numpy().any():
                return operand if _dtype(operand) == _dtype(call) else None
    return None


def _dtype(expr: RelaxExpr) -> str:
    info = expr.struct_info
    return str(info.dtype) if isinstance(info, TensorStructInfo) else ""


class _Shorter(Substitution):
    """Replaces parameters by values from outside, and drops them from the calls of the loop."""

    def __init__(self, loop: _Loop, own: Var, kept: Mapping[int, Expr]) -> None:
        params = {loop.function.params[index]: value for index, value in kept.items()}
        super().__init__({**params, loop.own: own})
        self.own, self.kept = own, kept

    def visit_RelaxCall(self, call: Call) -> Call:
        rebuilt = super().visit_RelaxCall(call)
        if rebuilt.op is not self.own:
            return rebuilt
        args = [arg for index, arg in enumerate(rebuilt.args) if index not in self.kept]
        shorter = Call(rebuilt.op, args, rebuilt.attrs, rebuilt.sinfo_args, rebuilt.span)
        shorter.struct_info = rebuilt.struct_info
        return shorter


def _without_arguments(loop: _Loop, kept: Mapping[int, Expr]) -> _Loop:
    function = loop.function
    params = [param for index, param in enumerate(function.params) if index not in kept]
    kind = FuncStructInfo(
        [param.struct_info for param in params], function.ret_struct_info, function.is_pure
    )
    own = Var(loop.own.name_hint, kind)
    shorter = _Shorter(loop, own, kept)
    rewritten = function.with_(params=params, body=shorter.visit(function.body))
    return _Loop(own, rewritten, shorter.visit_RelaxCall(loop.start))


# Values that no step changes


def _invariants(loop: _Loop, symbols: Collection[TirVar]) -> list[VarBinding]:
    """The bindings that may stand before the loop, and that are worth it, in their order.

    ``symbols`` are those that are known before the loop.
    """
    inside = set(bound_vars(loop.function))
    movable: dict[Var, VarBinding] = {}
    for binding in _in_every_step(expect(loop.function.body, SeqExpr), loop.own):
        read = collect(binding.value, Var)
        sizes = [*symbolic_vars(binding.value), *symbolic_vars(binding.var.struct_info)]
        if (
            _never_fails(binding.value)
            and all(var not in inside or var in movable for var in read)
            and all(size in symbols for size in sizes)
        ):
            movable[binding.var] = binding
    needed: set[Var] = set()
    for binding in reversed(movable.values()):
        call = expect(binding.value, Call)
        if binding.var in needed or has(call.op, _COMPUTES):
            needed.update([binding.var, *collect(call, Var)])
    return [binding for var, binding in movable.items() if var in needed]


def _in_every_step(seq: SeqExpr, own: Var) -> Iterator[VarBinding]:
    """The bindings that are computed in each step that another one follows."""
    for block in seq.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, If):
                sides = (value.true_branch, value.false_branch)
                going_on = [side for side in sides if _calls(side, own)]
                if len(going_on) == 1:
                    yield from _in_every_step(expect(going_on[0], SeqExpr), own)
            elif isinstance(binding, VarBinding):
                yield binding


def _never_fails(value: Expr) -> bool:
    """Whether a value is computed of float tensors: no index is outside, no divisor is refused."""
    if not isinstance(value, Call) or not has(value.op, _COMPUTES | Trait.MOVES):
        return False
    operands: list[RelaxExpr] = collect(value.args, (Var, Constant))
    return not is_impure_call(value) and all(_is_float_tensor(operand) for operand in operands)


def _is_float_tensor(expr: RelaxExpr) -> bool:
    return _dtype(expr).startswith(("float", "bfloat"))


class _Hoist(PyExprMutator):
    """Puts each loop where it is started, behind what is computed once."""

    def __init__(self, loops: Mapping[Var, _Loop]) -> None:
        super().__init__()
        self.loops = loops
        self.moved: set[Var] = set()
        self.has_changed = False

    def visit_var_binding_(self, binding: VarBinding) -> None:
        if binding.var in self.moved or binding.var in self.loops:
            return
        callee = binding.value.op if isinstance(binding.value, Call) else None
        loop = self.loops.get(callee) if isinstance(callee, Var) else None
        if loop is None or loop.start is not binding.value:
            super().visit_var_binding_(binding)
            return
        shorter = _without_kept_states(loop)
        self.has_changed = self.has_changed or shorter is not loop
        loop = shorter
        for invariant in _invariants(loop, self.builder_.known_symbols()):
            value = self.visit_expr(invariant.value)
            moved = self.builder_.emit(value, invariant.var.name_hint)
            self.set_var_remap(invariant.var, moved)
            self.moved.add(invariant.var)
        self.has_changed = self.has_changed or bool(self.moved)
        function = self.visit_expr(loop.function)
        self.builder_.emit_normalized(VarBinding(loop.own, function))
        super().visit_var_binding_(binding.with_(value=loop.start))


def hoist_loop_invariants(func: Function) -> Function:
    """The function with what its loops compute in vain computed before them."""
    hoist = _Hoist(_loops(func))
    if not hoist.loops:
        return func
    rewritten = hoist.visit_expr(func)
    return rewritten if hoist.has_changed else func


HoistLoopInvariants = define_operator_pass("HoistLoopInvariants", hoist_loop_invariants)
