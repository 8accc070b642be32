"""What a model keeps from call to call in ways that a compiled model forgets.

All calls of a program begin alike: a number that ``forward`` counts up stays what it was, a state
that is ``None`` before the first call is ``None`` before each, and a list that grows has its first
length. A trace, of one call, tells what of this changes. Whether that matters, two calls of the
model itself tell: between them tensors, which compiled models keep, get their values back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from weft.relax.frontend.torch.held_values import SYMBOLIC, held_tensors, held_values
from weft.relax.frontend.torch.untouched import untouched

_SHOWN: Final = 3
_NEAR: Final = 1e-4
Values = Mapping[str, object]


def changed_values(before: Values, after: Values) -> list[str]:
    """The paths of numbers that changed, and of tensors and numbers where nothing stood.

    >>> changed_values({"calls": 0, "state": None, "width": 4}, {"calls": 1, "width": 4})
    ['calls']
    """
    return [path for path, value in after.items() if _changes(before.get(path), value)]


def _changes(before: object, after: object) -> bool:
    if isinstance(before, torch.Tensor) or after is None:
        return False
    if isinstance(after, (torch.Tensor, *SYMBOLIC)) or type(before) is not type(after):
        return True
    return bool(before != after)


def warn_of_forgotten(
    model: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    changed: Sequence[str],
) -> None:
    """A RuntimeWarning if what stands at these paths after a call makes the next one differ."""
    if not changed or not _differs_next(model, lambda: model(*_own(args), **_own(kwargs))):
        return
    more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    warnings.warn(
        f"compile: a call of {type(model).__name__} changes {', '.join(changed[:_SHOWN])}{more}, "
        "and the next call gives other results; each call of the compiled model begins with what "
        "stands there now: make it a buffer (register_buffer), or an input and a result of forward",
        RuntimeWarning,
        stacklevel=2,
    )


def _differs_next(model: torch.nn.Module, call: Callable[[], object]) -> bool:
    """Whether a second call gives other results; False if the model does not run here."""
    modules = dict(model.named_modules())
    tensors = held_tensors(modules)
    copies = {path: tensor.detach().clone() for path, tensor in tensors.items()}
    with untouched(model), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first = _results(call)
            _put_back(copies, held_tensors(modules))
            return not _are_near(first, _results(call))
        except Exception:  # noqa: BLE001 - whatever a model raises where a trace of it did not
            return False
        finally:
            _put_back(copies, tensors)


def changes_what_it_holds(
    model: torch.nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> bool:
    """Whether a call changes what a model holds, but for the values of buffers.

    True if the model does not run here, too.
    """
    modules = dict(model.named_modules())
    before, tensors = held_values(modules), held_tensors(modules)
    copies = {path: tensor.detach().clone() for path, tensor in tensors.items()}
    buffers = {id(buffer) for buffer in model.buffers()}
    with untouched(model), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model(*_own(args), **_own(kwargs))
            after = held_values(modules)
            kept = [path for path, tensor in tensors.items() if id(tensor) not in buffers]
            return (
                after.keys() != before.keys()
                or any(after[path] is not value for path, value in before.items())
                or not all(torch.equal(copies[path], tensors[path]) for path in kept)
            )
        except Exception:  # noqa: BLE001 - whatever a model raises where a trace of it did not
            return True
        finally:
            _put_back(copies, tensors)


def _results(call: Callable[[], object]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    leaves = pytree.tree_leaves(call())
    return [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _put_back(copies: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for path, copy in copies.items():
            tensor = tensors.get(path)
            if tensor is not None and tensor.shape == copy.shape and not torch.equal(tensor, copy):
                tensor.copy_(copy)


def _are_near(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    return len(first) == len(second) and all(
        mine.shape == other.shape
        and torch.allclose(mine.to(other.dtype), other, rtol=_NEAR, atol=_NEAR, equal_nan=True)
        for mine, other in zip(first, second, strict=True)
    )


def _own(tree: Any) -> Any:
    """Arguments that a call may write to."""
    return pytree.tree_map(
        lambda value: value.clone() if isinstance(value, torch.Tensor) else value, tree
    )
