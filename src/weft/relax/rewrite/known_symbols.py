"""Replaces symbolic variables that a match_cast defines by extents that are known already.

``y = match_cast(x, Tensor((m, n)))`` with ``x: Tensor((a, 16))`` implies m = a and n = 16. Later
uses of m and n are replaced by these, and the cast has nothing left to check. Only a match_cast
that *defines* a symbol gives its value; a symbol of a parameter stays, since the cast checks it.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.relax.expr import Function, If, MatchCast
from weft.relax.ir.lattice import defining_vars, match_params
from weft.relax.ir.shape_arith import differ
from weft.relax.ir.substitution import Substitution
from weft.relax.rewrite.binding import reinfer
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var as TirVar


class _KnownSymbols(Substitution):
    """Replaces each such symbol from its match_cast to the end of the scope."""

    def __init__(self) -> None:
        super().__init__()
        self.defined: dict[TirVar, None] = {}

    def visit_Function(self, func: Function) -> Function:
        outer = self.symbols, self.defined
        inner = [symbol for param in func.params for symbol in defining_vars(param.struct_info)]
        self.symbols, self.defined = dict(self.symbols), {**self.defined, **dict.fromkeys(inner)}
        rewritten = super().visit_Function(func)
        self.leave_scope(*outer)
        return rewritten

    def visit_If(self, node: If) -> If:
        cond = self.visit(node.cond)
        then, other = self.branch(node.true_branch), self.branch(node.false_branch)
        choice = node.with_(cond=cond, true_branch=then, false_branch=other)
        if choice is not node:
            choice.struct_info = self.info(node.struct_info)
        return choice

    def branch(self, expr: RelaxExpr) -> RelaxExpr:
        """The rewritten branch; the values of symbols defined in it are dropped after it."""
        outer = self.symbols, self.defined
        self.symbols, self.defined = dict(self.symbols), dict(self.defined)
        rewritten: RelaxExpr = self.visit(expr)
        self.leave_scope(*outer)
        return rewritten

    def leave_scope(self, symbols: dict[TirVar, PrimExpr], defined: dict[TirVar, None]) -> None:
        """Go back to the outer scope's symbols."""
        if len(self.symbols) != len(symbols):
            self._infos.clear()
        self.symbols, self.defined = symbols, defined

    def visit_MatchCast(self, binding: MatchCast) -> MatchCast:
        value = self.visit(binding.value)
        symbols = defining_vars(binding.struct_info)
        if symbols:
            known = match_params([binding.struct_info], [value.struct_info])
            for symbol in symbols:
                self.learn(binding, symbol, known.get(symbol))
        info = self.info(binding.struct_info)
        return binding.with_(var=self.define(binding.var), value=value, struct_info=info)

    def learn(self, binding: MatchCast, symbol: TirVar, value: PrimExpr | None) -> None:
        """Record the value that a match_cast gives a symbol; None if the value is not known."""
        earlier = self.symbols.get(symbol)
        if earlier is None and value is not None and symbol not in self.defined:
            self.symbols[symbol] = value
            self._infos.clear()
        elif earlier is None:
            self.defined[symbol] = None
        elif value is not None and differ(earlier, value):
            raise IRValueError(
                "MatchCast statements must be consistent: expected "
                f"{symbol.name} = {earlier}, as an earlier one says, but the binding of "
                f"{binding.var.name_hint} says {symbol.name} = {value}; it would always fail"
            )


@deep_recursion
def replace_known_symbols(func: Function) -> Function:
    """The function with symbols replaced by the extents that they only rename."""
    replaced: Function = _KnownSymbols().visit(func)
    return replaced if replaced is func else reinfer(replaced)
