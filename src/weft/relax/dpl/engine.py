"""Applies replacements to a function: puts them in, sorts and simplifies the bindings, repeats."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.functor import Mutator, collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.structural import structural_equal
from weft.relax.analysis.bindings import all_bindings
from weft.relax.analysis.purity import contains_impure_call
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.builder.normalize import merged_blocks
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Expr,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import BaseCheckResult, struct_info_base_check
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.rewrite.common_subexpr import eliminate_common_subexpr
from weft.support.errors import PassError
from weft.support.recursion import deep_recursion

RewriteSpec = Mapping[Var, RelaxExpr]
"""Variable -> its new value."""

RewriteCall = Callable[[Expr, dict[Pattern, RelaxExpr]], RelaxExpr | None]
"""``(matched expression, the expression of each pattern) -> replacement``, or None for none."""

RewriteBindings = Callable[[dict[Pattern, RelaxExpr], dict[Var, Expr]], RewriteSpec | None]
"""``(the expression of each pattern, value of each variable) -> new values``, or None."""

Rewrite = Callable[[Sequence[Binding]], RewriteSpec]
"""``bindings of a segment -> new values``."""


@deep_recursion
def rewrite_function(
    func: Function,
    rewrite: Rewrite,
    mod: IRModule | None = None,
    renamed: Mapping[GlobalVar, GlobalVar] | None = None,
    name_of: Callable[[Var], str] | None = None,
) -> Function:
    """Replace until nothing matches any more; the same function if nothing matches at all.

    ``renamed`` maps the GlobalVars that replacements call to those of the module; ``name_of``
    names the rule that gave a variable its new value, for error messages.

    Raises:
        PassError: a replacement certainly has another type than the expression it replaces.
    """
    limit = 100 + 2 * len(all_bindings(func))
    for _ in range(limit):
        round_ = _Round(rewrite, mod, renamed or {}, name_of)
        rewritten = round_.visit_expr(func)
        if not round_.changed or structural_equal(rewritten, func):
            return func
        simple = simplified(rewritten)
        if structural_equal(simple, func):
            return func
        func = simple
    raise PassError(
        f"rewriter: no end after {limit} rounds; a replacement matches its own pattern again. "
        "Return the expression itself where nothing is to be done"
    )


def simplified(func: Function) -> Function:
    """Remove renamings, repeated values and unused bindings until none is left."""
    while True:
        before = func
        func = canonicalize_bindings(func)
        func = eliminate_common_subexpr(func)
        func = remove_all_unused(func)
        if func is before or structural_equal(func, before):
            return func


B = TypeVar("B", bound=BindingBlock)


class _Round(PyExprMutator):
    """One round: chooses the replacements of each block and rebuilds the function with them."""

    def __init__(
        self,
        rewrite: Rewrite,
        mod: IRModule | None,
        renamed: Mapping[GlobalVar, GlobalVar],
        name_of: Callable[[Var], str] | None,
    ) -> None:
        super().__init__(mod)
        self.rewrite, self.renamed, self.name_of = rewrite, renamed, name_of
        self.changed = False
        self.rules: dict[Var, str] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Emit the binding; raise PassError if the new value has another type than the old one."""
        super().visit_var_binding_(binding)
        rule = self.rules.get(binding.var)
        if rule is None:
            return
        value = self.lookup_binding(self.get_var_remap(binding.var))
        declared, actual = binding.var.struct_info, None if value is None else value.struct_info
        if declared is None or actual is None:
            return
        if struct_info_base_check(declared, actual) == BaseCheckResult.FAIL_L0:
            raise PassError(
                f"rewriter: {rule} replaces {binding.var.name_hint}: expected {declared}, the type "
                f"of what it replaces, got {actual}"
            )

    def visit_seq_expr_(self, op: SeqExpr) -> Expr:
        """Rewrite a sequence; a body that computes something is treated as one more binding."""
        if isinstance(op.body, Tuple | TupleGetItem | Call):
            result = Var("result", op.body.struct_info)
            last = op.blocks[-1] if op.blocks else BindingBlock([])
            block = type(last)([*last.bindings, VarBinding(result, op.body)])
            rewritten = self.rewritten_block(block)
            if any(b.var is result and b.value is not op.body for b in rewritten.bindings):
                op = SeqExpr(merged_blocks([*op.blocks[:-1], rewritten]), result, span=op.span)
        return expect(super().visit_seq_expr_(op), SeqExpr)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        return super().visit_dataflow_block_(self.rewritten_block(block))

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        return super().visit_binding_block_(self.rewritten_block(block))

    def rewritten_block(self, block: B) -> B:
        """The block with its replacements, not yet in normal form."""
        bindings: list[Binding] = []
        for segment, is_pure in _segments(block):
            bindings += self.rewritten(segment) if is_pure else segment
        same = len(bindings) == len(block.bindings) and all(
            new is old for new, old in zip(bindings, block.bindings, strict=True)
        )
        return block if same else type(block)(bindings)

    def rewritten(self, bindings: list[Binding]) -> list[Binding]:
        """The bindings of a segment with their replacements, sorted by dependence."""
        spec = self.rewrite(bindings)
        if not spec:
            return bindings
        self.changed = True
        self.rules.update(
            {var: "a replacement" if self.name_of is None else self.name_of(var) for var in spec}
        )
        restore = _Restoration(bindings, spec, self.renamed)
        replaced = [
            b.with_(value=restore.visit(spec[b.var])) if b.var in spec else b for b in bindings
        ]
        return in_dependence_order(replaced)


