"""``from_exported_program``: what torch.export captured, as a module of graph functions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import fx
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputSpec
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from weft.ir.expr import Extent
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, Var
from weft.relax.expr import Tuple as RelaxTuple
from weft.relax.frontend.torch.as_captured import converters_as_captured
from weft.relax.frontend.torch.aten_graph import input_variable
from weft.relax.frontend.torch.capture import EXPORTING
from weft.relax.frontend.torch.complex_tensor import is_complex
from weft.relax.frontend.torch.constants import as_ndarray
from weft.relax.frontend.torch.deferred_guards import ASSUMED_LEAST
from weft.relax.frontend.torch.fallback import torch_fallbacks
from weft.relax.frontend.torch.float8_tensors import is_float8
from weft.relax.frontend.torch.input_symbols import define_symbols
from weft.relax.frontend.torch.kept_tensors import with_kept_tensors
from weft.relax.frontend.torch.operator_list import operators_listed_once
from weft.relax.frontend.torch.operators import converters_with
from weft.relax.frontend.torch.registry import Converter
from weft.relax.frontend.torch.single_decompositions import (
    decomposed_one_by_one,
    decompositions_but,
)
from weft.relax.frontend.torch.size_guards import emit_guards, guards_of_sizes
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.told_shapes import told_shapes
from weft.relax.frontend.torch.translate import (
    GraphTranslator,
    missing_operators,
    number_output,
    refuse_results,
    stored,
)
from weft.relax.frontend.torch.values import ComplexTensor, Value
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError
from weft.support.public_entry import public_entry
from weft.tir.expr import Var as TirVar

SOURCE: Final = "from_exported_program"
_NO_LIMIT: Final = 2**62
"""Upper bounds from here on are torch's way to say that there is none."""
Param = tuple[Var, NDArray]
"""An input that holds a parameter or a state of the model, and its value."""
_MUTATED: Final[Mapping[str, str]] = {
    "BUFFER_MUTATION": "buffer",
    "USER_INPUT_MUTATION": "input",
    "PARAMETER_MUTATION": "parameter",
}
"""Name of an OutputKind (torch before 2.9 lacks the last one) -> what the output is written to."""


@dataclass(frozen=True)
class ImportedProgram:
    """A module, and how its ``main`` relates to the exported program.

    ``inputs`` names the user's inputs in order of ``main``'s parameters (None for one that the
    graph holds as a constant). ``mutations`` are the first results of ``main``: what each replaces
    ("buffer", "input" or "parameter", and its name). ``ranges`` gives the bounds of the symbols.
    """

    mod: IRModule
    inputs: tuple[str | None, ...]
    mutations: tuple[tuple[str, str], ...]
    ranges: Mapping[str, tuple[int, int | None]]


@public_entry("from_exported_program")
def from_exported_program(
    exported_program: torch.export.ExportedProgram,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_converters: Mapping[str, Converter] | None = None,
    fallback: str | None = None,
) -> IRModule:
    """The module of an ExportedProgram, with one function ``main``.

    Args:
        exported_program: what ``torch.export.export`` returned.
        keep_params_as_input: parameters become inputs of ``main``, after the user's (buffers and
            constants do not); their values stand in its attribute ``params``.
        unwrap_unit_return_tuple: a single result is returned itself, not in a tuple.
        no_bind_return_tuple: each result becomes an output of its own.
        custom_converters: converters by overload name (``{"aten.foo.default": f}``), called as
            ``f(context, *arguments)`` as ``weft.relax.frontend.torch.registry`` says.
        fallback: ``"torch"`` runs operators without a converter in PyTorch.

    Symbolic dimensions become ``tir.Var``s of torch's names. Buffers that the program changes are
    its first results. Raises UnsupportedOperatorsError with all operators that have no converter.

    >>> import torch
    >>> from weft.relax.frontend.torch import from_exported_program
    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),))
    >>> mod = from_exported_program(program, unwrap_unit_return_tuple=True)
    >>> print(mod["main"].ret_struct_info)
    R.Tensor((2, 3), dtype="float32")
    """
    return import_exported_program(
        exported_program,
        keep_params_as_input=keep_params_as_input,
        unwrap_unit_return_tuple=unwrap_unit_return_tuple,
        no_bind_return_tuple=no_bind_return_tuple,
        custom_converters=custom_converters,
        fallback=fallback,
    ).mod


