"""What tells one model from torch from another, for the cache of models (weft.driver.model_cache).

Of a module, ``torch.fx`` traces the forward pass in a twentieth of the time that ``torch.export``
takes. The text of that trace, the plain attributes of its leaf modules, the tensors, and the files
of the model's own classes and of all that is loaded from their packages tell the model. A module
that cannot be traced so, or holds what is no plain value (a hook, a function), is exported, and the
exported program is digested instead; it is not exported again where that is not found.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import fx

from weft.driver.sources import Request
from weft.relax.frontend.torch.capture import EXPORTING, capture

_HOOKS: Final = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
_TABLES: Final = frozenset({
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", *_HOOKS,
    "_is_full_backward_hook", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
})  # fmt: skip
"""Attributes of every module that are looked at otherwise, or do not touch the forward pass."""


class _Untold(Exception):  # noqa: N818 - no error: the answer is None
    """The key cannot tell this model."""


def key_of_module(request: Request) -> bytes | None:
    """Bytes that tell a module, its weights and its example inputs; None where that fails."""
    if not request.has_examples:
        return None
    try:
        with EXPORTING:  # a trace changes torch.nn.Module and the model for a while
            return _key_of_trace(request)
    except (_Untold, TypeError, RuntimeError):
        pass  # torch.export takes more than a trace does, and says what is wrong with a model
    program = capture(request.model, request.args, request.kwargs, request.dynamic_shapes)
    request.found["program"] = program
    described = _key_of_program(program)
    called = f"{_called(request.model)}{request.dynamic_shapes}"
    return None if described is None else called.encode() + described


def _key_of_trace(request: Request) -> bytes:
    """The key without torch.export; _Untold where a trace does not tell the model."""
    digest = hashlib.blake2b(digest_size=20)
    model = request.model
    digest.update(_surroundings().encode())
    digest.update(_traced(request).encode())
    digest.update(repr(_described((request.args, dict(request.kwargs)))).encode())
    digest.update(repr(_described(request.dynamic_shapes)).encode())
    for line in sorted(_class_files(model)):
        digest.update(line.encode())
    _update(digest, {**dict(model.named_parameters()), **dict(model.named_buffers())})
    return digest.digest()


def key_of_exported(request: Request) -> bytes | None:
    """Bytes that tell an ExportedProgram."""
    return _key_of_program(request.model)


def _key_of_program(program: Any) -> bytes | None:
    digest = hashlib.blake2b(_surroundings().encode(), digest_size=20)
    try:
        digest.update(f"{program}{program.call_spec}{program.module_call_graph}".encode())
        _update(digest, {**program.state_dict, **program.constants})
    except (_Untold, RuntimeError):
        return None
    return digest.digest()


def key_of_file(request: Request) -> bytes | None:
    """Bytes that tell a ``.pt2`` file; its stem names the model."""
    path = Path(request.model)
    digest = hashlib.blake2b(f"{_surroundings()}{path.stem}".encode(), digest_size=20)
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            digest.update(block)
    return digest.digest()


def _called(model: Any) -> str:
    """How a model is called: its class and the parameters of its forward pass."""
    kind = type(model)
    try:
        declared = str(inspect.signature(model.forward))
    except (TypeError, ValueError):
        declared = ""
    return f"{kind.__module__}.{kind.__qualname__}{declared}"


def _surroundings() -> str:
    """What of torch's own state may change what a model computes."""
    return f"{torch.__version__}{torch.get_default_dtype()}{torch.is_autocast_enabled('cpu')}"


def _traced(request: Request) -> str:
    """The text of the forward pass with the plain attributes of the leaf modules."""
    model = request.model
    for module in model.modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise _Untold
        if any(getattr(module, table, None) for table in _HOOKS):
            raise _Untold
        if any(isinstance(value, torch.Tensor) for value in vars(module).values()):
            raise _Untold  # no buffer: a trace would change it where the model does
    tracer = _Tracer()
    before = [(item, dict(vars(item)), dict(item._buffers)) for item in model.modules()]
    try:
        graph = tracer.trace(model, concrete_args=_concrete(model, request))
        return _text_of(tracer, graph, model)  # while constants of the trace are attributes
    except _Untold:
        raise
    except Exception as error:  # user code ran on proxies: anything
        raise _Untold from error
    finally:  # what forward assigned (self.calls += 1) is a proxy
        for item, values, buffers in before:
            vars(item).clear()
            vars(item).update(values)
            item._buffers.update(buffers)


