"""OutlineLaunches: the body of a parallel loop becomes a function of its own.

The function runs a part of the iterations. Its parameters are what the body uses, and where the
part begins and ends. Memory that each iteration needs for itself is allocated once. The loop
becomes a launch of it::

    def main(A, n):                          def weft.parallel.main.0(A, n, begin, end):
        for i in T.parallel(n):                  for i in T.parallel(begin, end):
            A[i] = 0                                 A[i] = 0

                                             def main(A, n):
                                                 T.launch("weft.parallel.main.0", "parallel",
                                                          0, n, A.data, n)

``T.launch(function, service, low, extent, values...)``: the threads share [low, low + extent) in
parts, in any order. ``service`` names what runs them in the runtime.

A function that launches several times keeps its threads from one launch to the next: its own body
is launched too, as a loop of one iteration, by the service ``"team"``.

What was known around the loop is passed on: the attribute ``weft.ranges`` has the intervals of the
launched function's parameters, and the annotation ``weft.range`` of its loop that of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from weft.ir.expr import GlobalVar, IntImm, StringImm, integer_range
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.support.recursion import deep_recursion
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.analysis.undefined_vars import UndefinedVars
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import DECLARED, effects_of, has_noalias, return_type
from weft.tir.lowering.facts import RANGE, StatementFacts, facts_of, loop_range
from weft.tir.lowering.function_names import name_of

_I64: Final = DataType("int64")
LAUNCHED: Final = "weft.launched"
"""The attribute of a launched function: the name of the function that its loop was in."""
RANGES: Final = "weft.ranges"
"""The attribute of a launched function: the intervals ``[least, largest]`` of its parameters."""
FOREIGN: Final = ("call_packed", "call_cpacked", "call_extern")
"""The ends of the names of intrinsics that call functions outside of compiled code."""

Service = Callable[[s.For], str | None]
"""The service that runs a parallel loop, ``"parallel"`` or ``"brief"``; None: it stays a loop."""


class _Captured(UndefinedVars):
    """The variables that a loop uses, also in the shapes and strides with which it finds places."""

    def __init__(self, defined: Sequence[e.Var]) -> None:
        super().__init__(defined)
        self.met: set[Buffer] = set()
        """Buffers whose shape was visited where the same variables are defined as here."""

    def define(self, var: e.Var, where: Node) -> None:
        self.met.clear()
        super().define(var, where)

    def leave(self, variables: Iterable[e.Var]) -> None:
        self.met.clear()
        super().leave(variables)

    def visit_BufferLoad(self, node: BufferLoad | s.BufferStore) -> None:
        super().visit_BufferLoad(node)
        buffer = node.buffer
        if buffer not in self.met:
            self.met.add(buffer)
            self.visit([*buffer.shape, *buffer.strides, buffer.elem_offset])

    def visit_AttrStmt(self, node: s.AttrStmt) -> None:
        self.visit(node.body)  # the attribute's own node may be the variable of a loop that is gone

    def visit_DeclBuffer(self, node: s.DeclBuffer) -> None:
        self.visit_Buffer(node.buffer)  # it defines a view; the memory of that is used
        self.visit(node.body)


class _Outliner(StatementFacts):
    """Takes the parallel loops out of one function."""

    def __init__(self, func: PrimFunc, name: str, service: Service) -> None:
        super().__init__(*facts_of(func))
        self.func, self.name, self.service = func, name, service
        self.launched: dict[str, PrimFunc] = {}
        self.clean = has_noalias(func) and not _has_pointer_aliases(func)

    def visit_For(self, loop: s.For) -> s.Stmt:
        """A parallel loop becomes a launch; parallel loops in its body stay loops."""
        service = self.service(loop) if loop.kind is s.ForKind.PARALLEL else None
        return super().visit_For(loop) if service is None else self.launch(loop, service)

    def launch(self, loop: s.For, service: str) -> s.Stmt:
        """The launch of a loop; its function is added to ``launched``."""
        if any(is_call(call, "ret") for call in collect(loop.body, e.Call)):
            raise UnsupportedError(f"{self.name}: T.ret inside a parallel loop is not available")
        finder = _Captured([loop.loop_var])
        finder.visit(loop.body)
        captured = list(finder.undefined)
        name = f"weft.parallel.{self.name}.{len(self.launched)}"
        self.launched[name] = self._function(loop, captured)
        args = [StringImm(name), StringImm(service), loop.min, loop.extent, *captured]
        return s.Evaluate(e.Call("void", "tir.launch", args))

    def _function(self, loop: s.For, captured: list[e.Var]) -> PrimFunc:
        kind = loop.loop_var.dtype
        begin, end = e.Var("begin", kind), e.Var("end", kind)
        low, size = self.ranges.of(loop.min), self.ranges.of(loop.extent)
        ends = low[0], max(low[0], min(low[1] + size[1], integer_range(kind)[1]))
        inside = loop_range(self.ranges, loop)
        ranges = [
            ends
            if var in (begin, end)
            else self.ranges.of(var)
            if var.dtype.is_integral
            else (0, 0)
            for var in (*captured, begin, end)
        ]
        outside, each = _allocated_once(loop.body, {loop.loop_var})
        body: s.Stmt = s.For(
            loop.loop_var,
            begin,
            e.Sub(end, begin),
            loop.kind,
            each,
            annotations={**(loop.annotations or {}), RANGE: [*map(_int64, inside)]},
        )
        for stmt in reversed(outside):
            body = stmt.with_(body=body) if isinstance(stmt, s.Allocate) else s.seq(stmt, body)
        attrs = {
            LAUNCHED: self.name,
            "tir.noalias": self.clean,
            RANGES: [[*map(_int64, pair)] for pair in ranges],
        }
        return PrimFunc([*captured, begin, end], body, attrs=attrs)


def _allocated_once(body: s.Stmt, own: set[e.Var]) -> tuple[list[s.Stmt], s.Stmt]:
    """The allocations around the body of a loop that may stand around the loop, and the rest.

    They are those whose size is the same in all iterations: it uses no variable of ``own``, which
    each iteration defines anew. The check of that size goes with them. A launched function runs at
    least once, so none is in vain.
    """
    if isinstance(body, s.LetStmt):
        outside, rest = _allocated_once(body.body, own | {body.var})
        return outside, body.with_(body=rest)
    if isinstance(body, s.DeclBuffer):
        outside, rest = _allocated_once(body.body, own)
        return outside, body.with_(body=rest)
    check, allocation = _checked_allocation(body)
    if allocation is None:
        return [], body
    outside, rest = _allocated_once(allocation.body, own)
    size = [check, *allocation.extents, allocation.condition]
    if own & set(collect(size, e.Var)) or collect(size, BufferLoad):
        return outside, s.seq(*check, allocation.with_(body=rest))
    return [*check, allocation, *outside], rest


def _checked_allocation(stmt: s.Stmt) -> tuple[list[s.Stmt], s.Allocate | None]:
    """An allocation that is all of a statement, after the check of its size if it has one."""
    *before, last = s.stmt_list(stmt)
    is_checked = len(before) == 1 and isinstance(before[0], s.Evaluate)
    if not isinstance(last, s.Allocate) or not (is_checked or not before):
        return [], None
    return before, last


def _int64(value: int) -> IntImm:
    """A number as int64, or the nearest one that int64 holds."""
    low, high = integer_range(_I64)
    return IntImm("int64", min(max(value, low), high))


def _has_pointer_aliases(func: PrimFunc) -> bool:
    """Whether a function's memory may be reached by other pointers than its data variables."""
    calls = collect(func.body, e.Call)
    if any(is_call(call, "address_of") or is_call(call, "tvm_access_ptr") for call in calls):
        return True
    names = [let.var for let in collect(func.body, s.LetStmt)]
    names += [let.var for let in collect(func.body, e.Let)]
    return any(name.dtype.is_handle for name in names)


