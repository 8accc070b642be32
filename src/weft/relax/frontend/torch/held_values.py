"""The tensors and numbers that modules hold, in attributes, containers and objects, by paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import torch

from weft.relax.frontend.torch.untouched import attributes_of

SYMBOLIC: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)
_VALUES: Final = (torch.Tensor, bool, int, float, type(None), *SYMBOLIC)
_SEQUENCES: Final = (list, tuple, deque)
_MOST: Final = 100_000
"""Containers and objects that are looked into, those nearest to the modules first."""


def held_tensors(modules: Mapping[str, torch.nn.Module]) -> dict[str, torch.Tensor]:
    """The buffers and plain tensors of modules, and those in containers and objects, by paths."""
    values = held_values(modules)
    return {path: value for path, value in values.items() if isinstance(value, torch.Tensor)}


def held_values(modules: Mapping[str, torch.nn.Module]) -> dict[str, object]:
    """The same, with numbers and None.

    >>> layer = torch.nn.Flatten()
    >>> layer.kept = [1, {"scale": None}]
    >>> values = held_values({"flat": layer})
    >>> values["flat.start_dim"], values["flat.kept[0]"], values["flat.kept[1]['scale']"]
    (1, 1, None)
    """
    seen = {id(module) for module in modules.values()}
    values: dict[str, object] = {}
    left: deque[tuple[str, object]] = deque(
        (f"{path}.{name}" if path else name, value)
        for path, module in modules.items()
        for name, value in {**_plain(module), **module._buffers}.items()
    )
    while left and len(seen) < _MOST:
        path, value = left.popleft()
        if isinstance(value, _VALUES):
            values[path] = value
        elif id(value) not in seen:
            parts = _parts(path, value)
            if parts:
                seen.add(id(value))
            left.extend(parts)
    return values


def _plain(module: torch.nn.Module) -> dict[str, object]:
    own = ("_buffers", "_parameters", "_modules")
    return {name: value for name, value in vars(module).items() if name not in own}


def _parts(path: str, value: object) -> list[tuple[str, object]]:
    """What a container or an object of the user's holds."""
    if isinstance(value, dict):
        return [(f"{path}[{key!r}]", item) for key, item in dict.items(value)]
    if isinstance(value, _SEQUENCES):
        base: Any = next(kind for kind in _SEQUENCES if isinstance(value, kind))
        return [(f"{path}[{place}]", item) for place, item in enumerate(base.__iter__(value))]
    return [(f"{path}.{name}", item) for name, item in attributes_of(value).items()]
