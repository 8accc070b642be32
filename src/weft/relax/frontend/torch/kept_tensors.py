"""Tensors that a model keeps from call to call in ways that torch.export does not follow.

A cache of keys and values is often a plain attribute, or lies in a list or an object of its own.
torch.export takes such a tensor for a constant, to which a program must not write; here it becomes
a buffer of the program. ``assignments.py`` is about tensors that take the place of others.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import fx
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec


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
