"""Small value types that TVM's runtime has under names of their own: ShapeTuple and String."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from weft.support.errors import IRTypeError


class ShapeTuple(tuple[int, ...]):
    """A shape at run time: a tuple of integers, equal to the plain tuple of the same numbers.

    >>> ShapeTuple([2, 3]) == (2, 3)
    True
    """

    __slots__ = ()

    def __new__(cls, shape: Iterable[SupportsIndex] = ()) -> ShapeTuple:
        """Build from any iterable of integers."""
        try:
            return super().__new__(cls, [extent.__index__() for extent in shape])
        except (TypeError, AttributeError) as error:
            raise IRTypeError(f"expected a sequence of integers, got {shape!r}") from error


class String(str):
    """A string, under the name that TVM's runtime gives it."""

    __slots__ = ()
