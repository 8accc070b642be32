"""``dynamic_shapes=`` of a model from ONNX: which extents vary, and which are numbers.

``{input: {axis: size}}``, where a size is a name, a ``torch.export.Dim`` with its range, a number
(the axis has that extent), or None (the axis stays as it is).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import SupportsIndex, TypeGuard

from weft.relax.frontend.dynamic_dim import hint_of
from weft.relax.frontend.onnx.parameters import GivenShape
from weft.relax.frontend.onnx.value import Dim
from weft.support.errors import IRTypeError, IRValueError

Range = tuple[str, int | None, int | None]
"""A symbol with its least and its greatest value; None: no limit."""


def apply_dynamic_shapes(
    shapes: dict[str, GivenShape], dynamic: object, declared: Mapping[str, GivenShape]
) -> None:
    """Put names and numbers into shapes at the axes in ``dynamic``.

    ``declared`` are the shapes that the model says, for inputs without an example.

    Raises IRValueError or IRTypeError for an input, an axis or a size that there is not, and for a
    number that contradicts the model or the example.
    """
    for name, axes in _inputs(dynamic):
        if name not in shapes and name not in declared:
            raise _wrong(dynamic)
        extents = list(shapes.get(name) or declared[name])
        said = list(declared.get(name) or extents)
        for axis, size in axes.items():
            if not _is_axis(axis, len(extents)):
                raise IRValueError(
                    f"compile: dynamic_shapes: input {name!r} has {len(extents)} dimensions, there "
                    f"is no axis {axis!r}"
                )
            where = f"compile: dynamic_shapes[{name!r}][{axis}]"
            known = (extents[axis], said[axis] if len(said) == len(extents) else extents[axis])
            extents[axis] = _extent(where, f"{name}_{axis % len(extents)}", size, known)
        shapes[name] = extents


def ranges_of(dynamic: object) -> tuple[Range, ...]:
    """The ranges of the ``torch.export.Dim``s in ``dynamic_shapes``, sorted by their name.

    Raises IRValueError for two of one name whose ranges differ.
    """
    ranges: dict[str, Range] = {}
    for name, axes in _inputs(dynamic):
        for axis, size in axes.items():
            if not _is_dim(size):
                continue
            low, high = getattr(size, "min", None), getattr(size, "max", None)
            limits = [limit if isinstance(limit, int) else None for limit in (low, high)]
            symbol = _name_of(size)
            item = (symbol, limits[0], limits[1])  # torch has int_oo for no limit
            if ranges.setdefault(symbol, item) != item:
                raise IRValueError(
                    f"compile: dynamic_shapes[{name!r}][{axis}]: the range of {symbol!r} is "
                    f"{item[1:]} here and {ranges[symbol][1:]} before; give it one range"
                )
    return tuple([ranges[name] for name in sorted(ranges)])


def _inputs(dynamic: object) -> Iterator[tuple[str, Mapping[object, object]]]:
    """(input, sizes by axis) of ``dynamic_shapes``."""
    if dynamic is None:
        return
    if not isinstance(dynamic, Mapping):
        raise _wrong(dynamic)
    for name, axes in dynamic.items():
        if axes is not None and not isinstance(axes, Mapping):
            raise IRValueError(
                f"compile: dynamic_shapes: expected {{axis: name}} for input {name!r}, got "
                f"{type(axes).__name__}"
            )
        yield name, axes or {}


def _wrong(dynamic: object) -> IRValueError:
    return IRValueError(
        "compile: dynamic_shapes of a model from ONNX is {input: {axis: name}} for inputs of which "
        f"an example or the model tells the shape, got {dynamic!r:.80}"
    )


def _extent(
    where: str, default: str, size: object, known: tuple[Dim | str, Dim | str]
) -> Dim | str:
    """The extent that a size asks for; ``known`` are that of the example and that of the model."""
    hint = hint_of(size)
    if size is None or hint == "STATIC":
        return known[0]
    if hint in ("AUTO", "DYNAMIC"):
        return default
    is_dim = _is_dim(size)
    if isinstance(size, SupportsIndex) and not is_dim and not isinstance(size, bool):
        return _number(where, int(size), known)
    name = _name_of(size) if is_dim else size
    if isinstance(name, str) and name.strip() and not name.strip().lstrip("+-").isdigit():
        return name
    raise IRTypeError(
        f"{where}: expected the name of an extent, a torch.export.Dim, a number or None, got "
        f"{size!r:.60}"
    )


def _number(where: str, size: int, known: tuple[Dim | str, Dim | str]) -> int:
    """A fixed extent, which must be that of the example and of the model where they have one."""
    for extent, source in zip(known, ("example", "model"), strict=True):
        if isinstance(extent, int) and extent != size:
            raise IRValueError(
                f"{where}: the axis has the extent {extent} in the {source}, got {size}; give a "
                "name where it varies"
            )
    if size < 0:
        raise IRValueError(f"{where}: expected an extent of at least 0, got {size}")
    return size


def _is_dim(size: object) -> bool:
    """Whether it is a ``torch.export.Dim`` with a name: in torch 2.6 a class of a class of its own.

    There may be no torch here, so that anything with a name counts.
    """
    return type(size) is not type and isinstance(getattr(size, "__name__", None), str)


def _name_of(size: object) -> str:
    """The name of a ``torch.export.Dim``."""
    return str(getattr(size, "__name__", ""))


def _is_axis(axis: object, rank: int) -> TypeGuard[int]:
    return isinstance(axis, int) and not isinstance(axis, bool) and -rank <= axis < rank
