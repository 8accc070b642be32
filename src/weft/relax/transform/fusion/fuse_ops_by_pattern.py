"""FuseOpsByPattern: groups what a pattern matches into a function, marked with the pattern's name.

Before::

    with R.dataflow():
        lv = R.nn.conv2d(data, weight)
        gv = R.nn.relu(lv)
        R.output(gv)

After, with ``("dnnl.conv2d_relu", is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(...)))``::

    with R.dataflow():
        gv = cls.fused_relax_nn_conv2d_relax_nn_relu(data, weight)
        R.output(gv)

where the function has the attributes ``Composite`` ("dnnl.conv2d_relu") and ``Primitive``. Patterns
earlier in the list win. For each pattern, bindings are tried in order. A match may take bindings of
an earlier match only if it contains all of them. A match that would depend on itself through a
binding outside of it is skipped. A match lies within one dataflow block.

With ``annotate_codegen``, each function is wrapped in a public one that has the attribute
``Codegen`` (the part of the name before the dot) and contains the composite as a local function, as
RunCodegen expects. The design is that of Chen et al., "Bring Your Own Codegen to Deep Learning
Compiler" (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import Pass, define_module_pass
from weft.relax.analysis.bindings import udchain
from weft.relax.block_builder import BlockBuilder
from weft.relax.dpl.kinds import CallPattern, DFPattern
from weft.relax.dpl.matcher import Matcher, Pattern
from weft.relax.dpl.root import may_match, root_callees
from weft.relax.dpl.tuples import TupleGetItemPattern
from weft.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.relax.transform.fusion.unit_order import UnitOrder
from weft.support.errors import IRTypeError, IRValueError, PassError


@dataclass(frozen=True, eq=False)
class PatternCheckContext:
    """The argument of a user's check function: a match."""

    matched_expr: RelaxExpr
    """The value of the last binding of the match."""
    annotated_expr: Mapping[str, RelaxExpr]
    """Name of an annotation pattern -> the expression that it matched."""
    matched_bindings: Mapping[Var, RelaxExpr]
    """The bindings that would be grouped: variable -> value."""
    var_usages: Mapping[Var, Sequence[Var]]
    """Variable of the block -> the variables whose values use it."""
    value_to_bound_var: Mapping[RelaxExpr, Var]
    """Value in the block -> the variable bound to it."""


@dataclass(frozen=True, eq=False)
class FusionPattern:
    """A pattern with a name such as "cutlass.matmul", and functions that look at its matches.

    ``annotation_patterns`` names parts of the pattern; ``check`` refuses a match by returning
    False; ``attrs_getter`` returns attributes for the function, given the annotated expressions.
    """

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Callable[[PatternCheckContext], bool] | None = None
    attrs_getter: Callable[[Mapping[str, RelaxExpr]], Mapping[str, object]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.pattern, DFPattern):
            raise IRTypeError(
                f"FusionPattern: expected a name and a pattern, got {self.name!r:.80} and "
                f"{type(self.pattern).__name__}"
            )
        if self.annotation_patterns is None:
            object.__setattr__(self, "annotation_patterns", {})


FusionPatternLike = FusionPattern | tuple[Any, ...]
"""A FusionPattern, or a tuple of its arguments."""


def as_fusion_pattern(pattern: FusionPatternLike) -> FusionPattern:
    """The FusionPattern itself, or one made from a tuple of its arguments."""
    if isinstance(pattern, FusionPattern):
        return pattern
    if not isinstance(pattern, tuple) or len(pattern) < 2:
        raise IRValueError(
            f"expected a FusionPattern, or a tuple (name, pattern, ...), got {pattern!r:.80}"
        )
    return FusionPattern(*pattern)


class _Partition(PyExprVisitor):
    """Finds the groups of a pattern in a function."""

    def __init__(self, fusion: FusionPattern) -> None:
        self.fusion = fusion
        self.callees = root_callees(fusion.pattern)
        self.groups: dict[Var, Group] = {}

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        """Find the groups of a block; matches do not reach into another block."""
        search = _BlockPartition(self.fusion, block)
        for binding in block.bindings:
            if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
                if may_match(self.callees, binding.value):
                    search.group_at(binding)
        for var, group in search.order.groups.items():
            if var in self.groups:
                raise IRValueError(
                    f"FuseOpsByPattern: variable {var.name_hint} is bound in two places; the "
                    "module is not in single-site assignment, copy the function with new variables"
                )
            self.groups[var] = group