def import_exported_program(
    program: torch.export.ExportedProgram,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_converters: Mapping[str, Converter] | None = None,
    fallback: str | None = None,
    extents: Sequence[Sequence[Extent | None]] | None = None,
    states_as_input: bool = False,
) -> ImportedProgram:
    """As ``from_exported_program``, with what a caller needs to call the model as torch does.

    ``extents`` gives a variable of the caller's own for symbolic extents of the inputs.
    ``states_as_input`` makes buffers and parameters that the program changes inputs of ``main``,
    after the user's, in the order of ``mutations``.
    """
    if not isinstance(program, torch.export.ExportedProgram):
        raise IRTypeError(
            f"{SOURCE}: expected a torch.export.ExportedProgram, got {type(program).__name__}; "
            "torch.export.export(model, example_inputs) makes one"
        )
    if fallback not in (None, "torch"):
        raise IRValueError(f"{SOURCE}: fallback is 'torch' or None, got {fallback!r}")
    check_converters(custom_converters)
    converters = converters_with(custom_converters)
    refuse_lost_inputs(program)
    program = with_kept_tensors(program)
    graph_module = decomposed_one_by_one(program.graph_module, converters)
    captured = converters_as_captured(graph_module, converters)
    if captured is not None:
        converters = captured
    else:
        program = decompose(program, converters)
        graph_module = program.graph_module
        if fallback == "torch":
            missing = missing_operators(graph_module, converters)
            converters = {**torch_fallbacks({name for name, _ in missing}), **converters}
    build = _ProgramBuilder(program, graph_module, converters, keep_params_as_input, extents or ())
    build.keep_states = states_as_input
    return build.module(unwrap_unit_return_tuple, no_bind_return_tuple)


def check_converters(custom: Mapping[str, Converter] | None) -> None:
    """Raise IRTypeError for what is no dict from names of overloads to functions."""
    if custom is not None and not isinstance(custom, Mapping):
        raise IRTypeError(
            f'{SOURCE}: custom_converters: expected a dict such as {{"aten.foo.default": '
            f"function}}, got {type(custom).__name__}"
        )
    for name, function in (custom or {}).items():
        if not isinstance(name, str) or not callable(function):
            raise IRTypeError(
                f"{SOURCE}: custom_converters: expected functions by the name of an overload, got "
                f"{name!r:.60}: {type(function).__name__}"
            )
        if len(name.partition(" ")[0].split(".")) != 3:
            raise IRValueError(
                f"{SOURCE}: custom_converters: expected the name of an overload, such as "
                f'"aten.foo.default" or "mylib.foo.Tensor", got {name!r:.60}{_meant(name)}; the '
                "error about missing operators and `weft ops` give the names"
            )


def _meant(name: str) -> str:
    """The overload that the name of an operator may stand for: ``mylib.foo``, ``mylib::foo``."""
    words = name.replace("::", ".").split(".")
    return f" (did you mean {'.'.join(words)}.default?)" if len(words) == 2 else ""


def decompose(
    program: torch.export.ExportedProgram, converters: Mapping[str, Converter]
) -> torch.export.ExportedProgram:
    """The program without mutation, its operators decomposed until each has a converter.

    An operator that has one is left whole: the graph keeps ``linear`` and ``layer_norm``.
    UnsupportedError where torch would compare sizes that only the data tell.
    """
    try:
        with EXPORTING, warnings.catch_warnings(), told_shapes(), operators_listed_once():
            warnings.simplefilter("ignore")  # torch's own deprecations in its copies of itself
            return program.run_decompositions(decompositions_but(converters))
    except GuardOnDataDependentSymNode as error:
        raise UnsupportedError(
            f"decomposing the program: torch compares sizes that only the data "
            f"tell ({error.cond}); make them extents of inputs, or use "
            'torch.compile(model, backend="weft"), which splits the model there'
        ) from error


