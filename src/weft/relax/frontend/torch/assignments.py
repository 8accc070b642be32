"""Tensors that take the place of others which a model keeps from call to call.

torch.export forgets what a model assigns (``self.mean = self.mean * 0.9 + x``), unless that is a
buffer of the outermost module, and what it puts into a list, a dict or an object in an attribute
(``self.states[i] = h``). Here the value is written into the tensor that stood there, once the model
returns, so the compiled model changes what it keeps as the model itself would.

A first trace tells what is assigned; where the program reads such a tensor, a second one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import torch
from torch.export.graph_signature import InputKind

from weft.relax.frontend.torch.forgotten import changed_values
from weft.relax.frontend.torch.held_values import held_tensors, held_values
from weft.relax.frontend.torch.kept_tensors import copied_graph, written
from weft.relax.frontend.torch.untouched import noted_state
from weft.support.errors import UnsupportedError

_HELD: Final = (InputKind.CONSTANT_TENSOR, InputKind.BUFFER)
Hook = Callable[..., None]


class Assignments:
    """What a trace puts in the places of the tensors that a model holds, by their paths.

    ``others`` are the paths of what else it changes, which programs do not follow.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules()) if isinstance(model, torch.nn.Module) else {}
        self.kept = held_tensors(self.modules)
        self.assigned: dict[str, torch.Tensor] = {}
        self.others: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within, what a call of the model assigns is noted."""
        before: dict[str, object] = {}

        def note(*_: object) -> None:
            before.update(held_values(self.modules))

        def compare(*_: object) -> None:
            after = held_values(self.modules)
            self.others = changed_values(before, after)
            self.assigned = {
                path: value
                for path, tensor in self.kept.items()
                if isinstance(value := after.get(path), torch.Tensor)
                and not _is_one_of(value, tensor, before.get(path))
            }
            for name in [name for name in self.model._buffers if name in self.assigned]:
                # torch copies from the node of the value, one buffer after the other: that must
                # be neither an input nor another buffer
                setattr(self.model, name, self.assigned[name].clone())

        with _hooked(self.model, note, compare):
            yield

    def changed(self, program: torch.export.ExportedProgram) -> list[str]:
        """What the program reads and the trace changed, but not the program, or only a constant.

        Raises UnsupportedError for one that got a tensor of another shape, or whose tensor stands
        elsewhere, too.
        """
        if not self.modules:
            return []
        read = self._read(program)
        constants = written(program, InputKind.CONSTANT_TENSOR)
        paths = [path for path in sorted(read) if self._is_assigned(path)]
        for path in paths:
            self._check_alone(path)
        return sorted({*paths, *(constants & read)})

    def _read(self, program: torch.export.ExportedProgram) -> set[str]:
        """The paths of the tensors that a program reads, without the buffers that it writes."""
        live = copied_graph(program.graph_module)
        live.eliminate_dead_code()
        inputs = {node.name for node in live.nodes if node.users}
        paths: dict[int, set[str]] = {}
        for path, tensor in self.kept.items():
            paths.setdefault(id(tensor), set()).add(path)
        read: set[str] = set()
        for spec in program.graph_signature.input_specs:
            if spec.kind in _HELD and spec.arg.name in inputs and spec.target is not None:
                tensor = program.constants.get(spec.target)
                read |= {spec.target} & self.kept.keys() | paths.get(id(tensor), set())
        return read - written(program, InputKind.BUFFER)

    def _is_assigned(self, path: str) -> bool:
        """Whether a tensor of this type was assigned: another type is a cast for a call."""
        new, old = self.assigned.get(path), self.kept[path]
        if new is None or new.dtype != old.dtype:
            return False
        if new.shape != old.shape:
            raise UnsupportedError(
                f"from_exported_program: the model keeps {path} from call to call and changes its "
                f"shape from {list(old.shape)} to {list(new.shape)}; make it an input and a result "
                "of forward"
            )
        return True

    def _check_alone(self, path: str) -> None:
        """Raise UnsupportedError if what stands at a path stands elsewhere, too."""
        tensor = self.kept[path]
        held = {**self.kept, **dict(self.model.named_parameters())}
        other = next((name for name in held if name != path and held[name] is tensor), None)
        if other is not None:
            raise UnsupportedError(
                f"from_exported_program: the model puts another tensor in the place of {path}, "
                f"which is {other}, too; give each a tensor of its own (.clone())"
            )

    @contextmanager
    def written_back(self, changed: Sequence[str]) -> Iterator[None]:
        """Within, attributes among these are buffers, and a trace writes what it assigns."""
        before: dict[str, torch.Tensor] = {}
        states = []

        def note(*_: object) -> None:
            before.update(held_tensors(self.modules))
            states.append(noted_state(self.model))

        def write(*_: object) -> None:
            after = held_tensors(self.modules)
            values = {
                path: after[path].clone()  # it may be what stood at another place
                for path in dict.fromkeys([*changed, *self.model._buffers])
                if path in after and not _is_one_of(after[path], before.get(path))
            }
            states.pop().restore()
            with torch.no_grad():
                for path, value in values.items():
                    before[path].copy_(value)
            for path in [path for path in values if path in self.model._buffers]:
                setattr(self.model, path, before[path])  # torch copies what was assigned last

        with self._as_buffers(changed), _hooked(self.model, note, write):
            yield

    @contextmanager
    def _as_buffers(self, changed: Sequence[str]) -> Iterator[None]:
        """Within, those of these that are attributes of modules are buffers."""
        plain = [
            (module, name, tensor)
            for module, name, tensor in map(self._attribute, changed)
            if module is not None and name not in module._buffers
        ]
        for module, name, tensor in plain:
            delattr(module, name)
            module.register_buffer(name, tensor, persistent=False)
        try:
            yield
        finally:
            for module, name, tensor in plain:
                delattr(module, name)
                setattr(module, name, tensor)

    def _attribute(self, path: str) -> tuple[torch.nn.Module | None, str, torch.Tensor]:
        """The module whose attribute a path is, and its name; None if it leads further."""
        owner, _, name = path.rpartition(".")
        module = self.modules.get(owner)
        is_attribute = module is not None and name in {**vars(module), **module._buffers}
        return module if is_attribute else None, name, self.kept[path]


def _is_one_of(value: torch.Tensor, *others: object) -> bool:
    return any(value is other for other in others)


@contextmanager
def _hooked(model: object, before: Hook, after: Hook) -> Iterator[None]:
    """Within, functions are called before and after each call of a model."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        yield  # torch.export takes neither
        return
    hooks = [model.register_forward_pre_hook(before), model.register_forward_hook(after)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
