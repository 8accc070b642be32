"""Grouping: makes a private function of each group of bindings.

FuseOps and FuseOpsByPattern decide which bindings of a dataflow block belong together; here, each
group becomes a function, and its bindings are replaced by a call.

Before, with lv and gv in one group::

    with R.dataflow():
        lv = R.add(x, w)
        gv = R.nn.relu(lv)
        R.output(gv)

After::

    @R.function(private=True)
    def fused_relax_add_relax_nn_relu(x, w):     # attribute Primitive
        with R.dataflow():
            lv = R.add(x, w)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv

    with R.dataflow():
        gv = cls.fused_relax_add_relax_nn_relu(x, w)
        R.output(gv)

The conventions are those of TVM 0.20:

- Parameters are in the order of first use. Constants become parameters or stay inside.
- A tuple of which only fields are used is passed as these fields.
- Symbolic variables that no parameter's shape defines come last, as one shape ``tir_vars``.
- Results are first the outputs of the block, in order of their bindings, and then the variables
  that other groups use, in order of use.
- Equal functions are shared.

Bindings move only as ``binding_dependencies`` allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.functor import Mutator
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.analysis.dependencies import binding_dependencies, operands
from weft.relax.analysis.variables import free_symbolic_vars
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    Binding,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.substitution import InfoOrNone, Substitution
from weft.relax.op.base import CALLS_OF_KERNELS
from weft.relax.struct_info import TupleStructInfo
from weft.support.errors import PassError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var as TirVar


@dataclass(eq=False)
class Group:
    """Bindings that become one function; ``attrs`` are its attributes beside ``Primitive``."""

    attrs: dict[str, object] = field(default_factory=dict)
    name: str = ""
    """The name of the function; "" for one made of the names of what it calls."""


def make_grouped_functions(
    mod: IRModule,
    groups: Mapping[Var, Group],
    lift_constants: bool = True,
    entry_functions: Iterable[str] = (),
) -> IRModule:
    """The module with each group of bindings in a function of its own.

    ``groups`` maps bound variables to their groups. Variables without a group stay as they are, and
    so does a group of one binding without attributes. A group lies within one dataflow block. With
    ``lift_constants``, constants become parameters. If ``entry_functions`` is not empty, only these
    functions are rewritten; functions marked ``Primitive`` or ``Codegen`` never are. Raises
    PassError if a group depends on itself through a binding outside of it.
    """
    names = set(entry_functions)
    builder = BlockBuilder(mod)
    changed = False
    for gvar, func in mod.functions.items():
        if names and gvar.name_hint not in names:
            continue
        if isinstance(func, Function) and is_groupable(func):
            grouped = _rewritten(builder, func, groups, lift_constants)
            if grouped is not func:
                builder.update_func(gvar, grouped)
                changed = True
    return builder.get() if changed else mod


def is_groupable(func: Function) -> bool:
    """Whether the bindings of a function are grouped: it is not the result of grouping itself."""
    return not func.attrs.get("Primitive", 0) and func.attrs.get("Codegen") is None


@deep_recursion
def _rewritten(
    builder: BlockBuilder, func: Function, groups: Mapping[Var, Group], lift_constants: bool
) -> Function:
    return _Grouper(builder, groups, lift_constants).visit(func)


class _Grouper(Mutator):
    """Rewrites the dataflow blocks of a function."""

    def __init__(
        self, builder: BlockBuilder, groups: Mapping[Var, Group], lift_constants: bool
    ) -> None:
        self.builder, self.groups, self.lift_constants = builder, groups, lift_constants

    def visit_DataflowBlock(self, block: DataflowBlock) -> DataflowBlock:
        members: dict[Group, list[int]] = {}
        for index, binding in enumerate(block.bindings):
            group = self.groups.get(binding.var)
            if group is not None:
                members.setdefault(group, []).append(index)
        chosen = {
            group: indices for group, indices in members.items() if len(indices) > 1 or group.attrs
        }
        return self.rewritten(block, chosen) if chosen else block

    def rewritten(
        self, block: DataflowBlock, members: Mapping[Group, Sequence[int]]
    ) -> DataflowBlock:
        """The block with a call in place of each group's last binding."""
        bindings = block.bindings
        unit_of = list(range(len(bindings)))
        by_unit: dict[int, tuple[Group, Sequence[int]]] = {}
        for group, indices in members.items():
            by_unit[indices[-1]] = (group, indices)
            for index in indices:
                unit_of[index] = indices[-1]
        outputs = _outputs_of_units(bindings, unit_of)
        rebound: list[Binding] = []
        for unit in _sorted_units(bindings, unit_of):
            if unit not in by_unit:
                rebound.append(bindings[unit])
                continue
            group, indices = by_unit[unit]
            results = outputs.get(unit, [])
            if results:  # a group without results is dead code
                inside = [bindings[index] for index in indices]
                rebound.extend(self.call(group, inside, results))
        return DataflowBlock(rebound)

    def call(
        self, group: Group, bindings: Sequence[Binding], results: Sequence[Var]
    ) -> list[Binding]:
        """The bindings that call the function of a group."""
        grouped = GroupedFunction(bindings, results, self.lift_constants)
        func = grouped.function(group.attrs)
        gvar = self.builder.add_func(func, group.name or grouped.name())
        values = [self.bound(arg) for arg in grouped.arguments if isinstance(arg, TupleGetItem)]
        fields = iter(values)
        arguments = [
            next(fields).var if isinstance(arg, TupleGetItem) else arg for arg in grouped.arguments
        ]
        call = Call(gvar, arguments)
        if len(results) == 1:
            call.struct_info = results[0].struct_info
            return [*values, VarBinding(results[0], call)]
        call.struct_info = TupleStructInfo([var.struct_info for var in results])
        whole = self.bound(call)
        items = [VarBinding(var, TupleGetItem(whole.var, i)) for i, var in enumerate(results)]
        return [*values, whole, *items]

    def bound(self, value: Expr) -> VarBinding:
        """A binding of a new variable."""
        var = DataflowVar(self.builder.get_unique_name("lv_fused"), value.struct_info)
        return VarBinding(var, value)