def _text_of(tracer: fx.Tracer, graph: fx.Graph, model: Any) -> str:
    """The graph, what it calls, and the attributes of its leaf modules."""
    known = {*dict(model.named_parameters()), *dict(model.named_buffers())}
    lines = [str(graph), _called(model)]
    for node in graph.nodes:
        if node.op == "call_module":
            lines.append(_leaf(model.get_submodule(node.target)))
        elif node.op == "get_attr" and node.target not in known:
            lines.append(_attribute(tracer.root, node.target))
        elif node.op == "call_function":
            lines.append(f"{node.target.__module__}.{node.target.__qualname__}")
        lines.append(repr(_described((node.args, node.kwargs))))
    return "\n".join(lines)


class _Tracer(fx.Tracer):
    """Buffers are recorded, not touched: a model that counts its calls does not count this one."""

    proxy_buffer_attributes = True


def _concrete(model: Any, request: Request) -> dict[str, Any]:
    """The arguments that are no tensors: they choose the way that the forward pass takes."""
    parameters = inspect.signature(model.forward).parameters.values()
    if any(item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in parameters):
        raise _Untold
    names = [item.name for item in parameters]
    given = {**dict(zip(names, request.args, strict=False)), **request.kwargs}
    concrete = {}
    for item in parameters:
        value = given.get(item.name, item.default)
        if value is not item.empty and not _has_tensor(value):
            concrete[item.name] = value
    return concrete


def _has_tensor(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_tensor(item) for item in value.values())
    if isinstance(value, tuple | list):
        return any(_has_tensor(item) for item in value)
    return isinstance(value, torch.Tensor)


def _leaf(module: Any) -> str:
    """A leaf module: its class and its plain attributes."""
    values = {k: v for k, v in vars(module).items() if k not in _TABLES}
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}{_described(values)}"


def _attribute(root: Any, target: str) -> str:
    """A tensor that the trace refers to, by its content."""
    for part in target.split("."):
        root = getattr(root, part)
    if not isinstance(root, torch.Tensor):
        raise _Untold
    digest = hashlib.blake2b(digest_size=20)
    _update(digest, {target: root})
    return digest.hexdigest()


def _described(value: Any) -> Any:
    """Plain data of which ``repr`` is the same in every process; _Untold for what is none."""
    if value is None or isinstance(value, bool | int | float | str | complex):
        return value
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.device.type)
    if isinstance(value, Mapping):
        return (
            type(value).__qualname__,
            [(_described(key), _described(item)) for key, item in value.items()],
        )
    if isinstance(value, tuple | list):
        return (type(value).__qualname__, [_described(item) for item in value])
    if isinstance(value, slice):
        return ("slice", _described((value.start, value.stop, value.step)))
    if isinstance(value, torch.dtype | torch.device | torch.memory_format | torch.layout):
        return str(value)
    if isinstance(value, fx.Node):
        return value.name
    if value is Ellipsis:
        return "..."
    if isinstance(value, torch.export.Dim | type(torch.export.Dim.AUTO)):
        return str(value)
    raise _Untold


def _class_files(model: Any) -> Iterator[str]:
    """Name, size and date of the files that the model's classes and their packages come from."""
    packages = set()
    for module in model.modules():
        kind = type(module)
        package = kind.__module__.partition(".")[0]
        if package != "torch":
            packages.add(package)
    for package in packages:
        loaded = [name for name in list(sys.modules) if name.partition(".")[0] == package]
        files = {getattr(sys.modules.get(name), "__file__", None) for name in loaded} - {None}
        if not files:
            raise _Untold  # typed in at a prompt: the text is nowhere
        for file in files:
            try:
                status = os.stat(str(file))
            except OSError as error:
                raise _Untold from error
            yield f"{file}:{status.st_size}:{status.st_mtime_ns}\n"


def _update(digest: Any, tensors: Mapping[str, Any]) -> None:
    """Add names, types, shapes and content of tensors."""
    for name in sorted(tensors):
        tensor = tensors[name]
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            raise _Untold
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        if flat.numel():
            digest.update(memoryview(flat.view(torch.uint8).numpy()))
