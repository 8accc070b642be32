"""Types of variables: scalars, pointers with a storage scope, tuples, functions."""

from __future__ import annotations

from weft.ir.node import Array, Node, node, with_slots
from weft.support.dtype import DataType


@with_slots
class Type(Node):
    """The base of types. They compare by structure with ``structural_equal``."""

    def __eq__(self, other: object) -> bool:
        """Types are values: equal when their class and fields are."""
        if type(self) is not type(other):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.INIT_FIELDS)

    def __hash__(self) -> int:
        return hash((type(self), *[getattr(self, name) for name in self.INIT_FIELDS]))


@node
class PrimType(Type):
    """The type of a scalar or vector value."""

    dtype: DataType

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)


@node
class PointerType(Type):
    """A pointer to elements of a type in a storage scope (``global``, ``shared``, ``local``)."""

    element_type: Type
    storage_scope: str = ""


@node
class TupleType(Type):
    """A tuple of types; the empty one is the type of nothing."""

    fields: Array[Type]


@node
class FuncType(Type):
    """The type of a function."""

    arg_types: Array[Type]
    ret_type: Type