def _leads_team(func: PrimFunc, launching: set[str]) -> bool:
    """Whether a function keeps a team of threads: it calls several functions that launch.

    One that calls Python or C does not: what is called there may have threads of its own.
    """
    calls = collect(func.body, e.Call)
    if any(isinstance(call.op, Op) and call.op.name.endswith(FOREIGN) for call in calls):
        return False
    if return_type(func, effects_of(func)) is not None:
        return False
    names = [call.op.name_hint for call in calls if isinstance(call.op, GlobalVar)]
    return sum(name in launching for name in names) > 1


@deep_recursion
def outline_launches(mod: IRModule, service: Service) -> IRModule:
    """The module with its parallel loops as launches (see the module's docstring)."""
    functions = {}
    launching: set[str] = set()
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or LAUNCHED in func.attrs or DECLARED in func.attrs:
            functions[var] = func
            if isinstance(func, PrimFunc) and func.attrs.get(DECLARED, {}).get("launches"):
                launching.add(name_of(func, mod))
            continue
        outliner = _Outliner(func, name_of(func, mod), service)
        if _leads_team(func, launching):
            once = s.For(e.Var("once", "int64"), 0, 1, s.ForKind.PARALLEL, func.body)
            body = outliner.launch(once, "team")
        else:
            body = outliner.visit(func.body)
        if outliner.launched:
            launching.add(name_of(func, mod))
            functions.update({GlobalVar(name): part for name, part in outliner.launched.items()})
            func = func.with_(body=body)
        functions[var] = func
    return mod.with_(functions=functions) if len(functions) > len(mod.functions) else mod


OutlineLaunches = define_module_pass("tir.OutlineLaunches", outline_launches)
