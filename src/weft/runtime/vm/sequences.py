"""Sequences of tensors whose number only the run tells: what a loop of a model appends to.

A sequence is a value like any other: adding an item gives a new one and leaves the old one as it
is. Both share a list; where nothing was added yet behind the old items, adding one appends to that
list, so that a loop of n steps that appends takes n steps. Items may differ in shape. Importing the
module registers the functions; the virtual machine does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import register_func
from weft.support.errors import IRIndexError, IRTypeError, IRValueError, wrong_type

GIVEN: Final = "relax.run.sequence_given"
"""``(name, dtype, shape, list) -> sequence``: an input of a program."""
OF: Final = "relax.run.sequence_of"
"""``(tensors...) -> sequence``."""
INSERT: Final = "relax.run.sequence_insert"
"""``(sequence, item) -> sequence``, with the item at the end; a third argument is its position."""
ERASE: Final = "relax.run.sequence_erase"
"""``(sequence, position) -> sequence``."""
AT: Final = "relax.run.sequence_at"
"""``(sequence, position) -> tensor``."""
LENGTH: Final = "relax.run.sequence_length"
"""``(sequence) -> int64 tensor ()``."""
CONCAT: Final = "relax.run.sequence_concat"
"""``(sequence, axis) -> tensor``: the items one after the other."""
STACK: Final = "relax.run.sequence_stack"
"""``(sequence, axis) -> tensor``: the items along a new axis."""
SPLIT: Final = "relax.run.sequence_split"
"""``(tensor, axis, keeps axis) -> sequence`` of the slices; a fourth argument gives the sizes."""
ITEMS: Final = "relax.run.sequence_items"
"""``(sequence) -> tuple`` of the tensors, for the caller of a program."""


class TensorSequence:
    """The first ``count`` items of a list that sequences share; nobody writes into an item.

    >>> x = NDArray(np.arange(2))
    >>> one = TensorSequence([x], 1)
    >>> two = one.add(x)
    >>> one.count, two.count, one.items is two.items
    (1, 2, True)
    """

    __slots__ = ("count", "items")

    def __init__(self, items: list[NDArray], count: int) -> None:
        self.items, self.count = items, count

    def own(self) -> list[NDArray]:
        """The items, in a list of their own."""
        return self.items[: self.count]

    def add(self, item: NDArray) -> TensorSequence:
        """These items and one more."""
        items = self.items if len(self.items) == self.count else self.own()
        items.append(item)
        return TensorSequence(items, self.count + 1)

    def place(self, position: NDArray, more: int = 0) -> int:
        """A position, which counts from the end where it is negative, as a place in the list."""
        place = int(np.asarray(position).ravel()[0])
        if not -self.count <= place < self.count + more:
            raise IRIndexError(f"position {place} is outside of a sequence of {self.count} items")
        return place + self.count if place < 0 else place

    def arrays(self) -> list[np.ndarray]:
        """The items as arrays; an error if there are none."""
        if not self.count:
            raise IRValueError(
                "the items of a sequence are to be joined, but it has none; expected at least one: "
                "let the loop that appends them make a step"
            )
        return [np.asarray(item) for item in self.own()]


def _sequence(value: object) -> TensorSequence:
    if not isinstance(value, TensorSequence):
        raise wrong_type("expected a sequence of tensors", value)
    return value


@register_func(GIVEN, override=True)
def sequence_given(name: object, dtype: object, shape: object, given: object) -> TensorSequence:
    """A sequence of copies of the arrays that a caller gives, in a list or a tuple.

    ``shape`` is JSON: an extent, or null for one in which items may differ, for each dimension.

    Raises IRTypeError for something else than a list and for another type of an item, IRValueError
    for an item of another shape.
    """
    dims = json.loads(str(shape))
    text = f"({', '.join('?' if dim is None else str(dim) for dim in dims)})"
    wanted = f"a list of arrays of type {dtype} and shape {text}"
    if not isinstance(given, list | tuple):
        raise wrong_type(f"input {name}: expected {wanted}", given)
    items = []
    for place, value in enumerate(given):
        item = array(value if isinstance(value, NDArray) else np.asarray(value))
        where = f"input {name}: expected {wanted}; item {place} has"
        if item.dtype != str(dtype):
            raise IRTypeError(f"{where} the type {item.dtype}")
        fits = len(item.shape) == len(dims) and all(
            dim in (None, extent) for dim, extent in zip(dims, item.shape, strict=True)
        )
        if not fits:
            raise IRValueError(f"{where} the shape {item.shape}")
        items.append(item)
    return TensorSequence(items, len(items))


@register_func(OF, override=True)
def sequence_of(*tensors: NDArray) -> TensorSequence:
    """A sequence of copies: memory of a program is written again."""
    return TensorSequence([array(tensor) for tensor in tensors], len(tensors))


@register_func(INSERT, override=True)
def sequence_insert(
    sequence: TensorSequence, item: NDArray, position: NDArray | None = None
) -> TensorSequence:
    """The sequence with a copy of the item, at the end or at a position."""
    before, tensor = _sequence(sequence), array(item)
    if position is None:
        return before.add(tensor)
    items = before.own()
    items.insert(before.place(position, 1), tensor)
    return TensorSequence(items, len(items))


@register_func(ERASE, override=True)
def sequence_erase(sequence: TensorSequence, position: NDArray) -> TensorSequence:
    """The sequence without the item at a position."""
    before = _sequence(sequence)
    items = before.own()
    del items[before.place(position)]
    return TensorSequence(items, len(items))


@register_func(AT, override=True)
def sequence_at(sequence: TensorSequence, position: NDArray) -> NDArray:
    """A copy of the item at a position."""
    given = _sequence(sequence)
    return array(given.items[given.place(position)])


@register_func(LENGTH, override=True)
def sequence_length(sequence: TensorSequence) -> NDArray:
    """How many items there are."""
    return array(np.array(_sequence(sequence).count, "int64"))


def _joined(join: Callable[..., np.ndarray], sequence: TensorSequence, axis: int) -> NDArray:
    arrays = _sequence(sequence).arrays()
    try:
        return array(join(arrays, axis=int(axis)))
    except ValueError as error:
        shapes = ", ".join(dict.fromkeys(str(array.shape) for array in arrays))
        raise IRValueError(
            f"the items of a sequence do not fit each other along axis {axis}: got the shapes "
            f"{shapes}; expected shapes that "
            + ("are equal" if join is np.stack else "differ in that axis only")
        ) from error


@register_func(CONCAT, override=True)
def sequence_concat(sequence: TensorSequence, axis: int) -> NDArray:
    """The items one after the other along an axis of theirs."""
    return _joined(np.concatenate, sequence, axis)


@register_func(STACK, override=True)
def sequence_stack(sequence: TensorSequence, axis: int) -> NDArray:
    """The items along a new axis."""
    return _joined(np.stack, sequence, axis)


@register_func(SPLIT, override=True)
def sequence_split(
    tensor: NDArray, axis: int, keeps_axis: int, sizes: NDArray | None = None
) -> TensorSequence:
    """The slices of a tensor along an axis, or parts of given sizes (one number: of that size)."""
    values, place = np.asarray(tensor), int(axis)
    extent = values.shape[place]
    ends = np.arange(1, extent + 1)
    if sizes is not None:
        given = np.asarray(sizes)
        if given.ndim:
            ends = np.cumsum(given)
        else:
            ends = np.minimum(np.arange(0, extent, max(int(given), 1)) + int(given), extent)
        if given.min(initial=1) < int(given.ndim == 0) or (ends[-1] if ends.size else 0) != extent:
            raise IRValueError(
                f"expected sizes of parts that add up to the extent {extent} of axis {place}, got "
                f"{given.tolist()}"
            )
    parts = np.split(values, ends[:-1], axis=place) if ends.size else []
    if not keeps_axis:
        parts = [part.squeeze(place) for part in parts]
    return TensorSequence([array(part) for part in parts], len(parts))


@register_func(ITEMS, override=True)
def sequence_items(sequence: TensorSequence) -> tuple[NDArray, ...]:
    """The items; the caller of a program may write into them."""
    return tuple([array(item) for item in _sequence(sequence).own()])
