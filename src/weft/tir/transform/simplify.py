"""Simplify brings expressions to their simplest form and resolves branches with a known condition.

Loop ranges, thread extents, shapes of parameters, let values and enclosing conditions are known to
the analyzer while it works. Let variables whose value is a constant or a variable are inlined, and
a store of the value that its element already holds (``A[i] = A[i]``) is removed.

The option ``{"tir.Simplify": {name: bool}}`` of the pass context takes TVM's names. Of these,
``transitively_prove_inequalities`` is always on; ``convert_boolean_to_and_of_ors`` and
``apply_constraints_to_boolean_branches`` enable the Analyzer's extensions of these names; the two
that follow values through buffers (``propagate_knowns_...``) are refused, as they are not
implemented yet.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.arith.data import data_variable, has_data
from weft.arith.deep_equal import all_deep_equal, contains_deep_equal
from weft.arith.extensions import Extension
from weft.arith.facts import is_index
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import collect, contains, substitute
from weft.ir.node import Array
from weft.ir.transform import PassContext
from weft.support.errors import PassError, UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Broadcast, Call, IterVar, Let, Mul, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from weft.tir.transform.data_arguments import with_data_arguments
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.remove_no_op import is_assumption

EXTENSIONS: Final = {
    "transitively_prove_inequalities": Extension.TransitivelyProveInequalities,
    "convert_boolean_to_and_of_ors": Extension.ConvertBooleanToAndOfOrs,
    "apply_constraints_to_boolean_branches": Extension.ApplyConstraintsToBooleanBranches,
}
PLANNED: Final = (
    "propagate_knowns_to_prove_conditional", "propagate_knowns_to_simplify_expressions",
)  # fmt: skip
_MOST_TERMS: Final = 16
"""The most nodes of a sum of products that is looked at."""
_THREADS: Final = frozenset({"thread_extent", "virtual_thread"})


def _with_data_variables(expr: PrimExpr) -> PrimExpr:
    """The expression with its lets of data over variables known to hold data."""
    if not contains(expr, Let):
        return expr
    mapping: dict[object, object] = {}
    for let in collect(expr, Let):
        if is_index(let.var.dtype) and has_data(substitute(let.value, mapping)):
            mapping[let.var] = data_variable(let.var)
    return substitute(expr, mapping) if mapping else expr


class _Simplify(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.conditions: dict[Var, PrimExpr] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, IntImm) or (isinstance(expr, Var) and not expr.dtype.is_bool):
            return expr
        if _adds_up_products(expr):
            return self.visit_default(expr)
        return self.analyzer.simplify(_with_data_variables(expr))

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(low, extent), True)
        return loop.with_(min=low, extent=extent, body=self.visit(loop.body))

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        value = self.visit(attr.value)
        if attr.attr_key in _THREADS and isinstance(attr.node, IterVar):
            self.analyzer.bind(attr.node.var, Range.from_min_extent(0, value), True)
        return attr.with_(value=value, body=self.visit(attr.body))

    def visit_Block(self, block: Block) -> Stmt:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom, True)
        return self.visit_default(block)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values, predicate = self.visit(realize.iter_values), self.visit(realize.predicate)
        with self.analyzer.constraint_scope(predicate):
            block = self.visit(realize.block)
        return realize.with_(iter_values=values, predicate=predicate, block=block)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        if isinstance(value, (IntImm, FloatImm, Var)) and not _shapes_a_buffer(let):
            return self.visit(substitute(let.body, {let.var: value}))
        if let.var.dtype.is_bool and not has_data(value):
            self.conditions[let.var] = value
        if is_index(let.var.dtype) and not has_data(value):
            self.analyzer.update(let.var, self.analyzer.const_int_bound(value))
            self.analyzer.update(let.var, self.analyzer.modular_set(value))
        if is_index(let.var.dtype) and has_data(value):
            var = data_variable(let.var)
            let = let.with_(var=var, body=substitute(let.body, {let.var: var}))
        return let.with_(value=value, body=self.visit(let.body))

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        known = self.visit(self.spelled_out(condition))
        if isinstance(known, IntImm):
            condition = known
        if isinstance(condition, IntImm):
            if condition.value:
                return self.visit(stmt.then_case)
            return Evaluate(0) if stmt.else_case is None else self.visit(stmt.else_case)
        more = known if known is not condition else IntImm("bool", 1)
        with self.analyzer.constraint_scope(condition), self.analyzer.constraint_scope(more):
            then_case = self.visit(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            with self.analyzer.constraint_scope(op.logical_not(condition)):
                else_case = self.visit(else_case)
        return stmt.with_(condition=condition, then_case=then_case, else_case=else_case)

    def spelled_out(self, condition: PrimExpr) -> PrimExpr:
        """The condition in which each boolean let variable is replaced by its value."""
        if not self.conditions:
            return condition
        return substitute(condition, self.conditions)

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        """What ``T.assume`` says holds for the statements after it.

        What it says about elements of buffers is left out: a store may change them.
        """
        visited: list[Stmt] = []
        with ExitStack() as scopes:
            for item in stmt.seq:
                visited.append(self.visit(item))
                value = item.value if isinstance(item, Evaluate) else None
                if isinstance(value, Call) and is_assumption(value):
                    claim = value.args[0]
                    scopes.enter_context(self.analyzer.constraint_scope(claim))
        if all(new is old for new, old in zip(visited, stmt.seq, strict=True)):
            return stmt
        return seq(*visited)

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt if is_assumption(stmt.value) else self.visit_default(stmt)

    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        condition = self.visit(stmt.condition)
        with self.analyzer.constraint_scope(condition):
            return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_While(self, stmt: While) -> Stmt:
        condition = self.visit(stmt.condition)
        return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices, value = self.visit(store.indices), self.visit(store.value)
        if store.predicate is None and _is_element(value, store.buffer, indices):
            return Evaluate(0)
        return store.with_(indices=indices, value=value)


def _adds_up_products(expr: PrimExpr) -> bool:
    """Whether loaded floats are multiplied and added: ``C[i] + A[k] * B[j]``.

    No rule of arithmetic applies to such a sum, only to the indices of its loads. Unrolled tiles
    have thousands of them, each of a few terms. Longer ones are not looked at: a sum whose parts
    are shared may have a billion.
    """
    waiting, count = [expr], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > _MOST_TERMS or not part.dtype.is_float:
            return False
        if isinstance(part, (Add, Mul)):
            waiting += [part.a, part.b]
        elif isinstance(part, Broadcast):
            waiting.append(part.value)
        elif not isinstance(part, BufferLoad) or part.predicate is not None:
            return False
    return True


def _is_element(value: PrimExpr, buffer: Buffer, indices: Array[PrimExpr]) -> bool:
    """Whether the value is a load of the very element that it is stored to."""
    if not isinstance(value, BufferLoad) or value.buffer is not buffer or value.predicate:
        return False
    return all_deep_equal(value.indices, indices)


def _shapes_a_buffer(let: LetStmt) -> bool:
    """Whether the definition of a buffer in the body uses the variable, which has to stay then."""
    if let.var.dtype.is_handle:
        return True
    return any(let.var in collect(buffer, Var) for buffer in collect(let.body, Buffer))


def _extensions() -> Extension:
    """The extensions of the Analyzer that the options of the pass context enable."""
    enabled = Extension.NoExtensions
    for name, value in PassContext.current().config.get("tir.Simplify", {}).items():
        if name not in EXTENSIONS and name not in PLANNED:
            known = ", ".join([*EXTENSIONS, *PLANNED])
            raise PassError(f"tir.Simplify: there is no option {name!r}; there are: {known}")
        if name in EXTENSIONS and value:
            enabled |= EXTENSIONS[name]
        elif value:
            raise UnsupportedError(
                f"tir.Simplify: the option {name!r} of TVM 0.20 is not there yet: values are not "
                "followed through buffers; leave it out"
            )
    return enabled


def simplify(func: PrimFunc) -> PrimFunc:
    """The function with simplified expressions (option ``tir.Simplify``)."""
    func = with_data_arguments(func)
    simplifier = _Simplify()
    simplifier.analyzer.enabled_extensions = _extensions()
    with ExitStack() as scopes:
        for extent in _symbolic_extents(func):
            scopes.enter_context(simplifier.analyzer.constraint_scope(extent >= 0))
        return rewrite_body(func, simplifier)


def _symbolic_extents(func: PrimFunc) -> list[PrimExpr]:
    """The extents of the buffer arguments that are no constants, each once."""
    extents: list[PrimExpr] = []
    for buffer in func.buffer_map.values():
        for extent in buffer.shape:
            if not isinstance(extent, IntImm) and not contains_deep_equal(extents, extent):
                extents.append(extent)
    return extents


Simplify = define_pass("Simplify", simplify)