def _outputs_of_units(bindings: Sequence[Binding], unit_of: Sequence[int]) -> dict[int, list[Var]]:
    """Unit -> its results: outputs of the block, then what other units use, in order of use."""
    unit_of_var = {b.var: unit for b, unit in zip(bindings, unit_of, strict=True)}
    results: dict[int, dict[Var, None]] = {}
    for binding, unit in zip(bindings, unit_of, strict=True):
        if not isinstance(binding.var, DataflowVar):
            results.setdefault(unit, {})[binding.var] = None
    for binding, unit in zip(bindings, unit_of, strict=True):
        for used in operands(binding.value):
            if not isinstance(used, Var):
                continue
            producer = unit_of_var.get(used)
            if producer is not None and producer != unit:
                results.setdefault(producer, {})[used] = None
    return {unit: [*variables] for unit, variables in results.items()}


def _sorted_units(bindings: Sequence[Binding], unit_of: Sequence[int]) -> list[int]:
    """The units in an order in which each comes after those that it depends on.

    Apart from that, they are in the order of their bindings.
    """
    needed: dict[int, dict[int, None]] = {unit: {} for unit in unit_of}
    for unit, dependencies in zip(unit_of, binding_dependencies(bindings), strict=True):
        for index in dependencies:
            if unit_of[index] != unit:
                needed[unit][unit_of[index]] = None
    order: list[int] = []
    entered: set[int] = set()
    placed: set[int] = set()
    for start in needed:
        todo = [start]
        while todo:
            unit = todo[-1]
            waiting = [other for other in needed[unit] if other not in placed]
            if unit in placed or not waiting:
                todo.pop()
                if unit not in placed:
                    placed.add(unit)
                    order.append(unit)
                continue
            entered.add(unit)  # units that are entered and not placed are on the current path
            for other in waiting:
                if other in entered:
                    raise _circle(bindings[unit].var, bindings[other].var)
            todo.extend(reversed(waiting))
    return order


def _circle(first: Var, second: Var) -> PassError:
    return PassError(
        "grouping: expected groups that do not depend on each other in a circle, but that of "
        f"{first.name_hint} and that of {second.name_hint} do; group what is between them too"
    )


