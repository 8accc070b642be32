"""Keys that identify models from torch, for the cache of models (``weft.driver.model_cache``).

A module is exported, as for a compilation, and its key is a digest of the exported program: of
every node with its arguments and the metadata that the importer reads, of the signature, and of the
tensors with their layouts. Nothing cheaper would do, since a module's forward pass may read
anything. There is no key if a value is not plain data, or if an operator is the user's own. The
program is kept in the request, so that it is not exported again if the key is not in the cache.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import torch
from torch import fx

from weft.driver.sources import Request
from weft.relax.frontend.dynamic_dim import hint_of, is_named_dim
from weft.relax.frontend.torch.capture import capture
from weft.relax.frontend.torch.kept_tensors import has_kept_tensors
from weft.support.config import usable_processors
from weft.support.files import open_regular

_OPERATORS: Final = frozenset({"aten", "prims", "quantized_decomposed", "higher_order"})
"""The namespaces of torch's own operators."""
_MODULES: Final = frozenset({"_operator", "math", "torch", "builtins"})
"""The modules of functions that compute with extents."""


class _Untold(Exception):  # noqa: N818 - no error: the answer is None
    """Raised if no key can identify the model."""


def key_of_module(request: Request) -> bytes | None:
    """Bytes that identify a module, its weights and its example inputs; None if nothing does."""
    if not request.has_examples:
        return None
    program = capture(request.model, request.args, request.kwargs, request.dynamic_shapes)
    request.intermediate["program"] = program
    if has_kept_tensors(request.model, program):
        return None
    try:
        arguments = _described((request.args, dict(request.kwargs), request.dynamic_shapes))
        called = repr((_called(request.model), arguments))
    except _Untold:
        return None
    return _key_of_program(program, called)


def key_of_exported(request: Request) -> bytes | None:
    """Bytes that identify an ExportedProgram; None if nothing does."""
    return _key_of_program(request.model, "")


def key_of_file(request: Request) -> bytes | None:
    """Bytes that identify a ``.pt2`` file: its contents, and its stem, which names the model."""
    path = Path(request.model)
    digest = hashlib.blake2b(repr((_surroundings(), path.stem)).encode(), digest_size=20)
    with open_regular(path) as file:
        while block := file.read(1 << 24):
            digest.update(block)
    return digest.digest()


def _key_of_program(program: torch.export.ExportedProgram, called: str) -> bytes | None:
    digest = hashlib.blake2b(digest_size=20)
    parts = (
        _surroundings(),
        called,
        repr(program.graph_signature),
        repr(program.call_spec),
        repr(program.module_call_graph),
        str(program.range_constraints),
    )
    try:
        digest.update(repr(parts).encode())
        tensors = {**program.state_dict, **program.constants}
        for path, module in program.graph_module.named_modules():
            if not isinstance(module, fx.GraphModule):
                raise _Untold
            for node in module.graph.nodes:
                digest.update(repr((path, *_of_node(node))).encode())
                if node.op == "get_attr":
                    tensors.update(_attribute(module, path, node.target))
        _update(digest, tensors)
    except (_Untold, RuntimeError, RecursionError):
        return None
    return digest.digest()


def _of_node(node: fx.Node) -> tuple[object, ...]:
    """A description of a node of a graph, with what is known about its result."""
    target = node.target if isinstance(node.target, str) else _function(node.target)
    value = _described(node.meta.get("val"))
    return node.op, node.name, target, _described(node.args), _described(node.kwargs), value


def _function(target: Any) -> str:
    """The name of one of torch's or Python's own functions; raises _Untold for any other."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
        if target.namespace in _OPERATORS:
            return f"{target.namespace}:{target}"
    elif getattr(target, "__module__", "").partition(".")[0] in _MODULES:
        return f"{target.__module__}:{target.__qualname__}"
    raise _Untold


def _attribute(module: object, path: str, target: str) -> dict[str, object]:
    """The tensor that a graph refers to, by its path; empty for a graph inside of the graph."""
    value = module
    for part in target.split("."):
        value = getattr(value, part)
    return {} if isinstance(value, fx.GraphModule) else {f"{path}:{target}": value}


def _called(model: torch.nn.Module) -> object:
    """The class of a model and the parameters of its forward pass."""
    kind = type(model)
    try:
        declared = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        declared = []
    plain = bool | int | float | str | None
    parameters = [
        (
            item.name,
            item.kind.name,
            item.default is not item.empty,
            item.default if isinstance(item.default, plain) else "no plain value",
        )
        for item in declared
    ]
    return kind.__module__, kind.__qualname__, parameters


def _surroundings() -> str:
    """The global state of torch that may change what a model computes, as text."""
    return f"{torch.__version__} {torch.get_default_dtype()} {torch.is_autocast_enabled('cpu')}"


_OF_TORCH: Final = (torch.dtype, torch.device, torch.memory_format, torch.layout)
_SYMBOLS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _described(value: object) -> object:
    """Plain data whose ``repr`` is the same in every process; raises _Untold for other values."""
    if value is None or type(value) in (bool, int, float, str, complex):
        return value
    if isinstance(value, torch.Tensor):
        return (
            "tensor",
            str(value.dtype),
            str(tuple(value.shape)),
            str(_strides(value)),
            str(value.layout),
            value.device.type,
        )
    if isinstance(value, Mapping):
        items = [(_described(key), _described(item)) for key, item in value.items()]
        return "mapping", type(value).__qualname__, items
    if isinstance(value, tuple | list):
        return "sequence", type(value).__qualname__, [_described(item) for item in value]
    if isinstance(value, slice):
        return "slice", _described((value.start, value.stop, value.step))
    if isinstance(value, _OF_TORCH + _SYMBOLS):
        return type(value).__name__, str(value)
    if isinstance(value, fx.Node):
        return "node", value.name
    if value is Ellipsis:
        return ("ellipsis",)
    if is_named_dim(value) or hint_of(value):
        return "dimension", str(value), getattr(value, "__name__", "")
    raise _Untold


def _strides(tensor: torch.Tensor) -> object:
    return tuple(tensor.stride()) if tensor.layout is torch.strided else None


_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)
"""Classes of tensors that nothing but their elements defines."""


def _update(digest: hashlib.blake2b, tensors: Mapping[str, torch.Tensor]) -> None:
    """Add names, types, layouts and contents of tensors to a digest, and which share memory.

    Threads share in the contents, which may be gigabytes.
    """
    owners: dict[int, str] = {}
    for tensor in tensors.values():
        if type(tensor) not in _PLAIN or tensor.layout is not torch.strided:
            raise _Untold
    names = sorted(tensors)
    with ThreadPoolExecutor(usable_processors()) as threads:
        contents = list(threads.map(_content, [tensors[name] for name in names]))
    for name, content in zip(names, contents, strict=True):
        tensor = tensors[name]
        memory = tensor.untyped_storage().data_ptr()
        owner = owners.setdefault(memory, name) if memory else name
        flags = (tensor.is_conj(), tensor.is_neg(), tensor.storage_offset(), owner)
        digest.update(repr((name, _described(tensor), flags)).encode() + content)


def _content(tensor: torch.Tensor) -> bytes:
    """A digest of the elements of a tensor in order."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    content = memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else b""
    return hashlib.blake2b(content, digest_size=20).digest()
