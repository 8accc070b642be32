"""Emitter: one PrimFunc on its way to LLVM IR.

It holds what the emission functions of this package share: the builder, the values of variables,
ranges and facts. ``value(expr)`` and ``statement(stmt)`` dispatch on the node's class through the
tables of expr.py and stmt.py; ``index(expr)`` gives the same number as ``i64``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.emitted import Emitted
from weft.codegen.llvm.types import llvm_type
from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import CodegenError, InternalError
from weft.tir.expr import Call, Var
from weft.tir.lowering.ranges import Interval, Ranges
from weft.tir.printed_lines import line_of
from weft.tir.stmt import Stmt

ExpressionHandler = Callable[["Emitter", Any], str]
"""Emits an expression of the class that it stands under in a table, and returns the operand."""
StatementHandler = Callable[["Emitter", Any], None]
"""Emits a statement of the class that it stands under in a table."""


class Tables(SimpleNamespace):
    """What the emitter calls in modules that import it: one set for the process (emit.py)."""

    expressions: Mapping[type, ExpressionHandler]
    statements: Mapping[type, StatementHandler]
    index: Callable[[Emitter, PrimExpr], str]
    if_then_else: Callable[[Emitter, Call], str]


@dataclass
class Binding:
    """The value of a variable: in its own type, as i64 (loop variables), or both."""

    value: str | None
    wide: str | None = None


@dataclass
class FunctionFacts:
    """What is known of the function that is emitted: its name and the type that it returns."""

    name: str
    ret_type: DataType | None = None
    calls_packed: bool = False


class Emitter:
    """See the module's docstring."""

    def __init__(
        self,
        context: ModuleContext,
        facts: FunctionFacts,
        tables: Tables,
    ) -> None:
        self.context = context
        self.function = facts
        self.tables = tables
        self.b = FunctionBuilder(context)
        self.env: dict[int, Binding] = {}
        self.ranges: Ranges = Ranges()
        self.loops: list[tuple[str, str, int]] = []
        """The loops around this place, the innermost last: the label of the next iteration, that
        behind the loop, and how many heap allocations were live at its start."""
        self.parallel_loops: list[int] = []
        """Those of ``loops`` that the program calls parallel, by depth (the outermost is 1)."""
        self.contracts = context.contract
        """Whether LLVM may fuse a product and a sum here."""
        self.kept: list[Var] = []
        """Keeps variables alive that ``env`` and ``ranges`` know by ``id``."""
        self.emitted = Emitted()
        self.decisive: set[int] = set()
        """The loads of the function's body (by ``id``) of which ``decisive_loads`` speaks."""
        self.moment = 0
        """How many calls with an effect were emitted: operands of an earlier moment are stale."""

    def bind(self, var: Var, binding: Binding) -> None:
        """Give a variable its value."""
        self.env[id(var)] = binding
        self.kept.append(var)

    def binding(self, var: Var) -> Binding:
        """The value of a variable."""
        binding = self.env.get(id(var))
        if binding is not None:
            return binding
        raise CodegenError(
            f"{self.function.name}: expected every variable to be a parameter or defined around "
            f"its use, found no definition of {var.name}"
        )

    def variable(self, var: Var) -> str:
        """The operand of a variable in its own type."""
        binding = self.binding(var)
        if binding.value is not None:
            return binding.value
        if var.dtype.bits == 64:
            return str(binding.wide)
        return self.b.op(f"trunc i64 {binding.wide} to {llvm_type(var.dtype)}")

    def value(self, expr: PrimExpr) -> str:
        """The operand of an expression in the type of its dtype."""
        emitted, moment = self.emitted, self.moment
        known = emitted.values.get(id(expr))
        if known is not None and known[2] == moment:
            return known[1]
        handler = self.tables.expressions.get(type(expr))
        if handler is None:
            raise CodegenError(
                f"{self.function.name}: expected lowered TensorIR, found "
                f"{type(expr).__name__} in an expression"
            )
        result = handler(self, expr)
        if self.moment == moment and expr.CHILDREN and not isinstance(expr, Var):
            emitted.values[id(expr)] = expr, result, moment
        return result

    def index(self, expr: PrimExpr) -> str:
        """The operand of an integer expression as i64."""
        emitted, moment = self.emitted, self.moment
        known = emitted.indices.get(id(expr))
        if known is not None and known[2] == moment:
            return known[1]
        result = self.tables.index(self, expr)
        if self.moment == moment and expr.CHILDREN and not isinstance(expr, Var):
            emitted.indices[id(expr)] = expr, result, moment
        return result

    def statement(self, stmt: Stmt) -> None:
        """Emit a statement; nothing where control cannot come, as behind a ``T.ret``."""
        if self.b.terminated:
            return
        handler = self.tables.statements.get(type(stmt))
        if handler is None:
            raise CodegenError(
                f"{self.function.name}: expected lowered TensorIR, found a "
                f"{type(stmt).__name__}; run the lowering pipeline first"
            )
        self.emitted = Emitted()
        if self.context.debug is None:
            handler(self, stmt)
        else:
            outer = self.b.line
            self.b.at_line(line_of(stmt) or outer)
            handler(self, stmt)
            self.b.at_line(outer)
        self.emitted = Emitted()

    def bind_range(self, var: Var, interval: Interval) -> None:
        """Remember the least and the largest value of an integer variable."""
        if var.dtype.is_integral:
            self.ranges.bind(var, interval)
            self.kept.append(var)

    def internal(self, what: str) -> InternalError:
        """An error for a mistake of weft's own, with the function's name."""
        return InternalError(f"{self.function.name}: {what}")