class _ProgramBuilder:
    """One import: the inputs of ``main``, then its body, then its results.

    ``graph_module`` is the program's own, or what became of it (``decomposed_one_by_one``).
    """

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        graph_module: fx.GraphModule,
        converters: Mapping[str, Converter],
        keep_params: bool,
        extents: Sequence[Sequence[Extent | None]],
    ) -> None:
        self.program = program
        self.graph_module = graph_module
        self.converters = converters
        self.keep_params = keep_params
        self.extents = extents
        self.keep_states = False
        self.symbols = SymbolTable()
        self.placeholders = {
            node.name: node for node in graph_module.graph.nodes if node.op == "placeholder"
        }

    def module(self, unwrap: bool, no_bind: bool, intermediates: bool = False) -> ImportedProgram:
        """The module with its function ``main``; ``intermediates`` are results of it too."""
        define_symbols(self.symbols, self._user_values(), self.extents)
        builder = BlockBuilder()
        inputs, user, params = self._inputs()
        attrs: dict[str, object] = {"num_input": len(user)} if self.keep_params else {}
        bounds = self._ranges()
        upper = {name: high for name, (_, high) in bounds.items() if high is not None}
        if upper:
            attrs["tir_var_upper_bound"] = upper
        states = self._changed_states(params)
        others = [var for var, _ in params if var not in states]
        guards = guards_of_sizes(self.graph_module.graph, self.symbols, bounds)
        with builder.function("main", [*user, *states, *others], attrs, pure=not guards):
            translator = GraphTranslator(builder, self.symbols, self.converters)
            translator.check_operators(self.graph_module, SOURCE)
            emit_guards(builder, guards)
            with builder.dataflow():
                refuse_results(self.graph_module, SOURCE)
                results = translator.run(self.graph_module, inputs)
                kept: list[Expr] = self._results(expect(results, list))
                if intermediates:
                    nodes = tensor_nodes(self.program)
                    kept = [expect(translator.env[node], Expr) for node in nodes]
                output = _emit_output(builder, kept, unwrap, no_bind)
            builder.emit_func_output(output)
        mod = builder.get()
        if self.keep_params:
            mod["main"] = mod["main"].with_attr("params", [value for _, value in params])
        return ImportedProgram(mod, self._input_names(), self._mutations(), bounds)

    def _user_values(self) -> list[torch.Tensor | torch.SymInt]:
        """The fake tensors and symbolic numbers of the user's inputs."""
        return [
            self.placeholders[spec.arg.name].meta.get("val")
            for spec in self.program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        ]

    def _inputs(self) -> tuple[list[Value], list[Var], list[Param]]:
        """The value of each placeholder; the user's variables; parameters with their values."""
        values: list[Value] = []
        user: list[Var] = []
        params: list[Param] = []
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                value = input_variable(self.placeholders[spec.arg.name], self.symbols)
                values.append(value)
                if isinstance(value, Var):
                    user.append(value)
            elif spec.kind is InputKind.TOKEN:
                values.append(None)
            else:
                values.append(self._stored(spec, params))
        return values, user, params

    def _stored(self, spec: InputSpec, params: list[Param]) -> Expr | ComplexTensor:
        """A parameter, buffer or constant of the program."""
        if spec.kind is InputKind.CUSTOM_OBJ:
            raise _no_tensor(spec.target or "", self.program.constants.get(spec.target))
        tensor = self.program.state_dict.get(spec.target)
        if tensor is None:
            tensor = self.program.constants[spec.target]
        is_state = self.keep_states and spec.target in self._changed()
        if is_state or (self.keep_params and spec.kind is InputKind.PARAMETER):
            if is_complex(tensor) or is_float8(tensor):
                raise UnsupportedError(
                    f"{SOURCE}: {spec.target} is of {tensor.dtype}, so it can be a constant only"
                )
            array = as_ndarray(tensor)
            var = Var(spec.arg.name, TensorStructInfo(list(array.shape), str(array.dtype)))
            params.append((var, array))
            return var
        return stored(tensor, spec.target or spec.arg.name)

    def _changed(self) -> list[str]:
        """The buffers and parameters that the program changes."""
        return [target for kind, target in self._mutations() if kind != "input"]

    def _changed_states(self, params: Sequence[Param]) -> list[Var]:
        """The inputs that are states, in the order in which their new values are returned."""
        if not self.keep_states:
            return []
        names = {spec.target: spec.arg.name for spec in self.program.graph_signature.input_specs}
        wanted = [names[target] for target in self._changed()]
        by_name = {var.name_hint: var for var, _ in params}
        return [by_name[name] for name in wanted]

    def _results(self, results: Sequence[Value]) -> list[Expr]:
        """The results that ``main`` gives."""
        specs = self.program.graph_signature.output_specs
        return [
            number_output(value)
            for value, spec in zip(results, specs, strict=True)
            if value is not None and not is_fixed(spec)
        ]

    def _input_names(self) -> tuple[str | None, ...]:
        return tuple(
            spec.arg.name
            if isinstance(
                self.placeholders[spec.arg.name].meta.get("val"), torch.Tensor | torch.SymInt
            )
            else None
            for spec in self.program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        )

    def _mutations(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (_MUTATED[spec.kind.name], spec.target)
            for spec in self.program.graph_signature.output_specs
            if spec.kind.name in _MUTATED
        )

    def _ranges(self) -> dict[str, tuple[int, int | None]]:
        """The bounds that torch.export proved or was told, by symbol; no upper one is None.

        A lower bound of 2 is what torch assumes of every extent that is not 1 in the examples. Its
        own modules take extents of 0 and 1 there, and so do those of weft.
        """
        bounds: dict[str, tuple[int, int | None]] = {}
        for symbol, limits in self.program.range_constraints.items():
            variable = self.symbols.expression(symbol) if symbol in self.symbols else None
            if isinstance(variable, TirVar):  # a symbol that was solved for has no name of its own
                high = int(limits.upper) if limits.upper.is_Integer else None
                high = None if high is None or high >= _NO_LIMIT else high
                low = int(limits.lower)
                bounds[variable.name] = (0 if low == ASSUMED_LEAST else low, high)
        return bounds


