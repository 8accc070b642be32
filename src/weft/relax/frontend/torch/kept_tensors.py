"""Tensors that a model keeps from call to call in ways that torch.export does not follow.

A cache of keys and values is often a plain attribute, or lies in a list or an object of its own.
torch.export takes such a tensor for a constant, to which a program must not write; here it becomes
a buffer of the program. And torch.export forgets what is assigned to an attribute (``self.mean =
self.mean * 0.9 + x``), unless that is a buffer of the outermost module; here the value is written
into the tensor that was there, once the model returns. So the compiled model changes what it keeps
as the model itself would.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from torch import fx
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec

from weft.support.errors import UnsupportedError


@dataclass
class Kept:
    """A tensor in an attribute of a module.

    ``held`` is what stands for it in a trace, ``assigned`` what the trace puts in its place.
    """

    module: torch.nn.Module
    name: str
    tensor: torch.Tensor
    held: torch.Tensor | None = None
    assigned: torch.Tensor | None = None

    def note(self, value: torch.Tensor) -> None:
        """Note an assignment, which comes next."""
        if self.held is None:
            self.held = getattr(self.module, self.name)
        if value is not self.held and value is not self.tensor:
            self.assigned = value

    def is_assigned(self, path: str) -> bool:
        """Whether a tensor of this type was assigned: another type is a cast for a call.

        Raises UnsupportedError for one of another shape.
        """
        new, old = self.assigned, self.tensor
        if new is None or new.dtype != old.dtype:
            return False
        if new.shape != old.shape:
            raise UnsupportedError(
                f"from_exported_program: the model keeps {path} from call to call and changes its "
                f"shape from {list(old.shape)} to {list(new.shape)}; make it an input and a result "
                "of forward"
            )
        return True

    def write_back(self) -> None:
        """Write what was assigned into the tensor that stood there, and put that back."""
        if self.held is not None and self.assigned is not None:
            with torch.no_grad():
                self.held.copy_(self.assigned)
            setattr(self.module, self.name, self.held)
        self.held = self.assigned = None


_HELD: Final = (InputKind.CONSTANT_TENSOR, InputKind.BUFFER)


def written(program: torch.export.ExportedProgram, *kinds: InputKind) -> frozenset[str]:
    """The names of the constants or buffers to which a program writes."""
    held = {
        spec.arg.name: spec.target
        for spec in program.graph_signature.input_specs
        if spec.kind in kinds and spec.target is not None
    }
    roots: dict[fx.Node, fx.Node] = {}
    changed: set[fx.Node] = set()
    for node in program.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        schema = node.target._schema
        for place, argument in enumerate(schema.arguments):
            given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            if argument.alias_info is None or not isinstance(given, fx.Node):
                continue
            root = roots.setdefault(node, roots.get(given, given))
            if argument.alias_info.is_write:
                changed.add(root)
    return frozenset(held[node.name] for node in changed if node.name in held)


def has_kept_tensors(model: torch.nn.Module, program: torch.export.ExportedProgram) -> bool:
    """Whether a model's program changes tensors that the model cannot be asked for by name."""
    names = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    specs = program.graph_signature.input_specs
    return bool(written(program, InputKind.CONSTANT_TENSOR)) or any(
        spec.kind is InputKind.BUFFER and spec.target not in names for spec in specs
    )


