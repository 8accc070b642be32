"""Canonical form of bindings: removes bindings that only rename.

After ``y = x``, uses of y become uses of x. An output that only renames a dataflow variable takes
its place: ``lv = f(x); gv = lv`` becomes ``gv = f(x)``. ``(a, b)[0]`` becomes ``a``, and
``(t[0], t[1])`` of a pair ``t`` becomes ``t``. A match_cast to a struct info that is known already
is a renaming, and a variable bound to a constant is replaced by the constant. A variable that only
its own dataflow block uses becomes a dataflow variable. Other unused bindings stay:
``remove_all_unused`` is for those.

One walk makes a plan, another carries it out, so the cost is linear in the number of bindings. The
pass CanonicalizeBindings and pattern rewriting use it.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.rewrite.known_symbols import replace_known_symbols
from weft.relax.struct_info import TupleStructInfo


class _Plan(PyExprVisitor):
    """Groups of variables that name one value (a root and its aliases), and where they are used."""

    def __init__(self) -> None:
        self.block: BindingBlock | None = None
        self.home: dict[Var, BindingBlock] = {}
        self.root: dict[Var, Var] = {}
        self.aliases: dict[Var, list[Var]] = {}
        self.values: dict[Var, RelaxExpr] = {}
        self.used: set[Var] = set()
        self.used_outside: set[Var] = set()

    # The walk

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        outer = self.block
        for block in op.blocks:
            self.block = block
            for binding in block.bindings:
                self.visit_binding(binding)
        self.block = None
        self.visit_expr(op.body)
        self.block = outer

    def visit_binding(self, binding: Binding) -> None:
        var, value = binding.var, self.source(binding.value)
        if self.block is not None:
            self.home[var] = self.block
        if isinstance(value, Var) and self.is_visible(value) and _passes(binding, value):
            self.root[var] = value
            self.aliases.setdefault(value, []).append(var)
            return
        if isinstance(binding, VarBinding):
            self.values[var] = binding.value if isinstance(value, Var) else value
        self.visit_expr(binding.value)

    def visit_var_(self, op: Var) -> None:
        self.used.add(op)
        if self.home.get(op) is not self.block or not isinstance(self.block, DataflowBlock):
            self.used_outside.add(op)

    # What a value is

    def value_of(self, expr: RelaxExpr) -> RelaxExpr:
        """The value that a variable is bound to, if it is known, else the expression itself."""
        if not isinstance(expr, Var):
            return expr
        root = self.root.get(expr, expr)
        return self.values.get(root, root)

    def source(self, value: RelaxExpr) -> RelaxExpr:
        """The variable that a value only renames, else the value, without needless tuples."""
        if isinstance(value, TupleGetItem):
            whole = self.value_of(value.tuple_value)
            if isinstance(whole, Tuple):
                value = whole.fields[value.index]
        elif isinstance(value, Tuple) and value.fields:
            value = self.retupled(value) or value
        return self.root_of(value) if isinstance(value, Var) else value

    def retupled(self, value: Tuple) -> Var | None:
        """The tuple ``t`` if ``value`` is ``(t[0], t[1], ...)`` with all of its fields, or None."""
        items = [self.value_of(item) for item in value.fields]
        whole = items[0].tuple_value if isinstance(items[0], TupleGetItem) else None
        if not isinstance(whole, Var) or not isinstance(whole.struct_info, TupleStructInfo):
            return None
        whole = self.root_of(whole)
        same = len(whole.struct_info.fields) == len(items) and all(
            isinstance(item, TupleGetItem)
            and item.index == index
            and isinstance(item.tuple_value, Var)
            and self.root_of(item.tuple_value) is whole
            for index, item in enumerate(items)
        )
        return whole if same else None

    def root_of(self, var: Var) -> Var:
        """The first name of a variable's value."""
        return self.root.get(var, var)

    def is_visible(self, var: Var) -> bool:
        """Whether the variable may be used here: a dataflow variable only in its block."""
        return not isinstance(var, DataflowVar) or self.home.get(var) is self.block

    # What follows

    def names(self) -> dict[Var, Var]:
        """Which variable the binding of a root defines instead."""
        names: dict[Var, Var] = {}
        for var, block in self.home.items():
            if not isinstance(block, DataflowBlock) or var in self.root:
                continue
            name = self.name_of(var, block)
            if name is not var:
                names[var] = name
        return names

    def name_of(self, var: Var, block: BindingBlock) -> Var:
        """The variable that keeps a value of a dataflow block: an output if it is used outside."""
        if not isinstance(var, DataflowVar) and var in self.used_outside:
            return var
        for alias in self.aliases.get(var, ()):
            is_near = self.home[alias] is block
            if alias in (self.used_outside if is_near else self.used):
                return alias if is_near and not isinstance(alias, DataflowVar) else var
        if isinstance(var, DataflowVar):
            return var
        return DataflowVar(var.name_hint, var.struct_info)

    def constants(self, names: dict[Var, Var]) -> dict[Var, Constant]:
        """The variables to replace by their constants: those that no output renames."""
        renamed = {root for root, name in names.items() if name in self.root}
        return {
            var: value
            for var, value in self.values.items()
            if isinstance(value, Constant)
            and var not in renamed
            and (var in self.used or var in self.aliases)
        }


def _passes(binding: Binding, value: Var) -> bool:
    """Whether a binding only renames the value: a match_cast does if its info is known already."""
    return not isinstance(binding, MatchCast) or value.struct_info == binding.struct_info


class _Renamer(PyExprMutator):
    """Rewrites a function as the plan says."""

    def __init__(
        self, root: dict[Var, Var], names: dict[Var, Var], constants: dict[Var, Constant]
    ) -> None:
        super().__init__()
        self.root, self.names, self.constants = root, names, constants

    def visit_binding(self, binding: Binding) -> None:
        if binding.var in self.root:
            return
        name = self.names.get(binding.var)
        if name is not None:  # before the value: a local function may call itself
            self.set_var_remap(binding.var.vid, name)
        super().visit_binding(binding)

    def visit_var_def(self, var: Var) -> Var:
        return self.names.get(var, var)

    def visit_var_(self, op: Var) -> RelaxExpr:
        root = self.root.get(op, op)
        return self.constants.get(root) or self.get_var_remap(root.vid)


def _rename(func: Function) -> Function:
    plan = _Plan()
    plan.visit_expr(func)
    names = plan.names()
    constants = plan.constants(names)
    if not (plan.root or names or constants):
        return func
    return _Renamer(plan.root, names, constants).visit_expr(func)


def canonicalize_bindings(func: Function) -> Function:
    """The function without bindings, and without symbolic variables, that only rename."""
    return _rename(replace_known_symbols(func))
