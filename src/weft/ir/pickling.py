"""Nodes as they are from one process of the compiler to another: with spans and provenance.

A pickled node is usually its JSON (``weft.ir.json_text``), which another release of weft reads and
checks. Two processes of one run trust each other and have the same classes, so that slots can be
copied without checks; nodes that are shared below a value are shared in its copy.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from weft.ir.node import Node, cached_by_class
from weft.support.dtype import DataType

T = TypeVar("T")
_NOT_COPIED = frozenset({"_cache", "_summary", "__weakref__"})


class Copied(Generic[T]):
    """A value whose nodes are copied slot by slot where it is pickled.

    >>> from weft.tir.expr import Var
    >>> i = Var("i", "int32")
    >>> copy = pickle.loads(pickle.dumps(Copied((i, i + 1)))).value
    >>> copy
    (i, i + 1)
    >>> copy[1].a is copy[0], copy[0] is i
    (True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Callable[[bytes], Copied[Any]], tuple[bytes]]:
        content = io.BytesIO()
        _Pickler(content, pickle.HIGHEST_PROTOCOL).dump(self.value)
        return _read, (content.getvalue(),)


def _read(content: bytes) -> Copied[Any]:
    return Copied(pickle.loads(content))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        """How nodes and types are pickled; everything else as usual."""
        if isinstance(value, Node) and type(value).__reduce__ is Node.__reduce__:
            cls = type(value)
            state = {name: getattr(value, name) for name in _slots(cls)}
            state["_cache"], state["_summary"] = None, 0  # both depend on where objects lie
            new = copyreg.__newobj__  # type: ignore[attr-defined] # typeshed lacks it
            return new, (cls,), (None, state)
        if isinstance(value, DataType):  # interned, so its attributes are there
            return DataType, (str(value),)
        return NotImplemented


@cached_by_class
def _slots(cls: Any) -> tuple[str, ...]:
    """The slots whose values a copy has, too."""
    return tuple(cls._all_slots_ - _NOT_COPIED)