class _BlockPartition:
    """Finds the groups of a pattern in a block."""

    def __init__(self, fusion: FusionPattern, block: DataflowBlock) -> None:
        self.fusion, self.block = fusion, block
        self.order = UnitOrder(block.bindings)
        bound = [binding for binding in block.bindings if isinstance(binding, VarBinding)]
        self.values = {binding.var: binding.value for binding in bound}
        self.names: dict[RelaxExpr, Var] = {binding.value: binding.var for binding in bound}
        self._users: Mapping[Var, Sequence[Var]] | None = None

    def group_at(self, binding: VarBinding) -> None:
        """Group the first match at a binding that is accepted."""
        for matches in self.matches(binding):
            matched = self.variables_of(binding, matches)
            if matched is None or not self.admissible(matched):
                continue
            context = self.context(binding, matches, matched)
            if self.fusion.check is not None and not self.fusion.check(context):
                continue
            attrs: dict[str, object] = {"Composite": self.fusion.name}
            if self.fusion.attrs_getter is not None:
                attrs.update(self.fusion.attrs_getter(context.annotated_expr))
            self.order.merge(matched, Group(attrs))
            return

    def matches(self, binding: VarBinding) -> Iterator[dict[Pattern, Any]]:
        """All matches of the pattern at a binding: part of the pattern -> expression."""
        matcher = Matcher(self.values)
        for _ in matcher.solutions((self.fusion.pattern, binding.value)):
            yield dict(matcher.bound)

    def variables_of(
        self, binding: VarBinding, matches: Mapping[Pattern, Any]
    ) -> dict[Var, None] | None:
        """The variables that a match computes; None if it computes a value without a variable.

        What a wildcard matches is computed outside of the group.
        """
        matched: dict[Var, None] = {binding.var: None}
        for pattern, expr in matches.items():
            if isinstance(pattern, CallPattern | TupleGetItemPattern):
                if expr not in self.names:
                    return None
                matched[self.names[expr]] = None
        return matched

    def admissible(self, matched: Mapping[Var, None]) -> bool:
        """Whether a match contains each earlier match that it overlaps, and makes no cycle."""
        for var in matched:
            group = self.order.groups.get(var)
            if group is not None and any(v not in matched for v in self.order.members[group]):
                return False
        return self.order.can_merge(matched)

    def context(
        self, binding: VarBinding, matches: Mapping[Pattern, Any], matched: Mapping[Var, None]
    ) -> PatternCheckContext:
        """The argument of the user's check function: the match, its variables and their users."""
        if self._users is None:
            self._users = udchain(self.block)
        annotated = {
            name: matches[pattern]
            for name, pattern in self.fusion.annotation_patterns.items()
            if pattern in matches
        }
        bindings = {var: self.values[var] for var in matched}
        return PatternCheckContext(binding.value, annotated, bindings, self._users, self.names)


def fuse_ops_by_pattern(
    mod: IRModule,
    patterns: Sequence[FusionPattern],
    bind_constants: bool = True,
    annotate_codegen: bool = False,
    entry_functions: Sequence[str] = (),
) -> IRModule:
    """The module with matches grouped into functions; ``mod`` if nothing matches."""
    for name in entry_functions:
        if name not in mod or not isinstance(mod[name], Function):
            raise PassError(f"FuseOpsByPattern: the module has no graph function {name!r}")
    for fusion in patterns:
        partition = _Partition(fusion)
        for gvar, func in mod.functions.items():
            if entry_functions and gvar.name_hint not in entry_functions:
                continue
            if isinstance(func, Function) and is_groupable(func) and "Composite" not in func.attrs:
                partition.visit_expr(func)
        if partition.groups:
            mod = make_grouped_functions(mod, partition.groups, not bind_constants, entry_functions)
    return _Annotator(mod).run() if annotate_codegen else mod


def codegen_name(composite: str) -> str:
    """The backend of a composite function: "dnnl.conv2d" -> "dnnl"."""
    return composite.split(".", 1)[0]


class _Annotator(PyExprMutator):
    """Wraps each composite function that is called in a public function for its backend."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.wrapped: dict[GlobalVar, GlobalVar] = {}

    def run(self) -> IRModule:
        """The module with wrappers in place of composite functions."""
        for gvar, func in self.mod.functions.items():
            if not isinstance(func, Function) or "Composite" in func.attrs:
                continue
            if func.attrs.get("Codegen") is None:
                rewritten = self.visit_expr(func)
                if rewritten is not func:
                    self.builder_.update_func(gvar, rewritten)
        if not self.wrapped:
            return self.mod
        result = self.builder_.get()
        kept = {gvar: func for gvar, func in result.functions.items() if gvar not in self.wrapped}
        return IRModule(kept, None, result.attrs, result.global_infos)

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        func = self.mod.functions.get(call.op) if isinstance(call.op, GlobalVar) else None
        if not isinstance(func, Function) or "Composite" not in func.attrs:
            return call
        if call.op not in self.wrapped:
            backend = codegen_name(str(func.attrs["Composite"]))
            wrapper = _wrapper(func).with_attr("Codegen", backend)
            name = f"{call.op.name_hint}_{backend}"
            self.wrapped[call.op] = add_public(self.builder_, wrapper, name)
        return Call(self.wrapped[call.op], call.args)


def add_public(builder: BlockBuilder, func: Function, hint: str) -> GlobalVar:
    """Add a function under a free name, which becomes its ``global_symbol`` too."""
    gvar = builder.add_func(func, hint)
    builder.update_func(gvar, func.with_attr("global_symbol", gvar.name_hint))
    return gvar


def _wrapper(func: Function) -> Function:
    """A function that contains ``func`` as a local function and calls it."""
    inner = func.without_attr("Primitive")
    params = [Var(param.name_hint, param.struct_info) for param in func.params]
    local = Var("local_func", inner.struct_info)
    output = Var("output", inner.ret_struct_info)
    call = Call(local, params)
    call.struct_info = inner.ret_struct_info
    block = BindingBlock([VarBinding(local, inner), VarBinding(output, call)])
    return Function(params, SeqExpr([block], output), func.ret_struct_info, func.is_pure)


def FuseOpsByPattern(  # noqa: N802 - TVM's name
    patterns: Sequence[FusionPatternLike],
    bind_constants: bool = True,
    annotate_codegen: bool = False,
    entry_functions: Sequence[str] | None = None,
) -> Pass:
    """The pass that groups what patterns match; ``bind_constants`` keeps constants inside."""
    fusions = [as_fusion_pattern(pattern) for pattern in patterns]

    make = define_module_pass("FuseOpsByPattern", fuse_ops_by_pattern)
    return make(fusions, bind_constants, annotate_codegen, tuple(entry_functions or ()))
