"""HoistExpression and HoistIfThenElse: move loop-invariant conditions and lets out of loops.

``for i: for j: if i < 3: S`` becomes ``for i: if i < 3: for j: S``. The options
``{"tir.HoistExpression": {"hoisted_conditionals": n, "hoisted_let_bindings": n}}`` choose which
conditions and lets are moved (``HoistedConditionals``, ``HoistedLetBindings``). An expression that
reads memory, calls a function or may divide by zero is not moved.
"""

from __future__ import annotations

import enum
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.transform import Pass, PassContext
from weft.support.errors import PassError
from weft.tir.buffer import BufferLoad
from weft.tir.expr import (
    And,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Mod,
    Not,
    Or,
    ProducerLoad,
    Var,
    is_call,
)
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt
from weft.tir.stmt_functor import redefined
from weft.tir.transform.decided_condition import DecidedConditions
from weft.tir.transform.prim_func_pass import (
    StmtMutator,
    define_pass,
    rewrite_body,
)
from weft.tir.transform.remove_no_op import is_no_op
from weft.tir.transform.threads.thread_scope import binding_of


class HoistedConditionals(enum.Flag):
    """The conditions that HoistExpression moves."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = 15


class HoistedLetBindings(enum.Flag):
    """The lets that HoistExpression moves."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = 7


def _is_pure(expr: PrimExpr) -> bool:
    """Whether the expression has the same value everywhere, and can be evaluated without error."""
    if collect(expr, (BufferLoad, ProducerLoad, Call)):
        return False
    return all(
        isinstance(item.b, IntImm) and item.b.value != 0
        for item in collect(expr, (Div, Mod, FloorDiv, FloorMod))
    )


class _Candidates(Visitor):
    """Finds the first condition or let inside of a loop that does not depend on it."""

    def __init__(self, owner: _Hoist, loop_var: Var) -> None:
        self.owner = owner
        self.inner: set[int] = {id(loop_var)}
        self.condition: PrimExpr | None = None
        self.let: LetStmt | Let | None = None

    def done(self) -> bool:
        return self.condition is not None or self.let is not None

    def visit(self, node: Any) -> None:
        if not self.done():
            super().visit(node)

    def visit_For(self, loop: For) -> None:
        self.inner.add(id(loop.loop_var))
        self.visit_default(loop)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        binding = binding_of(attr)
        if binding is not None:
            self.inner.add(id(binding.var))
        self.visit_default(attr)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.consider_let(let, HoistedLetBindings.LetStmt)

    def visit_Let(self, let: Let) -> None:
        self.consider_let(let, HoistedLetBindings.LetExpr)

    def consider_let(self, let: Let | LetStmt, flag: HoistedLetBindings) -> None:
        wanted = flag in self.owner.lets or (
            HoistedLetBindings.RequiredByConditional in self.owner.lets and let.var.dtype.is_bool
        )
        if wanted and self.is_free(let.value) and not let.var.dtype.is_handle:
            self.let = let
            return
        self.inner.add(id(let.var))
        self.visit_default(let)

    def visit_IfThenElse(self, stmt: IfThenElse) -> None:
        if HoistedConditionals.IfElseStmt in self.owner.conditionals:
            self.consider(stmt.condition)
        self.visit_default(stmt)

    def visit_Call(self, call: Call) -> None:
        if is_call(call, "if_then_else"):
            if HoistedConditionals.IfElseExpr in self.owner.conditionals:
                self.consider(call.args[0])
        self.visit_default(call)

    def consider(self, condition: PrimExpr) -> None:
        """Take the condition, or a part of it, if it does not depend on the loop."""
        if isinstance(condition, Call) and is_call(condition, "likely"):
            condition = condition.args[0]
        if self.done() or isinstance(condition, IntImm):
            return
        if self.is_free(condition):
            self.condition = condition
        elif isinstance(condition, (And, Or)):
            if HoistedConditionals.BooleanExpression in self.owner.conditionals:
                self.consider(condition.a)
                self.consider(condition.b)

    def is_free(self, expr: PrimExpr) -> bool:
        variables = collect(expr, Var)
        if any(id(var) in self.inner for var in variables):
            return False
        blocks = [var for var in variables if id(var) in self.owner.threads]
        if blocks and HoistedConditionals.UsingBlockVar not in self.owner.conditionals:
            return False
        return _is_pure(expr)


class _Decide(DecidedConditions):
    """Replaces a condition by its value, and others that follow from it."""

    def __init__(self, condition: PrimExpr, value: bool, analyzer: Analyzer) -> None:
        super().__init__(value)
        self.condition, self.analyzer = condition, analyzer
        self.plain = {id(var) for var in collect(condition, Var)}

    def is_decided(self, expr: PrimExpr) -> bool:
        return expr.dtype.is_bool and expr_deep_equal(expr, self.condition)

    def known(self, condition: PrimExpr) -> PrimExpr:
        """The condition, or its value if that is known."""
        new: PrimExpr = self.visit(condition)
        if isinstance(new, IntImm) or not _is_pure(new):
            return new
        if not {id(var) for var in collect(new, Var)} <= self.plain:
            return new
        simplified = self.analyzer.simplify(new)
        return simplified if isinstance(simplified, IntImm) else new

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        condition = self.known(stmt.condition)
        if isinstance(condition, IntImm):
            if condition.value:
                return self.visit(stmt.then_case)
            return Evaluate(0) if stmt.else_case is None else self.visit(stmt.else_case)
        other = None if stmt.else_case is None else self.visit(stmt.else_case)
        return stmt.with_(
            condition=condition, then_case=self.visit(stmt.then_case), else_case=other
        )

    def visit_Call(self, call: Call) -> PrimExpr:
        if is_call(call, "if_then_else"):
            condition = self.known(call.args[0])
            if isinstance(condition, IntImm):
                return self.visit(call.args[1 if condition.value else 2])
        return self.visit_default(call)


