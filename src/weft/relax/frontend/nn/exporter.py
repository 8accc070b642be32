"""From an nn module to an IRModule: each method of the spec runs once on symbolic tensors.

A function takes the method's own arguments, then the effects, then the parameters; it returns the
method's result, and beside it the effects where there are any. The attribute ``num_input`` counts
arguments and effects. A name stands for one symbol within a function.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.analysis.well_formed import find_problem
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, Tuple, TupleGetItem, Var
from weft.relax.frontend.nn import spec as specs
from weft.relax.frontend.nn.effect import Effect, IOEffect
from weft.relax.frontend.nn.tensor import Dim, Object, Parameter, Tensor
from weft.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError, IRValueError
from weft.support.scopes import Scopes
from weft.tir.expr import Var as TirVar

Argument: TypeAlias = "TirVar | Tensor | Object | Sequence[Argument]"
"""What a method gets for an argument."""


class Exporter:
    """Builds the functions of a ModuleSpec.

    ``debug`` adds the effect that orders prints. Integers are shapes of one extent, as in TVM, or
    with ``plain_integers`` scalars.
    """

    _open: ClassVar[Scopes[Exporter]] = Scopes("exporters")

    def __init__(self, debug: bool = False, *, plain_integers: bool = False) -> None:
        self.builder = BlockBuilder()
        self.plain_integers = plain_integers
        self.io_effect = IOEffect() if debug else None

    @staticmethod
    def current() -> Exporter | None:
        """The exporter that is at work in this thread, or None."""
        return Exporter._open.innermost

    def __enter__(self) -> Exporter:
        if Exporter.current() is not None:
            raise IRValueError("export: a module is being exported already in this thread")
        Exporter._open.push(self)
        return self

    def __exit__(self, exc_type: object, exc: object, traceback: object) -> None:
        Exporter._open.pop()

    def build(self, spec: specs.ModuleSpec) -> tuple[IRModule, list[tuple[str, Parameter]]]:
        """The module, and its parameters by name, in the order in which functions take them."""
        effects = self._effects(spec.module)
        params = list(spec.module.named_parameters())
        before = [(param, param._expr) for _, param in params]
        try:
            with self:
                if effects:
                    self._initialize_effects(effects)
                for name, method in zip(spec.method_names, spec.method_specs, strict=True):
                    self._method(name, method, params, effects)
        finally:
            for param, expr in before:
                param._expr = expr
        mod = self.builder.finalize()
        problem = find_problem(mod)
        if problem is not None:
            raise IRValueError(f"export_tvm: what the methods built is not well-formed: {problem}")
        return mod, params

    def _effects(self, module: specs.HasParts) -> list[tuple[str, Effect]]:
        own: list[tuple[str, Effect]] = []
        if self.io_effect is not None:
            own.append(("", self.io_effect))
        return [*own, *module._named_items(Effect)]

    def _initialize_effects(self, effects: Sequence[tuple[str, Effect]]) -> None:
        builder = self.builder
        with builder.function("_initialize_effect", []):
            with builder.dataflow():
                states = [
                    state for name, effect in effects for state in effect.emit_init(name, builder)
                ]
                output = builder.emit_output(builder.emit(Tuple(states)))
            builder.emit_func_output(output)

    def _method(
        self,
        name: str,
        spec: specs.MethodSpec,
        params: Sequence[tuple[str, Parameter]],
        effects: Sequence[tuple[str, Effect]],
    ) -> None:
        carried = {"plain": len(effects), "packed": 1, "none": 0}[spec.effect_mode]
        attrs = {"num_input": len(spec.arg_specs) + carried}
        with self.builder.function(name, attrs=attrs):
            with self.builder.dataflow():
                output, inputs = _Method(self, name, spec).emit(params, effects)
            self.builder.emit_func_output(output, inputs)


class _Method:
    """One method while it is exported."""

    def __init__(self, exporter: Exporter, name: str, spec: specs.MethodSpec) -> None:
        self.builder, self.name, self.spec = exporter.builder, name, spec
        self.plain_integers = exporter.plain_integers
        self.symbols: dict[str, TirVar] = {}

    def emit(
        self,
        params: Sequence[tuple[str, Parameter]],
        effects: Sequence[tuple[str, Effect]],
    ) -> tuple[Var, list[Var]]:
        """Run the method: the variable of the result, and the function's parameters."""
        variables, arguments = [], []
        for name, item in zip(self.spec.arg_names, self.spec.arg_specs, strict=True):
            variable = self.symbols_named(item, name)
            variables.append(variable)
            arguments.append((item, variable, name))
        inputs = [*variables, *self.effects(effects), *self.parameters(params)]
        values = [self.value(item, variable, name) for item, variable, name in arguments]
        result = unwrapped(self.call(values), self.name)
        states = [state for _, effect in effects for state in effect.finalize()]
        if states and self.spec.effect_mode != "none":
            result = Tuple([result, Tuple(states)])
        return self.builder.emit_output(result), inputs

    def call(self, values: Sequence[Argument]) -> object:
        """The method on its arguments, by name where some before them are left out."""
        names = self.spec.arg_names
        known = list(inspect.signature(self.spec.method).parameters)
        if known[: len(names)] == names or not set(names) <= set(known):
            return self.spec.method(*values)
        return self.spec.method(**dict(zip(names, values, strict=True)))

    def symbol(self, name: str) -> TirVar:
        """The symbol that a name stands for in this function."""
        return self.symbols.setdefault(name, TirVar(name, "int64"))

    def symbols_named(self, item: specs.ArgSpec, name: str) -> Var:
        """The function's parameter for an argument."""
        if isinstance(item, specs.Int):
            symbol = self.symbol(name)
            plain = self.plain_integers
            return Var(name, PrimStructInfo(symbol) if plain else ShapeStructInfo([symbol]))
        if isinstance(item, specs.Tensor):
            dims = [self.symbol(dim) if isinstance(dim, str) else dim for dim in item.shape]
            for dim in dims:
                if isinstance(dim, TirVar):
                    self.symbols.setdefault(dim.name, dim)
            return variable_of(dims, item.dtype, name)
        if isinstance(item, specs.Object):
            return Var(name, ObjectStructInfo())
        if isinstance(item, specs.Tuple):
            fields = [
                self.symbols_named(element, f"{name}_{index}")
                for index, element in enumerate(item.elements)
            ]
            return Var(name, TupleStructInfo([field.struct_info for field in fields]))
        raise IRTypeError(f"Invalid spec for argument {name}: {item!r}")

    def value(self, item: specs.ArgSpec, var: Var, name: str) -> Argument:
        """What the method gets for an argument; the fields of a tuple are emitted."""
        if isinstance(item, specs.Int):
            return self.symbol(name)
        if isinstance(item, specs.Tensor):
            return Tensor(_expr=var)
        if isinstance(item, specs.Object):
            return item.object_type(_expr=var, _name=name)
        fields = []
        for index, element in enumerate(item.elements):
            place = f"{name}_{index}"
            field = self.builder.emit(TupleGetItem(var, index), place)
            fields.append(self.value(element, field, place))
        return fields if isinstance(item.elements, list) else tuple(fields)

    def parameters(self, params: Sequence[tuple[str, Parameter]]) -> list[Var]:
        """The function's parameters for the module's; each Parameter now means its variable."""
        variables = []
        for name, param in params:
            dims = [
                self.symbol(dim.name) if isinstance(dim, TirVar) else dim for dim in param.shape
            ]
            variable = variable_of(dims, param.dtype, name)
            param._expr = variable
            variables.append(variable)
        if self.spec.param_mode != "packed":
            return variables if self.spec.param_mode == "plain" else []
        packed = Var("packed_params", TupleStructInfo([var.struct_info for var in variables]))
        for index, (name, param) in enumerate(params):
            param._expr = self.builder.emit(TupleGetItem(packed, index), name)
        return [packed]

    def effects(self, effects: Sequence[tuple[str, Effect]]) -> list[Var]:
        """The function's parameters for the effects; each effect has its state from them."""
        groups = [(effect, effect.create(name)) for name, effect in effects]
        for effect, states in groups:
            effect.set_state(states)
        carried = [state for _, states in groups for state in states]
        if self.spec.effect_mode != "packed":
            return carried if self.spec.effect_mode == "plain" else []
        packed = Var("packed_effects", TupleStructInfo([var.struct_info for var in carried]))
        position = 0
        for effect, states in groups:
            fields = []
            for state in states:
                fields.append(self.builder.emit(TupleGetItem(packed, position), state.name_hint))
                position += 1
            effect.set_state(fields)
        return [packed]


def variable_of(shape: Sequence[Dim], dtype: str, name: str) -> Var:
    """A parameter of a function for a tensor."""
    return expect(Tensor.placeholder(shape, dtype, name)._expr, Var)


def unwrapped(value: object, where: str) -> Expr:
    """The expression of a result: a tensor, an object, or a tuple or list of them."""
    if isinstance(value, Tensor | Object):
        return value._expr
    if isinstance(value, tuple | list):
        return Tuple([unwrapped(item, where) for item in value])
    raise IRTypeError(
        f"{where}: Unsupported return type: {type(value).__name__}; a method returns nn.Tensor, "
        "nn.Object, or tuples or lists of them"
    )
