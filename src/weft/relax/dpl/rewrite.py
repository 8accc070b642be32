"""Rewriting of graphs by patterns.

A rewriter takes a segment of bindings (a dataflow block, or a run of pure bindings outside of one)
and returns new values for some of the variables. The engine puts the values in, sorts the bindings
by dependence, brings the function into canonical form, and repeats until nothing changes, as term
rewriting does (Baader and Nipkow, "Term Rewriting and All That", 1998). All replacements of a round
are chosen on the same bindings; the next round sees the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, PassContext, PassInfo
from weft.relax.dpl.block_matcher import match_bindings
from weft.relax.dpl.context import PatternContext
from weft.relax.dpl.engine import RewriteBindings, RewriteCall, RewriteSpec, rewrite_function
from weft.relax.dpl.kinds import DFPattern, OrPattern
from weft.relax.dpl.matcher import Matcher, Pattern
from weft.relax.dpl.root import may_match, root_callees
from weft.relax.dpl.rule import rule_of_module
from weft.relax.dpl.tuples import TuplePattern
from weft.relax.expr import Binding, Expr, Function, MatchCast, Tuple, TupleGetItem, Var, VarBinding
from weft.support.errors import PassError, wrong_type
from weft.support.free_name import free_name
from weft.support.parameters import mismatch

TUPLE_LIMIT = 3
"""The most fields of a tuple pattern; the search takes (number of bindings) ** fields steps."""


class PatternMatchingRewriter(ModulePass):
    """The base of rewriters: a pass over modules that can also be called with a function."""

    def __init__(self) -> None:
        super().__init__(self._over_module, PassInfo(0, type(self).__name__))
        self.subroutines: dict[GlobalVar, BaseFunc] = {}

    def rule_name(self, var: Var) -> str:  # noqa: ARG002 - of rewriters with several rules
        """The rule that gave a variable its new value in the last segment, for error messages."""
        return type(self).__name__

    def rewrite_bindings(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """The new values of variables of a segment."""
        raise NotImplementedError(f"{type(self).__name__} is not a complete rewriter")

    @staticmethod
    def from_pattern(pattern: DFPattern, func: RewriteCall) -> PatternMatchingRewriter:
        """The rewriter that replaces each match of ``pattern`` by what ``func`` returns.

        ``func`` may return the expression it was given (or None) to leave it; then the other
        side of a top-level ``|`` is tried. The fields of a top-level tuple pattern also match
        separate bindings anywhere in the segment.
        """
        _check_takes(func, ["expr", "matches"])
        return _from_pattern(pattern, func, ())

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rewriter of a module with two functions, ``pattern`` and ``replacement``.

        Both have the same signature. ``@R.rewriter`` on a class calls this.
        """
        rule = rule_of_module(mod)
        rewriter = PatternMatchingRewriter.from_pattern(rule.pattern, rule.replace)
        rewriter.subroutines = rule.subroutines
        return rewriter

    @overload
    def __call__(self, obj: IRModule) -> IRModule: ...
    @overload
    def __call__(self, obj: Function) -> Function: ...
    def __call__(self, obj: IRModule | Function) -> IRModule | Function:
        """The rewritten module or function."""
        if isinstance(obj, IRModule):
            return super().__call__(obj)
        if not isinstance(obj, Function):
            raise wrong_type("rewriter: expected a module or a relax Function", obj)
        if self.subroutines:
            names = ", ".join(gvar.name_hint for gvar in self.subroutines)
            raise PassError(
                f"rewriter: the replacement calls {names}, which a module must hold; apply the "
                "rewriter to a module, not to a function"
            )
        return rewrite_function(obj, self.rewrite_bindings, name_of=self.rule_name)

    def _over_module(self, mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG002 - a pass
        added, renamed = _new_subroutines(mod, self.subroutines)
        functions: dict[GlobalVar, BaseFunc] = {}
        for gvar, func in mod.functions.items():
            functions[gvar] = func
            if isinstance(func, Function):
                functions[gvar] = rewrite_function(
                    func, self.rewrite_bindings, mod, renamed, self.rule_name
                )
        if all(func is mod.functions[gvar] for gvar, func in functions.items()):
            return mod
        functions.update(_called(functions, added))
        return IRModule(functions, None, mod.attrs, mod.global_infos)

    def __or__(self, other: PatternMatchingRewriter) -> OrRewriter:
        """The rewriter that applies both; where both match, this one is applied."""
        return OrRewriter(self, other)


def _new_subroutines(
    mod: IRModule, subroutines: Mapping[GlobalVar, BaseFunc]
) -> tuple[dict[GlobalVar, BaseFunc], dict[GlobalVar, GlobalVar]]:
    """The functions to add, under names that are free, and old -> new GlobalVar where renamed."""
    taken = {gvar.name_hint for gvar in mod.functions}
    added: dict[GlobalVar, BaseFunc] = {}
    renamed: dict[GlobalVar, GlobalVar] = {}
    for gvar, func in subroutines.items():
        name = free_name(gvar.name_hint, taken)
        if name != gvar.name_hint:
            renamed[gvar] = GlobalVar(name, gvar.type_)
            renamed[gvar].struct_info = gvar.struct_info
        added[renamed.get(gvar, gvar)] = func
    return added, renamed


def _called(
    functions: Mapping[GlobalVar, BaseFunc], added: Mapping[GlobalVar, BaseFunc]
) -> dict[GlobalVar, BaseFunc]:
    """The added functions that are called, directly or through other added functions."""
    called: dict[GlobalVar, BaseFunc] = {}
    todo: list[BaseFunc] = list(functions.values())
    while todo:
        for gvar in collect(todo.pop(), GlobalVar):
            if gvar in added and gvar not in called:
                called[gvar] = added[gvar]
                todo.append(added[gvar])
    return called


def _from_pattern(
    pattern: DFPattern, func: RewriteCall, outer: tuple[DFPattern, ...]
) -> PatternMatchingRewriter:
    if isinstance(pattern, OrPattern):
        inside = (*outer, pattern)
        left, right = (_from_pattern(p, func, inside) for p in (pattern.left, pattern.right))
        return OrRewriter(left, right)
    whole = ExprPatternRewriter(pattern, func)
    whole.outer = outer
    if not isinstance(pattern, TuplePattern) or not pattern.fields:
        return whole
    parts = TupleRewriter(pattern.fields, func)
    parts.outer = (*outer, pattern)
    return OrRewriter(whole, parts)


class ExprPatternRewriter(PatternMatchingRewriter):
    """Replaces the value of each binding that matches a pattern."""

    def __init__(self, pattern: DFPattern, func: RewriteCall) -> None:
        super().__init__()
        self.pattern, self.func = pattern, func
        self.outer: tuple[DFPattern, ...] = ()

    def rule_name(self, var: Var) -> str:  # noqa: ARG002 - one rule for all
        """The name of the user's function that returns replacements."""
        return _name(self.func)

    def rewrite_bindings(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """The replacements; a match must not use a binding that is replaced itself."""
        callees = root_callees(self.pattern)
        values: dict[Var, Expr] = {}
        spec: dict[Var, RelaxExpr] = {}
        for binding in bindings:
            new = self._replacement(binding.value, values, callees)
            if new is not None:
                spec[binding.var] = new
            elif isinstance(binding, VarBinding):
                values[binding.var] = binding.value
        return spec

    def _replacement(
        self, value: Expr, values: Mapping[Var, Expr], callees: frozenset[RelaxExpr] | None
    ) -> RelaxExpr | None:
        matcher = Matcher(values)
        root = matcher.value_of(value)
        if not may_match(callees, root):
            return None
        tried: list[dict[Pattern, RelaxExpr]] = []
        for _ in matcher.solutions((self.pattern, value)):
            matches = dict(matcher.bound) | dict.fromkeys(self.outer, root)
            if matches in tried:
                continue
            tried.append(matches)
            new = self.func(value, matches)
            if new is not None and new is not value:
                return new
        return None


class OrRewriter(PatternMatchingRewriter):
    """Two rewriters; the second one gets the bindings that the first one does not replace."""

    def __init__(self, lhs: PatternMatchingRewriter, rhs: PatternMatchingRewriter) -> None:
        super().__init__()
        self.lhs, self.rhs = lhs, rhs
        self.subroutines = {**lhs.subroutines, **rhs.subroutines}
        self._by_lhs: set[Var] = set()

    def rule_name(self, var: Var) -> str:
        """The rule of the side that replaced the variable."""
        return (self.lhs if var in self._by_lhs else self.rhs).rule_name(var)

    def rewrite_bindings(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """The replacements of both."""
        spec = self.lhs.rewrite_bindings(bindings)
        self._by_lhs = set(spec)
        rest = [binding for binding in bindings if binding.var not in spec]
        return {**spec, **self.rhs.rewrite_bindings(rest)} if rest else spec


class TupleRewriter(PatternMatchingRewriter):
    """Replaces several bindings at once: those that together match the fields of a tuple."""

    def __init__(self, patterns: Sequence[DFPattern], func: RewriteCall) -> None:
        super().__init__()
        self.patterns, self.func = tuple(patterns), func
        self.outer: tuple[DFPattern, ...] = ()

    def rule_name(self, var: Var) -> str:  # noqa: ARG002 - one rule for all
        """The name of the user's function that returns replacements."""
        return _name(self.func)

    def rewrite_bindings(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """The replacements; a binding that completes a tuple takes the nearest earlier bindings."""
        if len(self.patterns) > TUPLE_LIMIT:
            raise PassError(
                f"TupleRewriter: expected at most {TUPLE_LIMIT} patterns, got "
                f"{len(self.patterns)}; match bindings with rewrite_bindings instead"
            )
        return _TupleSearch(self.patterns, self.func, self.outer).run(bindings)


class _TupleSearch:
    """One pass of a TupleRewriter over a segment."""

    def __init__(
        self, patterns: tuple[DFPattern, ...], func: RewriteCall, outer: tuple[DFPattern, ...]
    ) -> None:
        self.patterns, self.func, self.outer = patterns, func, outer
        self.callees = [root_callees(pattern) for pattern in patterns]
        self.values: dict[Var, Expr] = {}
        self.inputs: dict[Var, list[Var]] = {}
        self.fitting: list[list[Binding]] = [[] for _ in patterns]
        self.spec: dict[Var, RelaxExpr] = {}

    def run(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """The replacements."""
        for binding in bindings:
            self.inputs[binding.var] = collect(binding.value, Var)
            places = [p for p in range(len(self.patterns)) if self._fits(p, binding)]
            if isinstance(binding, VarBinding):
                self.values[binding.var] = binding.value
            for place in reversed(places):
                if any(self._replace(chosen) for chosen in self._choices(place, binding)):
                    break
            for place in places:
                self.fitting[place].append(binding)
        return self.spec

    def _fits(self, place: int, binding: Binding) -> bool:
        matcher = Matcher(self.values)
        if isinstance(binding, MatchCast):
            return False
        if not may_match(self.callees[place], matcher.value_of(binding.value)):
            return False
        return matcher.first(self.patterns[place], binding.value)

    def _choices(self, place: int, binding: Binding) -> Iterator[tuple[Binding, ...]]:
        """Choices of one binding for each field, with ``binding`` for ``place``; nearest first."""

        def extend(index: int, chosen: tuple[Binding, ...]) -> Iterator[tuple[Binding, ...]]:
            if index < 0:
                yield chosen
                return
            options = [binding] if index == place else reversed(self.fitting[index])
            for option in options:
                if option.var not in self.spec and all(option is not c for c in chosen):
                    if index == place or option is not binding:
                        yield from extend(index - 1, (option, *chosen))

        return extend(len(self.patterns) - 1, ())

    def _replace(self, chosen: tuple[Binding, ...]) -> bool:
        if any(binding.var in self.spec for binding in chosen):
            return True
        whole = Tuple([binding.value for binding in chosen])
        matcher = Matcher(self.values)
        goals = zip(self.patterns, (binding.value for binding in chosen), strict=True)
        for _ in matcher.solutions(*goals):
            new = self.func(whole, dict(matcher.bound) | dict.fromkeys(self.outer, whole))
            if new is not None and new is not whole:
                return self._accept(chosen, new)
        return False

    def _accept(self, chosen: tuple[Binding, ...], new: RelaxExpr) -> bool:
        """Record the replacement, unless it depends on a binding that it replaces."""
        known = {id(value): var for var, value in self.values.items()}
        targets = {binding.var for binding in chosen}
        needed = _variables(new, known)
        if self._reaches(needed, targets):
            return False
        fields = new.fields if isinstance(new, Tuple) else None
        if fields is not None and len(fields) != len(chosen):
            raise PassError(
                f"rewriter: expected {len(chosen)} values to replace a tuple of as many fields, "
                f"got {len(fields)}"
            )
        for index, binding in enumerate(chosen):
            value = TupleGetItem(new, index) if fields is None else fields[index]
            self.spec[binding.var] = value
            self.inputs[binding.var] = list(needed)
            self.values.pop(binding.var, None)
        return True

    def _reaches(self, start: Sequence[Var], targets: set[Var]) -> bool:
        seen: set[Var] = set()
        todo = list(start)
        while todo:
            var = todo.pop()
            if var in targets:
                return True
            if var not in seen:
                seen.add(var)
                todo.extend(self.inputs.get(var, ()))
        return False


def _check_takes(func: Callable[..., object], args: Sequence[str]) -> None:
    wrong = mismatch(func, args)
    if wrong is not None:
        raise PassError(f"rewriter: {_name(func)}: {wrong}")


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _variables(expr: RelaxExpr, known: Mapping[int, Var]) -> list[Var]:
    """The variables that an expression uses; a bound value in it counts as its variable."""
    if id(expr) in known:
        return [known[id(expr)]]
    if isinstance(expr, Var):
        return [expr]
    parts = getattr(expr, "fields", None) or getattr(expr, "args", None) or ()
    if isinstance(expr, TupleGetItem):
        parts = (expr.tuple_value,)
    if not parts:
        return collect(expr, Var)
    return [var for part in parts for var in _variables(part, known)]


class _ContextRewriter(PatternMatchingRewriter):
    """Replaces bindings that a PatternContext matches together."""

    def __init__(self, ctx: PatternContext, func: RewriteBindings) -> None:
        super().__init__()
        self.ctx, self.func = ctx, func

    def rule_name(self, var: Var) -> str:  # noqa: ARG002 - one rule for all
        """The name of the user's function that returns replacements."""
        return _name(self.func)

    def rewrite_bindings(self, bindings: Sequence[Binding]) -> RewriteSpec:
        """Match again and again over the bindings not replaced yet; returns all replacements."""
        values = {binding.var: binding.value for binding in bindings}
        spec: dict[Var, RelaxExpr] = {}
        while True:
            matches = match_bindings(self.ctx.edges, self.ctx.same_shapes, values)
            new = self.func(matches, dict(values)) if matches else None
            if not new:
                return spec
            unknown = [var for var in new if var not in values]
            if unknown:
                raise PassError(
                    "rewrite_bindings: expected new values of variables that this block binds "
                    f"and that are not replaced yet, got one of {unknown[0]}"
                )
            for var, value in new.items():
                spec[var] = value
                del values[var]


def rewrite_call(pattern: DFPattern, rewriter: RewriteCall, func: Function) -> Function:
    """The function with each match of a pattern replaced, until there is none.

    ``rewriter(expr, matches)`` gets the matched expression and a map from each pattern to the
    expression it matched; it returns the replacement, or ``expr`` to leave it.
    """
    return PatternMatchingRewriter.from_pattern(pattern, rewriter)(func)


def rewrite_bindings(ctx: PatternContext, rewriter: RewriteBindings, func: Function) -> Function:
    """The function with the bindings replaced that a context matches, until there is no match.

    ``rewriter(matches, bindings)`` gets the variable of each pattern and the value of each
    variable of the block; it returns the new values of bound variables.
    """
    _check_takes(rewriter, ["matches", "bindings"])
    return _ContextRewriter(ctx, rewriter)(func)