def refuse_lost_inputs(program: torch.export.ExportedProgram) -> None:
    """Raise UnsupportedError for a program of torch.func's gradients, which reads no input."""
    for tensor in program.constants.values():
        is_tensor = isinstance(tensor, torch.Tensor)
        if is_tensor and torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise UnsupportedError(
                f"{SOURCE}: torch.export loses the inputs of torch.func.grad, vjp and jacrev; "
                'use torch.compile(model, backend="weft")'
            )


def is_fixed(result: OutputSpec) -> bool:
    """Whether a result is None, a text or a fraction in every call, which no function computes.

    The caller's structure holds it.
    """
    return isinstance(result.arg, ConstantArgument) and not isinstance(result.arg.value, int)


def tensor_nodes(program: torch.export.ExportedProgram) -> list[fx.Node]:
    """The nodes of a program's graph that compute one tensor each, in order."""
    return [
        node
        for node in program.graph.nodes
        if node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor)
    ]


def import_intermediates(program: torch.export.ExportedProgram) -> ImportedProgram:
    """As ``import_exported_program`` of a decomposed program, whose ``main`` returns a tuple of
    every tensor on the way (``tensor_nodes``) instead of the results.
    """
    build = _ProgramBuilder(program, program.graph_module, converters_with(), False, ())
    return build.module(False, False, True)


def _emit_output(builder: BlockBuilder, results: list[Expr], unwrap: bool, no_bind: bool) -> Expr:
    if unwrap and len(results) == 1:
        return builder.emit_output(results[0])
    if no_bind:
        return RelaxTuple([builder.emit_output(value) for value in results])
    return builder.emit_output(RelaxTuple(results))


def _no_tensor(name: str, held: object) -> UnsupportedError:
    """The error for an object that a model uses, which is no tensor."""
    if isinstance(held, torch.Generator):
        return UnsupportedError(
            f"{SOURCE}: the model draws random numbers with a torch.Generator ({name}), which it "
            "holds; draw without generator=, or make the tensor outside of forward and pass it in"
        )
    return UnsupportedError(
        f"{SOURCE}: expected tensors only, got {name}, an object of {type(held).__name__}, which "
        "the model uses; make what it computes outside of forward and pass it in as tensors"
    )
