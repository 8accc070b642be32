"""The names that a user gave to dynamic dimensions (``torch.export.Dim("batch")``).

An ExportedProgram has lost them: its symbols are torch's own (``s31``). So they are read from the
``dynamic_shapes`` that it was captured with, along the flat inputs of the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from weft.tir.expr import SizeVar, Var

Extents = list[Var | None]


def named_extents(
    args: Sequence[object],
    kwargs: Mapping[str, object],
    dynamic_shapes: object,
    names: Sequence[str],
) -> list[Extents]:
    """For each leaf of the call's arguments, in order, a variable for each axis that has a name.

    ``names`` are those of the positional arguments.
    """
    variables: dict[str, Var] = {}
    leaves: list[Extents] = []
    specs = specs_of(names, args, kwargs, dynamic_shapes)
    for value, spec in zip([*args, *kwargs.values()], specs, strict=True):
        _collect(value, spec, variables, leaves)
    return leaves


def specs_of(
    names: Sequence[str],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    dynamic_shapes: object,
) -> list[object]:
    """What ``dynamic_shapes`` says of each argument: those by position, then those by name."""
    count = len(args) + len(kwargs)
    if isinstance(dynamic_shapes, Mapping):
        given = [*names[: len(args)], *[""] * (len(args) - len(names)), *kwargs]
        return [dynamic_shapes.get(name) for name in given]
    specs = list(dynamic_shapes)[:count] if isinstance(dynamic_shapes, Iterable) else []
    return specs + [None] * (count - len(specs))


def _collect(value: object, spec: object, variables: dict[str, Var], leaves: list[Extents]) -> None:
    if isinstance(value, torch.Tensor):
        leaves.append([_variable(entry(spec, axis), variables) for axis in range(value.dim())])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _collect(item, entry(spec, key), variables, leaves)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _collect(item, entry(spec, index), variables, leaves)
    elif value is not None:
        leaves.append([])  # a number is a leaf too


def entry(spec: object, key: object) -> object:
    """What ``dynamic_shapes`` says of a part of an argument."""
    if isinstance(spec, Mapping):
        return spec.get(key)
    if isinstance(spec, list | tuple) and isinstance(key, int) and key < len(spec):
        return spec[key]
    return None


def _variable(dim: object, variables: dict[str, Var]) -> Var | None:
    """The variable of a dimension that has a name of the user's and is a symbol by itself."""
    name = getattr(dim, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier() or hasattr(dim, "root"):
        return None
    if name not in variables:
        variables[name] = SizeVar(name, "int64")
    return variables[name]
