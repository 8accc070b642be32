"""Which argument of a call does not fit, named as the caller writes it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.runtime.model.signature import Signature
from weft.runtime.vm.bytecode import Pattern
from weft.runtime.vm.patterns import bind, match
from weft.support.errors import IRTypeError, IRValueError

Params = Sequence[tuple[str, Pattern]]


def explain(signature: Signature, params: Params, values: Sequence[object]) -> None:
    """Raise the error of the first input that does not fit, by its place in the arguments."""
    symbols: dict[str, int] = {}
    for value, (_, pattern) in zip(values, params, strict=True):
        bind(value, pattern, symbols)
    for value, (_, pattern), place in zip(values, params, signature.inputs, strict=True):
        where = f"{signature.name}: argument {place}"
        try:
            match(value, pattern, symbols, where)
        except (IRTypeError, IRValueError) as error:
            hint = "" if isinstance(error, IRTypeError) else _hint(signature, params, values)
            if where in str(error) and not hint:
                raise
            text = str(error) if where in str(error) else f"{where}: {error}"
            raise type(error)(text + hint) from error
    if signature.texts and (hint := _hint(signature, params, values)):
        raise IRValueError(f"{signature.name}: the extents of inputs contradict each other{hint}")


class _Axis(NamedTuple):
    """An axis of an input whose extent is a name, and its extent in a call."""

    name: str
    place: str
    number: int
    extent: int

    def __str__(self) -> str:
        return f"axis {self.number} of {self.place} ({self.extent})"


def _hint(signature: Signature, params: Params, values: Sequence[object]) -> str:
    """What to do where a file from ONNX gives extents that differ one name; nothing elsewhere.

    (In files of other frameworks a name is the extent's own, which code of the model asked for.)
    """
    if signature.source != "onnx":
        return ""
    axes = list(_named_axes(signature, params, values))
    for first, second in itertools.combinations(axes, 2):
        if first.name == second.name and first.extent != second.extent:
            fresh = _fresh(first.name, {axis.name for axis in axes})
            asked = {second.place: {second.number: fresh}}
            return (
                f"; {first} and {second} have one name, {first.name!r}, so they are one extent. If "
                f"they are two, name one anew: weft.compile(..., dynamic_shapes={asked})"
            )
    return ""


def _named_axes(signature: Signature, params: Params, values: Sequence[object]) -> Iterator[_Axis]:
    texts = dict(signature.texts)
    for index, (place, (_, pattern), value) in enumerate(
        zip(signature.inputs, params, values, strict=True)
    ):
        extents = pattern[2] if pattern[0] == "tensor" else texts.get(index)
        shape = _shape_of_texts(value) if index in texts else getattr(value, "shape", ())
        if extents is None or len(extents) != len(shape):
            continue
        for number, (name, extent) in enumerate(zip(extents, shape, strict=True)):
            if isinstance(name, str) and name.isidentifier():
                yield _Axis(name, place, number, int(extent))


def _shape_of_texts(value: object) -> tuple[int, ...]:
    """The shape of an array, or of lists; that of a scalar where lists differ in length."""
    try:
        return np.asarray(value).shape
    except ValueError:
        return ()


def _fresh(name: str, taken: set[str]) -> str:
    """A name near it that no extent has."""
    names = (f"{name}_{count}" for count in itertools.count(2))
    return next(item for item in names if item not in taken)