def with_kept_tensors(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with constants to which it writes as buffers; itself if there is none.

    A constant that is a buffer's own tensor becomes that buffer.
    """
    changing = written(program, InputKind.CONSTANT_TENSOR)
    if not changing:
        return program
    before = program.graph_signature
    same = _buffers_of_constants(program)
    specs = [
        InputSpec(InputKind.BUFFER, spec.arg, spec.target, persistent=False)
        if spec.kind is InputKind.CONSTANT_TENSOR and spec.target in changing
        else spec
        for spec in before.input_specs
        if spec.arg.name not in same
    ]
    changed = copy.copy(program)
    changed._graph_signature = ExportGraphSignature(specs, list(before.output_specs))
    changed._graph_module = _merged(program.graph_module, same)
    return changed


def _buffers_of_constants(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Placeholders of constants -> the placeholders of the buffers whose memory they are."""
    held = {**program.state_dict, **program.constants}
    buffers: dict[object, str] = {}
    same: dict[str, str] = {}
    for spec in program.graph_signature.input_specs:
        tensor = held.get(spec.target)
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            memory = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
            if spec.kind is InputKind.BUFFER:
                buffers[memory] = spec.arg.name
            elif spec.kind is InputKind.CONSTANT_TENSOR and memory in buffers:
                same[spec.arg.name] = buffers[memory]
    return same


def _merged(graph_module: fx.GraphModule, same: Mapping[str, str]) -> fx.GraphModule:
    """The graph in which readers of some placeholders read others."""
    if not same:
        return graph_module
    graph = copied_graph(graph_module)
    inputs = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    for name, other in same.items():
        inputs[name].replace_all_uses_with(inputs[other])
        graph.erase_node(inputs[name])
    return fx.GraphModule(graph_module, graph)


def copied_graph(graph_module: fx.GraphModule) -> fx.Graph:
    """A graph of the same nodes under the same names."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    for node, original in zip(graph.nodes, graph_module.graph.nodes, strict=True):
        node.name = original.name  # torch calls the copy of an input named as a builtin otherwise
    return graph


class Assignments:
    """What a trace assigns to attributes of a model's modules that hold tensors, by their paths."""

    def __init__(self, model: torch.nn.Module) -> None:
        modules = dict(model.named_modules()) if isinstance(model, torch.nn.Module) else {}
        self.kept = {
            f"{path}.{name}" if path else name: Kept(module, name, value)
            for path, module in modules.items()
            for name, value in {**vars(module), **module._buffers}.items()
            if isinstance(value, torch.Tensor)
        }
        self._by_place = {(id(item.module), item.name): item for item in self.kept.values()}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within, assignments are noted: torch.export puts back what the attributes held."""
        assign = torch.nn.Module.__setattr__

        def noting(module: torch.nn.Module, name: str, value: object) -> None:
            item = self._by_place.get((id(module), name))
            if item is not None and isinstance(value, torch.Tensor):
                item.note(value)
            assign(module, name, value)

        torch.nn.Module.__setattr__ = noting
        try:
            yield
        finally:
            torch.nn.Module.__setattr__ = assign

    def changed(self, program: torch.export.ExportedProgram) -> list[Kept]:
        """What the program reads and the trace changed, but not the program, or only a constant.

        Raises UnsupportedError for an attribute that got a tensor of another shape.
        """
        live = copied_graph(program.graph_module)
        live.eliminate_dead_code()
        inputs = {node.name for node in live.nodes if node.users}
        specs = program.graph_signature.input_specs
        read = {item.target for item in specs if item.kind in _HELD and item.arg.name in inputs}
        constants = written(program, InputKind.CONSTANT_TENSOR)
        buffers = written(program, InputKind.BUFFER)
        changed = []
        for path in sorted(read & self.kept.keys() - buffers):
            item = self.kept[path]
            if item.is_assigned(path) or path in constants:
                changed.append(item)
        return changed

    @contextmanager
    def written_back(self, model: torch.nn.Module, changed: Sequence[Kept]) -> Iterator[None]:
        """Within, these attributes are buffers, and a trace writes to them what it assigns."""

        def write(*_: object) -> None:
            for item in changed:
                item.write_back()

        plain = [item for item in changed if item.name not in item.module._buffers]
        for item in changed:
            item.assigned = item.held = None
        hook = model.register_forward_hook(write)
        try:
            with _as_buffers(plain), self.noted():
                yield
        finally:
            hook.remove()


@contextmanager
def _as_buffers(kept: Sequence[Kept]) -> Iterator[None]:
    """Within, these attributes are buffers."""
    for item in kept:
        delattr(item.module, item.name)
        item.module.register_buffer(item.name, item.tensor, persistent=False)
    try:
        yield
    finally:
        for item in kept:
            delattr(item.module, item.name)
            setattr(item.module, item.name, item.tensor)