class _Unlet(StmtMutator):
    """Removes one let, whose variable is now defined outside."""

    def __init__(self, gone: Any) -> None:
        super().__init__()
        self.gone = gone

    def visit_Let(self, let: Let | LetStmt) -> PrimExpr | Stmt:
        return let.body if let is self.gone else self.visit_default(let)

    visit_LetStmt = visit_Let


class _Hoist(StmtMutator):
    def __init__(self, conditionals: HoistedConditionals, lets: HoistedLetBindings) -> None:
        super().__init__()
        self.conditionals, self.lets = conditionals, lets
        self.threads: set[int] = set()
        self.analyzer = Analyzer()

    def visit_For(self, loop: For) -> Stmt:
        if loop.kind is ForKind.THREAD_BINDING:
            self.threads.add(id(loop.loop_var))
        return self.hoisted(loop.with_(body=self.visit(loop.body)), loop.loop_var)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        binding = binding_of(attr)
        if binding is not None:
            self.threads.add(id(binding.var))
        new = attr.with_(body=self.visit(attr.body))
        if binding is None or HoistedConditionals.UsingBlockVar not in self.conditionals:
            return new
        return self.hoisted(new, binding.var)

    def hoisted(self, loop: For | AttrStmt, var: Var) -> Stmt:
        """The loop with invariant conditions and lets moved out of it."""
        search = _Candidates(self, var)
        search.visit(loop.body)
        if search.let is not None:
            let = search.let
            inside = loop.with_(body=_Unlet(let).visit(loop.body))
            return LetStmt(let.var, let.value, self.hoisted(inside, var))
        condition = search.condition
        if condition is None:
            return loop
        yes = self.decided(loop, var, condition, True)
        no = self.decided(loop, var, condition, False)
        if is_no_op(no):
            return IfThenElse(condition, yes)
        return IfThenElse(condition, yes, redefined(no))

    def decided(self, loop: For | AttrStmt, var: Var, condition: PrimExpr, value: bool) -> Stmt:
        """The loop for the case that the condition holds (or does not)."""
        with self.analyzer.constraint_scope(condition if value else Not(condition)):
            body = _Decide(condition, value, self.analyzer).visit(loop.body)
            if is_no_op(body):
                return Evaluate(0)
            return self.hoisted(loop.with_(body=body), var)


def hoist_expression(
    func: PrimFunc, conditionals: HoistedConditionals, lets: HoistedLetBindings
) -> PrimFunc:
    """The function with the conditions and lets that the flags choose moved out of loops."""
    return rewrite_body(func, _Hoist(conditionals, lets))


def _flags(option: str, names: dict[str, object]) -> dict[str, object]:
    given = PassContext.current().config.get(option, {})
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise PassError(
            f"{option}: there is no option {unknown[0]!r}; there are: {', '.join(names)}"
        )
    return {name: given.get(name, default) for name, default in names.items()}


def _hoisted_by_options(func: PrimFunc) -> PrimFunc:
    """The function with the conditions and lets moved out of loops that the option names."""
    flags = _flags(
        "tir.HoistExpression",
        {"hoisted_conditionals": HoistedConditionals.All, "hoisted_let_bindings": 7},
    )
    conditionals, lets = flags["hoisted_conditionals"], flags["hoisted_let_bindings"]
    return hoist_expression(
        func,
        HoistedConditionals(getattr(conditionals, "value", conditionals)),
        HoistedLetBindings(getattr(lets, "value", lets)),
    )


HoistExpression = define_pass("HoistExpression", _hoisted_by_options)


def HoistIfThenElse(variant: str | None = None) -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.HoistIfThenElse``: conditions of branches only.

    Conditions that use a thread index, and moves out of a launch of threads, need the option
    ``{"tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}``; ``variant="basic"`` ignores
    the option.
    """
    if variant not in (None, "basic"):
        raise PassError(f"HoistIfThenElse: variant: expected None or 'basic', got {variant!r}")

    def run(func: PrimFunc) -> PrimFunc:
        option = _flags("tir.HoistIfThenElse", {"support_block_scope_hoisting": False})
        conditionals = HoistedConditionals.IfElseStmt
        if variant is None and option["support_block_scope_hoisting"]:
            conditionals |= HoistedConditionals.UsingBlockVar
        return hoist_expression(func, conditionals, HoistedLetBindings.RequiredByConditional)

    return define_pass("HoistIfThenElse", run)()
