"""Models from torch for ``weft.compile``: modules, exported programs, ``.pt2`` files.

``torch.export`` captures a module in its current state. The signature of the compiled model is made
from what the importer (``weft.relax.frontend.torch``) says about the program and from torch's
record of the structure of a call. This module is loaded with the first model from torch.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, OutputKind
from torch.utils import _pytree as pytree

from weft.driver.sources import Imported, Request
from weft.relax.frontend.torch.capture import EXPORTING, capture
from weft.relax.frontend.torch.dim_names import named_extents
from weft.relax.frontend.torch.exported_program import (
    ImportedProgram,
    import_exported_program,
    is_fixed,
)
from weft.runtime.model.signature import (
    ABSENT,
    Parameter,
    Signature,
    State,
    Tree,
    places,
    tree_of,
)
from weft.support.errors import IRValueError, UnsupportedError

_OPTIONS: Final = frozenset({"custom_converters", "fallback"})


def import_torch_module(request: Request) -> Imported:
    """Import a ``torch.nn.Module``; raises IRValueError if there are no example inputs."""
    model = request.model
    if not request.has_examples:
        raise IRValueError(
            f"compile: a {type(model).__name__} needs example_inputs, whose shapes and types it is "
            "compiled for: weft.compile(model, (tensor,)); () if it takes none"
        )
    program = request.intermediate.pop("program", None)
    if program is None:
        program = capture(model, request.args, request.kwargs, request.dynamic_shapes)
    tensors = {
        **program.constants,
        **dict(model.named_parameters()),
        **dict(model.named_buffers()),
    }
    return _imported(program, request, type(model).__name__, tensors, model.forward)


def import_exported(request: Request) -> Imported:
    """Import a ``torch.export.ExportedProgram``, which has its own example inputs."""
    return _of_program(request.model, request, "main")


def import_pt2(request: Request) -> Imported:
    """Import a ``.pt2`` file that ``torch.export.save`` wrote."""
    path = Path(request.model)
    return _of_program(load_program(path), request, path.stem)


def load_program(path: Path) -> torch.export.ExportedProgram:
    """The program in a ``.pt2`` file; raises IRValueError for a file that torch cannot read."""
    with EXPORTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about its own file format
        try:
            return torch.export.load(str(path))
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise IRValueError(
                f"compile: {path.name} is no program that torch.export.save wrote: {reason[:160]}"
            ) from error


def _of_program(program: torch.export.ExportedProgram, request: Request, name: str) -> Imported:
    if request.dynamic_shapes is not None:
        raise IRValueError(
            "compile: an exported program has its dynamic dimensions already; give dynamic_shapes "
            "to torch.export.export"
        )
    return _imported(program, request, name, {**program.state_dict, **program.constants}, None)


def _imported(
    program: torch.export.ExportedProgram,
    request: Request,
    name: str,
    tensors: Mapping[str, torch.Tensor],
    forward: Callable[..., object] | None,
) -> Imported:
    request.check_options("a model from torch", _OPTIONS)
    names = list(inspect.signature(forward).parameters) if forward is not None else ()
    extents = named_extents(request.args, request.kwargs, request.dynamic_shapes, names)
    imported = import_exported_program(
        program, states_as_input=True, extents=extents, **request.options
    )
    call = _Call(program, imported)
    parameters = call.parameters(forward)
    inputs = [""] * call.count
    for parameter in parameters:
        for index, place in places(parameter.tree, parameter.name):
            inputs[index] = place
    states, written = call.changes()
    ranges = [(symbol, low, high) for symbol, (low, high) in sorted(imported.ranges.items())]
    signature = Signature(
        name,
        tuple(parameters),
        (*inputs, *[state.name for state in states]),
        call.result(),
        ranges=tuple(ranges),
        states=states,
        written=written,
        source="torch",
        unpacked=True,
    )
    return Imported(imported.mod, signature, [tensors[state.name].detach() for state in states])


class _Place:
    """A placeholder for a tensor while a nested structure is rebuilt."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Call:
    """The structure of one program's call, over the inputs and outputs of ``main``."""

    def __init__(self, program: torch.export.ExportedProgram, imported: ImportedProgram) -> None:
        self.found = imported
        self.spec_in, self.spec_out = program.call_spec.in_spec, program.call_spec.out_spec
        self.names = list(program.module_call_graph[0].signature.forward_arg_names or ())
        graph = program.graph_signature
        self.inputs: list[Tree] = []
        self.count = 0
        kept = [item for item in graph.input_specs if item.kind.name == "USER_INPUT"]
        for name, spec in zip(imported.inputs, kept, strict=True):
            if name is None:
                self.inputs.append(("value", getattr(spec.arg, "value", None)))
            else:
                self.inputs.append(("leaf", self.count))
                self.count += 1
        self.outputs = list(self._outputs(graph))

    def _outputs(self, graph: ExportGraphSignature) -> Iterator[Tree]:
        """The trees of the results, after skipping the tensors that the call changes."""
        number = len(self.found.mutations)
        for spec in graph.output_specs:
            if spec.kind is not OutputKind.USER_OUTPUT:
                continue
            if isinstance(spec.arg, ConstantArgument) and is_fixed(spec):
                yield ("value", spec.arg.value)
            else:
                yield ("leaf", number)
                number += 1

    def parameters(self, forward: Callable[..., object] | None) -> list[Parameter]:
        """The parameters of the call, in the order in which the model declares them."""
        args, kwargs = _unflattened(self.spec_in, "argument")
        positional = [self.tree(item, "argument") for item in args]
        named = {key: self.tree(item, "argument") for key, item in kwargs.items()}
        declared = _declared(forward)
        if declared is None:
            return self._from_names(positional, named)
        return _ordered(declared, positional, named)

    def _from_names(self, positional: list[Tree], named: dict[str, Tree]) -> list[Parameter]:
        names = [*self.names, *[f"arg{i}" for i in range(len(self.names), len(positional))]]
        parameters = [Parameter(name, item) for name, item in zip(names, positional, strict=False)]
        return [*parameters, *[Parameter(key, item, "keyword") for key, item in named.items()]]

    def tree(self, structure: object, what: str) -> Tree:
        """The tree for a structure of placeholders."""
        leaves = self.inputs if what == "argument" else self.outputs

        def leaf(item: object) -> Tree:
            if isinstance(item, _Place):
                return leaves[item.index]
            raise UnsupportedError(
                f"compile: {what}: {type(item).__name__} has a structure that only torch knows; "
                "give a model whose arguments and results are tensors, tuples, lists, dicts, named "
                "tuples or data classes"
            )

        return tree_of(structure, leaf)

    def result(self) -> Tree:
        """The tree of the model's result."""
        return self.tree(_unflattened(self.spec_out, "result"), "result")

    def changes(self) -> tuple[tuple[State, ...], tuple[tuple[int, int], ...]]:
        """(tensors of the model that a call changes, inputs that a call changes)."""
        states: list[State] = []
        written: list[tuple[int, int]] = []
        names = [name for name in self.found.inputs if name is not None]
        for output, (kind, target) in enumerate(self.found.mutations):
            if kind == "input":
                written.append((names.index(target), output))
            else:
                states.append(State(target, self.count + len(states), output))
        return tuple(states), tuple(written)


