"""InsertChecks: no access leaves its buffer unnoticed, and nothing runs that must not.

What is not proved is tested before it happens (``n`` is the extent of ``A``)::

    B[i] = A[j]     B[i] = T.checked(A[j], T.bitwise_and(0 <= j, j < n), "index", "...", j, n)
    A[j] = x        A[j] = T.checked(x, T.bitwise_and(0 <= j, j < n), "index", "...", j, n)

A choice whose arms are not safe to run whatever the condition says becomes one that runs a single
arm; where both are safe and cheap, both run and one result is taken::

    T.Select(j < n, A[j], 0)        T.if_then_else(j < n, A[j], 0)
    j < n and A[j] > 0              T.if_then_else(j < n, A[j] > 0, False)
    T.if_then_else(c, i + 1, i)     T.Select(c, i + 1, i)

A condition on lanes masks the loads in its arms that are not proved::

    T.Select(c < d, A[v], w)   T.Let(T.Select(m, A.vload([v], m), w), where={m: c < d})

So after this pass, by what stands in the program alone: every access may happen where it stands,
``Select``, ``And`` and ``Or`` may run all of their parts, ``if_then_else`` runs one arm.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from weft.ir.expr import FloatImm, GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import FunctionPass, Pass, PassContext, PassInfo
from weft.support.errors import IRIndexError
from weft.support.recursion import deep_recursion
from weft.tir import expr as e
from weft.tir import op
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.intrinsic import checked
from weft.tir.lowering.access_tests import AxisTest, axis_tests, index_lanes
from weft.tir.lowering.accesses import is_within
from weft.tir.lowering.argument_tests import Argument, arguments_of, overlap_tests
from weft.tir.lowering.building import Names, constant_of
from weft.tir.lowering.exact_sizes import (
    Test,
    allocation_test,
    exact_bound,
    parameter_tests,
)
from weft.tir.lowering.facts import FactMutator, facts_of, is_call
from weft.tir.lowering.faults import Faults
from weft.tir.lowering.function_names import name_of, named_functions
from weft.tir.lowering.layouts import Layout, bytes_of, layout_of
from weft.tir.lowering.sound_buffers import SoundBuffers
from weft.tir.lowering.view_tests import address_test, is_proved, refuse_certain, view_test

_CHEAP: Final = 6
"""Operations of an arm, about, that take less time than a jump around them."""


class _InsertChecks(FactMutator):
    def __init__(self, func: PrimFunc, mod: IRModule, tests: bool) -> None:
        super().__init__(*facts_of(func))
        self.func, self.mod, self.tests = func, mod, tests
        self.sound = SoundBuffers(func)
        self.branches = 0
        self._harmless: dict[int, Any] = {}
        self._harmless_in: object = None

    # Accesses.

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        """The load, tested, or masked where only some lanes of it are wanted."""
        rebuilt: BufferLoad = self.visit_default(load)
        if not self.tests:
            return rebuilt
        if rebuilt.predicate is None and index_lanes(load.indices) > 1:
            wanted = self.mask(load.dtype.lanes)
            if wanted is not None and not self.is_proved(load):
                rebuilt = rebuilt.with_(predicate=wanted)
        return self._tested(rebuilt, load.buffer, rebuilt)

    def visit_BufferStore(self, store: s.BufferStore) -> s.Stmt:
        """The store of a value that is there only if the place is."""
        rebuilt: s.BufferStore = self.visit_default(store)
        if not self.tests:
            return rebuilt
        value = self._tested(rebuilt.value, store.buffer, rebuilt)
        return rebuilt if value is rebuilt.value else rebuilt.with_(value=value)

    def _tested(
        self, value: PrimExpr, buffer: Buffer, access: BufferLoad | s.BufferStore
    ) -> PrimExpr:
        """The value, which is there only if the element that is accessed is."""
        tests = list(axis_tests(self.bounds, access.indices, buffer.shape, access.predicate))
        for test in reversed(tests):  # the first axis is tested first
            self._refuse_certain(buffer, test)
            axis = f" on axis {test.axis}" if len(buffer.shape) > 1 else ""
            text = f"index {{a}} is out of bounds for buffer {buffer.name}{axis} of extent {{b}}"
            value = checked(value, test.condition, "index", text, test.high, test.extent)
        view = self._view_test(buffer)
        return value if view is None else view.around(value)

    def _view_test(self, buffer: Buffer) -> Test | None:
        """The test of a view as a whole; None where it is known to lie within its memory."""
        if not self.tests or self.sound.has(buffer):
            return None
        memory = self.sound.memory_of(buffer.data)
        if memory is None:
            return address_test(buffer.data)
        return self._layout_test(layout_of(buffer), memory, f"view {buffer.name}")

    def _layout_test(self, layout: Layout, memory: Layout, what: str) -> Test | None:
        if is_proved(self.bounds, layout, memory):
            return None
        if not self.branches:
            refuse_certain(layout, memory, f"{self._name()}: {what}")
        return view_test(layout, memory, what)

    def _refuse_certain(self, buffer: Buffer, test: AxisTest) -> None:
        """Refuse a constant index outside of a constant extent, where it is surely reached."""
        first, size = constant_of(test.low), constant_of(test.extent)
        if first is None or size is None or self.branches:
            return
        last = self.ranges.of(test.high)[1]
        if first < 0 or last >= size:
            raise IRIndexError(
                f"{self._name()}: index {first if first < 0 else last} is out of bounds for buffer "
                f"{buffer.name}, whose axis {test.axis} has extent {size}"
            )

    def _name(self) -> str:
        return name_of(self.func, self.mod)

    def is_proved(self, load: BufferLoad) -> bool:
        """Whether a load may happen here, by proofs alone."""
        is_sound = self.tests and self.sound.has(load.buffer)
        return is_sound and is_within(self.bounds, load.indices, load.buffer.shape)

    def visit_Call(self, call: e.Call) -> PrimExpr:
        """An element whose address is passed is not read. ``T.if_then_else`` is a choice."""
        if is_call(call, "if_then_else"):
            return self._choice(call)
        callee, first = self._callee(call)
        places = self._addresses(call, callee, first)
        rebuilt = super().visit_Call(call) if not places else call.with_(args=[
            arg.with_(indices=self.visit(arg.indices))
            if at in places and isinstance(arg, BufferLoad) else self.visit(arg)
            for at, arg in enumerate(call.args)
        ])  # fmt: skip
        if not self.tests:
            return rebuilt
        if callee is not None:
            rebuilt = self._tested_arguments(call, rebuilt, callee, first)
        for at, arg in enumerate(call.args):
            buffer = arg.buffer if at in places and isinstance(arg, BufferLoad) else arg
            view = self._view_test(buffer) if isinstance(buffer, Buffer) else None
            rebuilt = rebuilt if view is None else view.around(rebuilt)
        return rebuilt

    def _tested_arguments(
        self, given: e.Call, call: PrimExpr, callee: PrimFunc, first: int
    ) -> PrimExpr:
        """The call of a function of the module, once its arguments are known to be large enough."""
        assert isinstance(call, e.Call)
        name, memory_of = name_of(callee, self.mod), self.sound.memory_of
        if len(call.args) - first != len(callee.params) + len(implicit_symbols(callee)):
            return call  # code generation refuses it
        arguments = arguments_of(callee, given.args[first:], memory_of)
        doubtful = [
            at for at, argument in enumerate(arguments)
            if self._layout_test(*_placed(argument, memory_of, name)) is not None
        ]  # fmt: skip
        apart = overlap_tests(callee, name, arguments, self.sound.may_alias)
        if not doubtful and not apart:
            return call
        names = Names()
        args = [*call.args[:first], *[_named_number(names, arg) for arg in call.args[first:]]]
        arguments = arguments_of(callee, args[first:], memory_of)
        tests = [view_test(*_placed(arguments[at], memory_of, name)) for at in doubtful]
        tests += overlap_tests(callee, name, arguments, self.sound.may_alias)
        value: PrimExpr = call.with_(args=args)
        for test in reversed(tests):
            value = value if test is None else test.around(value)
        return names.around(value)

    def _callee(self, call: e.Call) -> tuple[PrimFunc | None, int]:
        """The function of this module that is called, and the position of its first argument."""
        if isinstance(call.op, GlobalVar):
            return self._functions.get(call.op.name_hint), 0
        if is_call(call, "call_extern") and isinstance(call.args[0], StringImm):
            return self._functions.get(call.args[0].value), 1
        return None, 0

    def _addresses(self, call: e.Call, callee: PrimFunc | None, first: int) -> set[int]:
        """The positions of elements that are arguments as addresses."""
        loads = {at for at, arg in enumerate(call.args) if isinstance(arg, BufferLoad)}
        if not loads or is_call(call, "address_of") or is_call(call, "prefetch"):
            return loads
        if callee is None:
            return set()
        pointers = {at + first for at, var in enumerate(callee.params) if var.dtype.is_handle}
        return loads & pointers

    @functools.cached_property
    def _functions(self) -> dict[str, PrimFunc]:
        return named_functions(self.mod)

    # Choices.

    def visit_Select(self, select: e.Select) -> PrimExpr:
        """One arm runs if another would fault; lanes are masked instead."""
        arms = select.true_value, select.false_value
        if select.condition.dtype.lanes != 1:
            return self._blend(select.condition, *arms)
        chosen: PrimExpr = super().visit_Select(select)
        if not self._can_fault(*arms):
            return chosen
        assert isinstance(chosen, e.Select)
        return op.if_then_else(chosen.condition, chosen.true_value, chosen.false_value)

    def _choice(self, call: e.Call) -> PrimExpr:
        condition, *arms = call.args
        if condition.dtype.lanes != 1:
            return self._blend(condition, *arms)
        chosen = super().visit_Call(call)
        assert isinstance(chosen, e.Call)
        if all(_is_cheap(arm, _CHEAP) for arm in arms) and not self._can_fault(*arms):
            return e.Select(*chosen.args)
        return chosen

    def _blend(self, given: PrimExpr, true_value: PrimExpr, false_value: PrimExpr) -> PrimExpr:
        """Both arms, of which each lane takes one."""
        condition, wanted = self.visit(given), e.Var("wanted", given.dtype)
        yes = self.arm(given, wanted, True, true_value)
        no = self.arm(given, wanted, False, false_value)
        return _named(wanted, condition, lambda flag: e.Select(flag, yes, no), (yes, no))

    def visit_And(self, expr: e.And) -> PrimExpr:
        """The right side runs where the left one holds, if it may fault."""
        if expr.dtype.lanes != 1:
            return self._lanes(expr, True)
        both: PrimExpr = super().visit_And(expr)
        if not self._can_fault(expr.b):
            return both
        assert isinstance(both, e.And)
        return op.if_then_else(both.a, both.b, op.const(False, "bool"))

    def visit_Or(self, expr: e.Or) -> PrimExpr:
        """The right side runs where the left one does not hold, if it may fault."""
        if expr.dtype.lanes != 1:
            return self._lanes(expr, False)
        either: PrimExpr = super().visit_Or(expr)
        if not self._can_fault(expr.b):
            return either
        assert isinstance(either, e.Or)
        return op.if_then_else(either.a, op.const(True, "bool"), either.b)

    def _lanes(self, expr: e.And | e.Or, holds: bool) -> PrimExpr:
        """Both sides; lanes of the right one are wanted where the left one does not decide."""
        left, wanted = self.visit(expr.a), e.Var("wanted", expr.dtype)
        right = self.arm(expr.a, wanted, holds, expr.b)
        return _named(wanted, left, lambda flag: expr.with_(a=flag, b=right), (right,))

    def _can_fault(self, *exprs: PrimExpr) -> bool:
        if self._harmless_in is not self._walk:  # another expression, with other facts
            self._harmless, self._harmless_in = {}, self._walk
        faults = Faults(self.ranges, self.is_proved, self._harmless)
        return any(faults.can_fault(expr) for expr in exprs)

    def arm(self, given: PrimExpr, condition: PrimExpr, holds: bool, value: PrimExpr) -> PrimExpr:
        """What is harmless in an arm need not be so outside of it."""
        outer = self._harmless
        self._harmless = dict(outer)
        try:
            return super().arm(given, condition, holds, value)
        finally:
            self._harmless = outer

    # Statements.

    @contextmanager
    def branch(self) -> Iterator[None]:
        """A part that runs on a condition, or several times."""
        self.branches += 1
        with super().branch():
            yield
        self.branches -= 1

    def visit_For(self, loop: s.For) -> s.Stmt:
        """Loads in bounds are tested, too, and that bounds are exact."""
        rebuilt = super().visit_For(loop)
        assert isinstance(rebuilt, s.For)
        low, extent = [
            exact_bound(self.bounds, self.visit(bound)) for bound in (loop.min, loop.extent)
        ]
        if low is loop.min and extent is loop.extent:
            return rebuilt
        return rebuilt.with_(min=low, extent=extent)

    def visit_Allocate(self, stmt: s.Allocate) -> s.Stmt:
        """Loads in extents are tested, too, and that there is so much memory."""
        self.sound.enter_memory(stmt)
        extents = self.visit(stmt.extents)
        rebuilt = super().visit_Allocate(stmt)
        assert isinstance(rebuilt, s.Allocate)
        test = allocation_test(stmt.buffer_var.name, extents, bytes_of(stmt.dtype))
        if test is None:
            return rebuilt
        return s.seq(_statement(test), rebuilt.with_(extents=extents))

    def visit_AllocateConst(self, stmt: s.AllocateConst) -> s.Stmt:
        """Its memory is as large as its data."""
        self.sound.enter_memory(stmt)
        rebuilt: s.Stmt = self.visit_default(stmt)
        return rebuilt

    def visit_DeclBuffer(self, stmt: s.DeclBuffer) -> s.Stmt:
        """The view is tested where it is declared."""
        test = self._view_test(stmt.buffer)
        with self.sound.declared(stmt.buffer):
            rebuilt: s.Stmt = self.visit_default(stmt)
        return rebuilt if test is None else s.seq(_statement(test), rebuilt)

    def function_body(self) -> s.Stmt:
        """The body of the function, after tests of the extents of its parameters."""
        tests = [
            test
            for buffer in self.func.buffer_map.values() if self.tests
            for extent in (*buffer.shape, *buffer.strides)
            for test in parameter_tests(self.bounds, extent)
        ]  # fmt: skip
        body: s.Stmt = self.visit(self.func.body)
        return s.seq(*[_statement(test) for test in tests], body) if tests else body


def _statement(test: Test) -> s.Stmt:
    """A test as a statement of its own."""
    return s.Evaluate(test.around(IntImm("int32", 0)))


def _placed(
    argument: Argument, memory_of: Callable[[e.Var], Layout | None], name: str
) -> tuple[Layout, Layout, str]:
    """What an argument reaches, its memory, and how messages call it."""
    memory = memory_of(argument.data)
    assert memory is not None
    return argument.layout, memory, f"{name}: argument {argument.buffer.name}"


def _named_number(names: Names, arg: Any) -> Any:
    """An argument that is a number by a name, so that it is computed once."""
    is_number = isinstance(arg, PrimExpr) and not isinstance(arg, BufferLoad | StringImm)
    return names.of("size", arg) if is_number and arg.dtype.is_integral else arg


def _named(
    name: e.Var, condition: PrimExpr, build: Callable[[PrimExpr], PrimExpr],
    parts: tuple[PrimExpr, ...],
) -> PrimExpr:  # fmt: skip
    """What is built with a condition, which gets a name where ``parts`` are masked by it.

    Without a name each mask would be lowered for itself, for the lanes that are wanted there.
    """
    if any(var is name for var in collect(parts, e.Var)):
        return e.Let(name, condition, build(name))
    return build(condition)


def _is_cheap(expr: PrimExpr, budget: int) -> bool:
    """Whether the expression is arithmetic of a few nodes, without loads or calls."""
    if isinstance(expr, e.Var | IntImm | FloatImm):
        return True
    if budget == 0 or not isinstance(expr, e.BinaryExpr | e.Cast | e.Broadcast):
        return False
    if isinstance(expr, e.BinaryExpr):
        return _is_cheap(expr.a, budget // 2) and _is_cheap(expr.b, budget // 2)
    return _is_cheap(expr.value, budget - 1)


@deep_recursion
def insert_checks(func: PrimFunc, mod: IRModule, tests: bool = True) -> PrimFunc:
    """The function with tests of its accesses (module docstring)."""
    return func.with_(body=_InsertChecks(func, mod, tests).function_body())


def InsertChecks(tests: bool = True) -> Pass:
    """The pass; without ``tests`` it inserts none, and every load counts as able to fault."""

    def run(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        return insert_checks(func, mod, tests)

    return FunctionPass(run, PassInfo(0, "tir.InsertChecks"), PrimFunc)