class GroupedFunction:
    """The function made of some bindings: its parameters and the arguments for them."""

    def __init__(
        self, bindings: Sequence[Binding], results: Sequence[Var], lift_constants: bool = True
    ) -> None:
        self.bindings, self.results, self.lift_constants = bindings, results, lift_constants
        self.arguments: list[RelaxExpr] = []
        self.params: list[Var] = []
        self.inside = {binding.var for binding in bindings}
        self.whole = _whole_tuples(bindings)
        self.replaced: dict[Any, Var] = {}
        self.unnamed = 0
        for binding in bindings:
            self.collect(binding.value)

    def name(self) -> str:
        """``fused_`` and the names of the callees, in order."""
        called = [_called_name(b.value) for b in self.bindings if isinstance(b.value, Call)]
        return "_".join(["fused", *called])

    def collect(self, value: RelaxExpr) -> None:
        """Add parameters for what a value takes from outside."""
        if isinstance(value, Call):
            kernel = value.op in CALLS_OF_KERNELS
            for arg in operands(value.args[1]) if kernel else value.args:
                self.argument(arg)
        elif isinstance(value, TupleGetItem):
            source = value.tuple_value
            if source in self.inside or source in self.whole:
                self.argument(source)
            else:
                self.tuple_field(value)
        else:
            for leaf in operands(value):
                self.argument(leaf)

    def argument(self, arg: RelaxExpr) -> None:
        """Add a parameter for an argument, unless it has one, is defined inside, or is inlined."""
        if arg in self.inside or arg in self.replaced or not _is_value(arg):
            return
        if isinstance(arg, Constant) and not self.lift_constants:
            return
        if isinstance(arg, Tuple) and any(leaf in self.inside for leaf in operands(arg)):
            for item in arg.fields:
                self.argument(item)
            return
        if isinstance(arg, Var):
            name = arg.name_hint
        else:
            name, self.unnamed = f"param_{self.unnamed}", self.unnamed + 1
        self.parameter(arg, arg, name)

    def tuple_field(self, item: TupleGetItem) -> None:
        """Add a parameter for one field of a tuple from outside."""
        key = (item.tuple_value, item.index)
        if key not in self.replaced:
            source = item.tuple_value
            name = source.name_hint if isinstance(source, Var) else "param"
            self.parameter(key, TupleGetItem(source, item.index), f"{name}_{item.index}")

    def parameter(self, key: Any, arg: RelaxExpr, name: str) -> None:
        self.arguments.append(arg)
        self.params.append(Var(name, arg.struct_info))
        self.replaced[key] = self.params[-1]

    def function(self, attrs: Mapping[str, object]) -> Function:
        """The function; symbols that no parameter defines become its last parameter."""
        block, outputs = self.body()
        body = SeqExpr([block], outputs[0] if len(outputs) == 1 else Tuple(outputs))
        marked = {**attrs, "Primitive": 1}
        func = Function(self.params, body, None, True, marked)
        if not self.has_symbols():
            return func
        free = list(free_symbolic_vars(func))
        if free:
            self.parameter("tir_vars", ShapeExpr(free), "tir_vars")
            func = Function(self.params, body, None, True, marked)
        return _own_symbols(func)

    def has_symbols(self) -> bool:
        """Whether the function uses symbolic variables."""
        infos = [param.struct_info for param in self.params]
        return bool(symbolic_vars([infos, [(b.value, b.var.struct_info) for b in self.bindings]]))

    def body(self) -> tuple[DataflowBlock, list[Var]]:
        """The block in terms of the parameters, and its outputs in order."""
        copier = _Copier(self.replaced)
        bindings: list[Binding] = []
        fields: dict[Var, Var] = {}
        for binding in self.bindings:
            value = binding.value
            if isinstance(value, TupleGetItem):
                param = self.replaced.get((value.tuple_value, value.index))
                if param is not None:
                    copier.variables[binding.var] = fields[binding.var] = param
                    continue
            kind = Var if binding.var in self.results else DataflowVar
            copier.variables[binding.var] = kind(binding.var.name_hint, binding.var.struct_info)
            bindings.append(copier.visit(binding))
        outputs: list[Var] = []
        for var in self.results:
            if var in fields:  # a field that is a parameter is returned unchanged
                out = Var(var.name_hint, var.struct_info)
                bindings.append(VarBinding(out, fields[var]))
                outputs.append(out)
            else:
                outputs.append(copier.define(var))
        return DataflowBlock(bindings), outputs


class _Copier(Substitution):
    """Copies bindings with outer variables, constants, shapes and tuples replaced by parameters."""

    def __init__(self, replaced: Mapping[Any, Var]) -> None:
        super().__init__({key: param for key, param in replaced.items() if isinstance(key, Var)})
        self.replaced = replaced

    def info(self, info: InfoOrNone) -> InfoOrNone:
        """The struct info unchanged: symbols are replaced later (``_own_symbols``)."""
        return info

    def visit(self, node: Any) -> Any:
        if isinstance(node, Constant | ShapeExpr | PrimValue | Tuple):
            replacement = self.replaced.get(node)
            if replacement is not None:
                return replacement
        return super().visit(node)


def _whole_tuples(bindings: Sequence[Binding]) -> set[Var]:
    """The tuples that are used as a whole, not only by fields."""
    return {
        leaf
        for binding in bindings
        if not isinstance(binding.value, TupleGetItem)
        for leaf in operands(binding.value)
        if isinstance(leaf, Var) and isinstance(leaf.struct_info, TupleStructInfo)
    }


def _is_value(arg: RelaxExpr) -> bool:
    """Whether an argument is passed as a parameter; functions, texts, numbers and constant shapes
    are not.
    """
    if isinstance(arg, Tuple):
        return any(_is_value(item) for item in arg.fields)
    if isinstance(arg, ShapeExpr | PrimValue):
        return bool(symbolic_vars(arg))
    return isinstance(arg, Var | Constant)


def _called_name(call: Call) -> str:
    if call.op in CALLS_OF_KERNELS:
        return str(expect(call.args[0], GlobalVar).name_hint)
    if isinstance(call.op, GlobalVar):
        return call.op.name_hint.removeprefix("fused_")
    return str(getattr(call.op, "name", getattr(call.op, "global_symbol", "call")))


def _own_symbols(func: Function) -> Function:
    """The function with new symbolic variables, which no other function shares."""
    symbols: dict[TirVar, TirVar] = {}
    for var in symbolic_vars([func.struct_info, func]):
        symbols.setdefault(var, type(var)(var.name, var.dtype))
    if not symbols:
        return func
    return Substitution(symbols=symbols, fresh=True).visit(func)


__all__ = ["Group", "GroupedFunction", "is_groupable", "make_grouped_functions"]
