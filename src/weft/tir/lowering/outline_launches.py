"""OutlineLaunches: the body of a parallel loop becomes a function of its own.

What runs in several threads is a function of a part of the loop and of what the body uses; the loop
becomes its launch, over as many iterations as the loop had::

    def main(A, n):                          def weft.parallel.main.0(A, n, begin, end):
        for i in T.parallel(n):                  for i in T.parallel(begin, end):
            A[i] = 0                                 A[i] = 0

                                             def main(A, n):
                                                 T.launch("weft.parallel.main.0", "parallel",
                                                          0, n, A.data, n)

A launch gives each thread parts of [low, low + extent); what they compute must not depend on their
order. Its second argument says which service of the runtime runs it.

A function that launches several times keeps its threads from one launch to the next: its own body
is launched too, as a loop of one iteration, by the service ``"team"``.

The launched function knows what the code around the loop knew: ``weft.ranges`` are intervals of its
parameters, as pairs, and the annotation ``weft.range`` of its loop is that of the loop's variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.expr import GlobalVar, IntImm, StringImm, integer_range
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.support.recursion import deep_recursion
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.analysis.undefined_vars import UndefinedVars
from weft.tir.buffer import BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import effects_of, has_noalias, return_type
from weft.tir.lowering.facts import RANGE, StatementFacts, facts_of, is_call, loop_range
from weft.tir.lowering.function_names import name_of

_I64: Final = DataType("int64")
LAUNCHED: Final = "weft.launched"
"""The attribute of a function that is only launched: the name of the function whose loop it was."""
RANGES: Final = "weft.ranges"
"""The attribute with the intervals of a launched function's parameters."""
FOREIGN: Final = ("call_packed", "call_cpacked", "call_extern")
"""How the names of calls end that leave compiled code."""

Service = Callable[[s.For], str | None]
"""Which service runs a parallel loop, ``"parallel"`` or ``"brief"``; None where it stays a loop."""


class _Captured(UndefinedVars):
    """The variables of a loop, those in the sizes of buffers too, of which places are computed."""

    def visit_BufferLoad(self, node: BufferLoad | s.BufferStore) -> None:
        super().visit_BufferLoad(node)
        buffer = node.buffer
        self.visit([*buffer.shape, *buffer.strides, buffer.elem_offset])

    def visit_AttrStmt(self, node: s.AttrStmt) -> None:
        self.visit(node.body)  # an attribute may be about the variable of a loop that is gone

    def visit_DeclBuffer(self, node: s.DeclBuffer) -> None:
        self.visit_Buffer(node.buffer)  # a view: its memory is defined elsewhere
        self.visit(node.body)


class _Outliner(StatementFacts):
    """Takes the parallel loops out of one function."""

    def __init__(self, func: PrimFunc, name: str, service: Service) -> None:
        super().__init__(*facts_of(func))
        self.func, self.name, self.service = func, name, service
        self.launched: dict[str, PrimFunc] = {}
        self.clean = has_noalias(func) and not _has_pointer_aliases(func)

    def visit_For(self, loop: s.For) -> s.Stmt:
        """A parallel loop becomes a launch; those in its body stay loops."""
        service = self.service(loop) if loop.kind is s.ForKind.PARALLEL else None
        return super().visit_For(loop) if service is None else self.launch(loop, service)

    def launch(self, loop: s.For, service: str) -> s.Stmt:
        """The launch of a loop, whose function is added."""
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
        ranges = [ends if var in (begin, end) else self.ranges.of(var) if var.dtype.is_integral
                  else (0, 0) for var in (*captured, begin, end)]  # fmt: skip
        body = s.For(
            loop.loop_var, begin, e.Sub(end, begin), loop.kind, loop.body,
            annotations={**(loop.annotations or {}), RANGE: [*map(_int64, inside)]},
        )  # fmt: skip
        attrs = {
            LAUNCHED: self.name, "tir.noalias": self.clean,
            RANGES: [[*map(_int64, pair)] for pair in ranges],
        }  # fmt: skip
        return PrimFunc([*captured, begin, end], body, attrs=attrs)


def _int64(value: int) -> IntImm:
    low, high = integer_range(_I64)
    return IntImm("int64", min(max(value, low), high))


def _has_pointer_aliases(func: PrimFunc) -> bool:
    """Whether memory of a function may have another name than its data variables."""
    calls = collect(func.body, e.Call)
    if any(is_call(call, "address_of") or is_call(call, "tvm_access_ptr") for call in calls):
        return True
    names = [let.var for let in collect(func.body, s.LetStmt)]
    names += [let.var for let in collect(func.body, e.Let)]
    return any(name.dtype.is_handle for name in names)


def _leads_team(func: PrimFunc, launching: set[str]) -> bool:
    """Whether a function launches several times, by calls of functions of the module.

    One that calls Python does not lead: a library that is called there may have threads of its own.
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
    """The module with its parallel loops as launches (module docstring)."""
    functions = {}
    launching: set[str] = set()
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or func.attrs.get(LAUNCHED):
            functions[var] = func
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


def OutlineLaunches(service: Service) -> Pass:
    """The pass; ``service`` says which loops are worth it, and what runs them."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return outline_launches(mod, service)

    return ModulePass(run, PassInfo(0, "tir.OutlineLaunches"))
