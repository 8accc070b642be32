"""InsertChecks: tests of indices, and choices that run nothing which could fault.

An access that is not proved to be inside its buffer is tested before it happens (``n`` is the
extent of ``A``)::

    B[i] = A[j]     B[i] = T.checked(A[j], T.bitwise_and(0 <= j, j < n), "index", "...", j, n)
    A[j] = x        A[j] = T.checked(x, T.bitwise_and(0 <= j, j < n), "index", "...", j, n)

A choice with an arm that could fault becomes one that runs a single arm. A choice whose arms are
both safe and cheap becomes one that runs both and takes one result, which spares a jump::

    T.Select(j < n, A[j], 0)        T.if_then_else(j < n, A[j], 0)
    j < n and A[j] > 0              T.if_then_else(j < n, A[j] > 0, False)
    T.if_then_else(c, i + 1, i)     T.Select(c, i + 1, i)

A condition on the lanes of a vector masks those loads in its arms that are not proved. An element
that is the same in all lanes is read where any lane wants it (``any`` is a sum over ``m``)::

    T.Select(c < d, A[v], w)   T.Let(T.Select(m, A.vload([v], m), w), where={m: c < d})
    T.Select(c < d, T.Broadcast(A[j], 4), w)
        T.Let(T.Select(m, T.Broadcast(T.if_then_else(any, A[j], 0), 4), w), where={m: c < d})

The same holds for a load at a quotient: where no lane is wanted, ``DefineIntegers`` divides by 1.

After this pass no further proof is needed to run the program: every access may happen where it
stands, ``Select``, ``And`` and ``Or`` may compute all of their parts, and ``if_then_else`` computes
one arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from weft.ir.expr import FloatImm, GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.functor import mentions
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.transform import FunctionPass, Pass, PassContext, PassInfo
from weft.support.errors import IRIndexError
from weft.support.lazy_property import lazy_property
from weft.support.recursion import deep_recursion
from weft.tir import expr as e
from weft.tir import op
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.intrinsic import checked
from weft.tir.lowering.access_tests import AxisTest, axis_tests, index_lanes
from weft.tir.lowering.accesses import is_within
from weft.tir.lowering.argument_tests import Argument, arguments_of, overlap_tests, raw_pointers
from weft.tir.lowering.building import Names, constant_of
from weft.tir.lowering.exact_sizes import Test, allocation_test, exact_bound, parameter_tests
from weft.tir.lowering.facts import FactMutator, facts_of
from weft.tir.lowering.faults import Faults
from weft.tir.lowering.function_names import name_of, named_functions
from weft.tir.lowering.layouts import Layout, bytes_of, layout_of
from weft.tir.lowering.sound_buffers import SoundBuffers
from weft.tir.lowering.view_tests import address_test, is_proved, refuse_certain, view_test

_CHEAP: Final = 6
"""About how many operations of an arm take less time than a jump around them."""


class _InsertChecks(FactMutator):
    def __init__(self, func: PrimFunc, mod: IRModule, tests: bool) -> None:
        super().__init__(*facts_of(func))
        self.func, self.mod, self.tests = func, mod, tests
        self.sound = SoundBuffers(func)
        self.branches = 0
        """How many conditions and loops stand around this place."""
        self._harmless: dict[int, Node] = {}
        """Expressions (by ``id``) of the walk ``_harmless_in`` that are known not to fault."""
        self._harmless_in: object = None
        self._quotients: list[e.Var] = []
        """Variables around this place that an arm on lanes defines with a value that can fault."""

    # Accesses.

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        """The load with a test; or with a mask, where only some of its lanes are wanted."""
        rebuilt: BufferLoad = self.visit_default(load)
        is_vector = index_lanes(load.indices) > 1
        wanted = self.wanted(load.dtype.lanes if is_vector else 1)
        if wanted is not None and not self._can_fault(load) and not self._is_at_quotient(load):
            wanted = None
        if is_vector and wanted is not None:
            mask = rebuilt.predicate
            rebuilt = rebuilt.with_(predicate=wanted if mask is None else e.And(mask, wanted))
        tested = self._tested(rebuilt, load.buffer, rebuilt) if self.tests else rebuilt
        if is_vector or wanted is None:
            return tested
        return op.if_then_else(wanted, tested, op.const(0, load.dtype))

    def _is_at_quotient(self, load: BufferLoad) -> bool:
        """Whether an index uses a variable whose definition in this arm can fault."""
        return any(mentions(load.indices, var) for var in self._quotients)

    def visit_Let(self, let: e.Let) -> PrimExpr:
        """The Let; in an arm on lanes it is noted whether its value can fault."""
        if not self.masks or not self._can_fault(let.value):
            return super().visit_Let(let)
        self._quotients.append(let.var)
        rebuilt = super().visit_Let(let)
        self._quotients.pop()
        return rebuilt

    def visit_BufferStore(self, store: s.BufferStore) -> s.Stmt:
        """The store with a test around its value."""
        rebuilt: s.BufferStore = self.visit_default(store)
        if not self.tests:
            return rebuilt
        value = self._tested(rebuilt.value, store.buffer, rebuilt)
        return rebuilt if value is rebuilt.value else rebuilt.with_(value=value)

    def _tested(
        self, value: PrimExpr, buffer: Buffer, access: BufferLoad | s.BufferStore
    ) -> PrimExpr:
        """``value`` in a test that the element which is accessed lies in its buffer."""
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
        """The test that a layout lies within a memory; None where it is known to."""
        if is_proved(self.bounds, layout, memory):
            return None
        if not self.branches:
            refuse_certain(layout, memory, f"{self._name()}: {what}")
        return view_test(layout, memory, what)

    def _refuse_certain(self, buffer: Buffer, test: AxisTest) -> None:
        """Raise if a constant index lies outside a constant extent and no condition is around."""
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
        """Whether a load is proved to lie within its buffer here."""
        is_sound = self.tests and self.sound.has(load.buffer)
        return is_sound and is_within(self.bounds, load.indices, load.buffer.shape)

    def visit_Call(self, call: e.Call) -> PrimExpr:
        """Any call, with its arguments.

        ``T.if_then_else`` is a choice. Of an element whose address is passed the indices are
        visited, but it is not read. Memory passed to a function of this module is tested.
        """
        if is_call(call, "if_then_else"):
            return self._choice(call)
        callee, first = self._callee(call)
        places = self._addresses(call, callee, first)
        rebuilt = (
            super().visit_Call(call)
            if not places
            else call.with_(
                args=[
                    arg.with_(indices=self.visit(arg.indices))
                    if at in places and isinstance(arg, BufferLoad)
                    else self.visit(arg)
                    for at, arg in enumerate(call.args)
                ]
            )
        )
        if not self.tests:
            return rebuilt
        if callee is not None:
            rebuilt = self._tested_arguments(call, rebuilt, callee, first)
            for pointer in raw_pointers(callee, call.args[first:], self.sound.is_raw):
                rebuilt = address_test(pointer).around(rebuilt)
        for at, arg in enumerate(call.args):
            buffer = arg.buffer if at in places and isinstance(arg, BufferLoad) else arg
            view = self._view_test(buffer) if isinstance(buffer, Buffer) else None
            rebuilt = rebuilt if view is None else view.around(rebuilt)
        return rebuilt

    def _tested_arguments(
        self, given: e.Call, call: PrimExpr, callee: PrimFunc, first: int
    ) -> PrimExpr:
        """The call of a function of the module in tests that its arguments are large enough."""
        assert isinstance(call, e.Call)
        name, memory_of = name_of(callee, self.mod), self.sound.memory_of
        if len(call.args) - first != len(callee.params) + len(implicit_symbols(callee)):
            return call  # code generation refuses it
        arguments = arguments_of(callee, given.args[first:], memory_of)
        doubtful = [
            at
            for at, argument in enumerate(arguments)
            if self._layout_test(*_placed(argument, memory_of, name)) is not None
        ]
        apart = overlap_tests(callee, name, arguments, self.sound.may_alias)
        if not doubtful and not apart:
            return call
        names = Names()
        args = [*call.args[:first], *[_named_number(names, arg) for arg in call.args[first:]]]
        places = [
            arg if place is None else place
            for place, arg in zip(map(self._place, given.args[first:]), args[first:], strict=True)
        ]
        arguments = arguments_of(callee, places, memory_of)
        tests = [view_test(*_placed(arguments[at], memory_of, name)) for at in doubtful]
        tests += overlap_tests(callee, name, arguments, self.sound.may_alias)
        value: PrimExpr = call.with_(args=args)
        for test in reversed(tests):
            value = value if test is None else test.around(value)
        return names.around(value)

    def _place(self, arg: Node) -> Node | None:
        """An address that is passed, without the tests of its view around it; else None."""
        if isinstance(arg, BufferLoad):
            return arg.with_(indices=self.visit(arg.indices))
        if is_call(arg, "address_of"):
            place = self._place(arg.args[0])
            return None if place is None else arg.with_(args=[place])
        if is_call(arg, "tvm_access_ptr"):
            return arg.with_(args=[self.visit(part) for part in arg.args])
        return None

    def _callee(self, call: e.Call) -> tuple[PrimFunc | None, int]:
        """The function of this module that is called, and the position of its first argument."""
        if isinstance(call.op, GlobalVar):
            return self._functions.get(call.op.name_hint), 0
        if is_call(call, "call_extern") and isinstance(call.args[0], StringImm):
            return self._functions.get(call.args[0].value), 1
        return None, 0

    def _addresses(self, call: e.Call, callee: PrimFunc | None, first: int) -> set[int]:
        """The positions of arguments ``A[i]`` of which the address is passed, not the element."""
        loads = {at for at, arg in enumerate(call.args) if isinstance(arg, BufferLoad)}
        if not loads or is_call(call, "address_of") or is_call(call, "prefetch"):
            return loads
        if callee is None:
            return set()
        pointers = {at + first for at, var in enumerate(callee.params) if var.dtype.is_handle}
        return loads & pointers

    @lazy_property
    def _functions(self) -> dict[str, PrimFunc]:
        return named_functions(self.mod)

    # Choices.

    def visit_Select(self, select: e.Select) -> PrimExpr:
        """A Select whose arms could fault becomes an ``if_then_else``; one on lanes gets masks."""
        arms = select.true_value, select.false_value
        if select.condition.dtype.lanes != 1:
            return self._blend(select.condition, *arms)
        chosen: PrimExpr = super().visit_Select(select)
        if not self._can_fault(*arms):
            return chosen
        assert isinstance(chosen, e.Select)
        return op.if_then_else(chosen.condition, chosen.true_value, chosen.false_value)

    def _choice(self, call: e.Call) -> PrimExpr:
        """An ``if_then_else`` whose arms are safe and cheap becomes a Select."""
        condition, *arms = call.args
        if condition.dtype.lanes != 1:
            return self._blend(condition, *arms)
        chosen = super().visit_Call(call)
        assert isinstance(chosen, e.Call)
        if all(_is_cheap(arm, _CHEAP) for arm in arms) and not self._can_fault(*arms):
            return e.Select(*chosen.args)
        return chosen

    def _blend(self, given: PrimExpr, true_value: PrimExpr, false_value: PrimExpr) -> PrimExpr:
        """A Select on lanes; loads in its arms are masked by the condition."""
        condition, wanted = self.visit(given), e.Var("wanted", given.dtype)
        yes = self.arm(given, wanted, True, true_value)
        no = self.arm(given, wanted, False, false_value)
        return _named(wanted, condition, lambda flag: e.Select(flag, yes, no), (yes, no))

    def visit_And(self, expr: e.And) -> PrimExpr:
        """``a and b``; if ``b`` could fault, ``if_then_else(a, b, False)``."""
        if expr.dtype.lanes != 1:
            return self._lanes(expr, True)
        both: PrimExpr = super().visit_And(expr)
        if not self._can_fault(expr.b):
            return both
        assert isinstance(both, e.And)
        return op.if_then_else(both.a, both.b, op.const(False, "bool"))

    def visit_Or(self, expr: e.Or) -> PrimExpr:
        """``a or b``; if ``b`` could fault, ``if_then_else(a, True, b)``."""
        if expr.dtype.lanes != 1:
            return self._lanes(expr, False)
        either: PrimExpr = super().visit_Or(expr)
        if not self._can_fault(expr.b):
            return either
        assert isinstance(either, e.Or)
        return op.if_then_else(either.a, op.const(True, "bool"), either.b)

    def _lanes(self, expr: e.And | e.Or, holds: bool) -> PrimExpr:
        """And, Or on lanes: loads on the right are masked to where the left does not decide."""
        left, wanted = self.visit(expr.a), e.Var("wanted", expr.dtype)
        right = self.arm(expr.a, wanted, holds, expr.b)
        return _named(wanted, left, lambda flag: expr.with_(a=flag, b=right), (right,))

    def _can_fault(self, *exprs: PrimExpr) -> bool:
        if self._harmless_in is not self._walk:  # another expression, with other facts
            self._harmless, self._harmless_in = {}, self._walk
        faults = Faults(self.ranges, self.is_proved, self._harmless)
        return any(faults.can_fault(expr) for expr in exprs)

    def arm(self, given: PrimExpr, condition: PrimExpr, holds: bool, value: PrimExpr) -> PrimExpr:
        """The visited arm. What is found harmless in it is not known to be so outside."""
        outer = self._harmless
        self._harmless = dict(outer)
        try:
            return super().arm(given, condition, holds, value)
        finally:
            self._harmless = outer

    # Statements.

    @contextmanager
    def branch(self) -> Iterator[None]:
        """A part of the program that runs on a condition, or several times."""
        self.branches += 1
        with super().branch():
            yield
        self.branches -= 1

    def visit_For(self, loop: s.For) -> s.Stmt:
        """The loop, with tests of the loads in its bounds, and that the bounds do not wrap."""
        rebuilt = super().visit_For(loop)
        assert isinstance(rebuilt, s.For)
        low, extent = [
            exact_bound(self.bounds, self.visit(bound)) for bound in (loop.min, loop.extent)
        ]
        if low is loop.min and extent is loop.extent:
            return rebuilt
        return rebuilt.with_(min=low, extent=extent)

    def visit_Allocate(self, stmt: s.Allocate) -> s.Stmt:
        """The allocation, with tests of the loads in its extents and of its size."""
        self.sound.enter_memory(stmt)
        extents = self.visit(stmt.extents)
        rebuilt = super().visit_Allocate(stmt)
        assert isinstance(rebuilt, s.Allocate)
        test = allocation_test(stmt.buffer_var.name, extents, bytes_of(stmt.dtype))
        if test is None:
            return rebuilt
        return s.seq(_statement(test), rebuilt.with_(extents=extents))

    def visit_AllocateConst(self, stmt: s.AllocateConst) -> s.Stmt:
        """Note how large its memory is: as large as its data."""
        self.sound.enter_memory(stmt)
        return self.visit_default(stmt)

    def visit_DeclBuffer(self, stmt: s.DeclBuffer) -> s.Stmt:
        """The declaration behind a test of the view, so that its uses need none."""
        test = self._view_test(stmt.buffer)
        with self.sound.declared(stmt.buffer):
            rebuilt: s.Stmt = self.visit_default(stmt)
        return rebuilt if test is None else s.seq(_statement(test), rebuilt)

    def function_body(self) -> s.Stmt:
        """The body of the function, after tests of the extents of its parameters."""
        tests = [
            test
            for buffer in self.func.buffer_map.values()
            if self.tests
            for extent in (*buffer.shape, *buffer.strides)
            for test in parameter_tests(self.bounds, extent)
        ]
        body: s.Stmt = self.visit(self.func.body)
        return s.seq(*[_statement(test) for test in tests], body) if tests else body


def _statement(test: Test) -> s.Stmt:
    """A test as a statement of its own."""
    return s.Evaluate(test.around(IntImm("int32", 0)))


def _placed(
    argument: Argument, memory_of: Callable[[e.Var], Layout | None], name: str
) -> tuple[Layout, Layout, str]:
    """The layout of an argument, that of the memory behind it, and its name in messages."""
    memory = memory_of(argument.data)
    assert memory is not None
    return argument.layout, memory, f"{name}: argument {argument.buffer.name}"


def _named_number(names: Names, arg: Node) -> Node:
    """An argument; an integer that is computed gets a variable, so that it is computed once."""
    if not isinstance(arg, PrimExpr) or isinstance(arg, (BufferLoad, StringImm)):
        return arg
    return names.of("size", arg) if arg.dtype.is_integral else arg


def _named(
    name: e.Var,
    condition: PrimExpr,
    build: Callable[[PrimExpr], PrimExpr],
    parts: tuple[PrimExpr, ...],
) -> PrimExpr:
    """``build(condition)``; where ``parts`` use the variable ``name`` as a mask, it is defined.

    Without it the condition would stand at each mask, and later passes would lower it several
    times, each time for other wanted lanes.
    """
    if mentions(parts, name):
        return e.Let(name, condition, build(name))
    return build(condition)


def _is_cheap(expr: PrimExpr, budget: int) -> bool:
    """Whether the expression is arithmetic of about ``budget`` nodes, without loads or calls."""
    if isinstance(expr, (e.Var, IntImm, FloatImm)):
        return True
    if budget == 0 or not isinstance(expr, (e.BinaryExpr, e.Cast, e.Broadcast)):
        return False
    if isinstance(expr, e.BinaryExpr):
        return _is_cheap(expr.a, budget // 2) and _is_cheap(expr.b, budget // 2)
    return _is_cheap(expr.value, budget - 1)


@deep_recursion
def insert_checks(func: PrimFunc, mod: IRModule, tests: bool = True) -> PrimFunc:
    """The function with tests of its accesses (see the module's docstring)."""
    return func.with_(body=_InsertChecks(func, mod, tests).function_body())


def InsertChecks(tests: bool = True) -> Pass:
    """The pass. Without ``tests`` it inserts none, and every load may fault."""

    def run(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        return insert_checks(func, mod, tests)

    return FunctionPass(run, PassInfo(0, "tir.InsertChecks"), PrimFunc)
