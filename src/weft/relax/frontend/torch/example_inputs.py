"""Example inputs as torch.export takes them: without what their giver did not mean by them.

A tensor that is given twice becomes two. Of a dimension that varies, an extent of 0 or 1 becomes a
larger one, since torch takes these two for constants: ``torch.ones(1, 8)`` with the first dimension
in ``dynamic_shapes`` becomes three equal rows. Only shapes and types of examples matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from weft.relax.frontend.dynamic_dim import hint_of, is_named_dim
from weft.relax.frontend.torch.dim_names import entry, specs_of

_EXTENT: Final = 3
"""Fewer are constants or rare cases (a pair); torch says so of 0 and 1 only."""


def prepared(
    model: torch.nn.Module,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    dynamic_shapes: object,
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments, by position and by name."""
    if dynamic_shapes is not None:
        names = [*inspect.signature(model.forward).parameters]
        specs = specs_of(names, args, kwargs, dynamic_shapes)
        given = zip([*args, *kwargs.values()], specs, strict=True)
        values = [_varied(value, spec) for value, spec in given]
        args, kwargs = values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True))
    own: tuple[tuple[object, ...], dict[str, object]] = _with_own_tensors(
        (tuple(args), dict(kwargs))
    )
    return own


def _with_own_tensors(tree: Any) -> Any:
    """The arguments, each tensor in them an object of its own.

    Of a tensor that is given twice, as in ``f(x, x)``, torch.export makes one input of the graph,
    and the other argument is not used at all.
    """
    seen: set[int] = set()

    def own(value: object) -> object:
        if not isinstance(value, torch.Tensor) or id(value) not in seen:
            seen.add(id(value))
            return value
        return value.detach()

    return torch.utils._pytree.tree_map(own, tree)


def _varied(value: Any, spec: object) -> Any:
    """An argument whose varying dimensions have extents that can vary."""
    if isinstance(value, torch.Tensor):
        for axis, extent in enumerate(value.shape):
            wanted = _varying_extent(entry(spec, axis))
            if extent < 2 <= wanted:
                shape = [*value.shape[:axis], wanted, *value.shape[axis + 1 :]]
                value = value.expand(shape).clone() if extent else value.new_zeros(shape)
        return value
    if type(value) is dict:
        return {key: _varied(item, entry(spec, key)) for key, item in value.items()}
    if type(value) in (list, tuple):
        items = [_varied(item, entry(spec, place)) for place, item in enumerate(value)]
        return items if type(value) is list else tuple(items)
    return value


def _varying_extent(dim: object) -> int:
    """An extent for a dimension that varies; 0 for another one, and for ``2 * dim``."""
    is_named = is_named_dim(dim) and not hasattr(dim, "root")
    if not is_named and hint_of(dim) != "DYNAMIC":
        return 0
    low, high = getattr(dim, "min", None), getattr(dim, "max", None)
    extent = max(_EXTENT, low or 0)
    return int(extent if high is None else min(extent, high))