def _unflattened(spec: pytree.TreeSpec, what: str) -> Any:
    """The nested structure of a call, with a placeholder for each leaf."""
    try:
        return pytree.tree_unflatten([_Place(i) for i in range(spec.num_leaves)], spec)
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UnsupportedError(
            f"compile: the structure of a {what} cannot be rebuilt: {str(error)[:160]}"
        ) from error


def _declared(forward: Callable[..., object] | None) -> list[inspect.Parameter] | None:
    """The parameters of a model's ``forward``; None if they are not known."""
    if forward is None:
        return None
    try:
        return list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return None


def _ordered(
    declared: Sequence[inspect.Parameter], positional: list[Tree], named: dict[str, Tree]
) -> list[Parameter]:
    """Parameters in the order in which the model declares them."""
    parameters: list[Parameter] = []
    left, keywords = list(positional), dict(named)
    for item in declared:
        if item.kind is item.VAR_POSITIONAL:
            parameters += [
                Parameter(f"{item.name}[{i}]", x, "position") for i, x in enumerate(left)
            ]
            left = []
        elif item.kind is item.VAR_KEYWORD:
            parameters += [Parameter(key, tree, "keyword") for key, tree in keywords.items()]
            keywords = {}
        else:
            tree = ABSENT
            if left and item.kind is not item.KEYWORD_ONLY:
                tree = left.pop(0)
            elif item.name in keywords:
                tree = keywords.pop(item.name)
            parameters.append(Parameter(item.name, *_declared_tree(item, tree)))
    return parameters


def _declared_tree(item: inspect.Parameter, tree: Tree) -> tuple[Tree, str, Tree | None]:
    """(tree of a parameter, how it is passed, its default value as a tree or None)."""
    by = "keyword" if item.kind is item.KEYWORD_ONLY else "either"
    by = "position" if item.kind is item.POSITIONAL_ONLY else by
    default = item.default
    is_plain = default is None or isinstance(default, bool | int | float | str)
    if default is item.empty or not is_plain:
        return tree, by, ABSENT if tree == ABSENT else None
    value: Tree = ("value", default)
    if tree == ABSENT:
        return value, by, value
    if tree[0] != "value":
        return tree, by, None  # the default is no tensor, but the example input is
    return tree, by, value