def _segments(block: BindingBlock) -> list[tuple[list[Binding], bool]]:
    """Runs of pure bindings, which may be reordered (True), and of impure ones (False)."""
    if isinstance(block, DataflowBlock):
        return [(list(block.bindings), True)]
    segments: list[tuple[list[Binding], bool]] = []
    for binding in block.bindings:
        is_pure = not isinstance(binding.value, If) and not contains_impure_call(binding.value)
        if segments and segments[-1][1] == is_pure:
            segments[-1][0].append(binding)
        else:
            segments.append(([binding], is_pure))
    return segments


class _Restoration(Mutator):
    """Replaces a bound value inside of a replacement by the variable it is bound to.

    A rewriter gets expressions such as the value of ``lv``, and may use them in its result; there
    ``lv`` must be used instead, so that nothing is computed twice.
    """

    def __init__(
        self, bindings: Sequence[Binding], spec: RewriteSpec, renamed: Mapping[GlobalVar, GlobalVar]
    ) -> None:
        super().__init__()
        self.renamed = renamed
        self.names: dict[int, Var] = {
            id(binding.value): binding.var
            for binding in reversed(bindings)
            if isinstance(binding, VarBinding)
            and binding.var not in spec
            and not isinstance(binding.value, Var)
        }

    def visit(self, node: Any) -> Any:
        """The variable of a bound value; for anything else, the rebuilt node."""
        name = self.names.get(id(node))
        return super().visit(node) if name is None else name

    def visit_GlobalVar(self, gvar: GlobalVar) -> GlobalVar:
        return self.renamed.get(gvar, gvar)


def in_dependence_order(bindings: list[Binding]) -> list[Binding]:
    """Sort the bindings so that each comes after those it uses, and otherwise keep their order.

    Kahn, "Topological Sorting of Large Networks", CACM 1962, with a heap of original positions.
    """
    place = {binding.var: index for index, binding in enumerate(bindings)}
    waiting: list[int] = []
    users: list[list[int]] = [[] for _ in bindings]
    for index, binding in enumerate(bindings):
        used = {place[var] for var in collect(binding.value, Var) if var in place} - {index}
        waiting.append(len(used))
        for source in used:
            users[source].append(index)
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[Binding] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(bindings[index])
        for user in users[index]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(order) != len(bindings):
        stuck = next(b for b, count in zip(bindings, waiting, strict=True) if count)
        raise PassError(
            f"rewriter: the new value of {stuck.var.name_hint} depends on itself; a replacement "
            "may use only what its match does not replace"
        )
    return order
