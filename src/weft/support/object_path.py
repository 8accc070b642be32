"""Paths from a root object to a part of it: ``<root>.body.seq[1]``.

Structural comparison reports where two programs differ as a pair of paths; the printer underlines
or annotates what a path leads to. Names are those of ``tvm.runtime.object_path``. Paths are
immutable and compare by their steps; ``resolve`` applies the steps to an object.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.support.errors import IRTypeError

__all__ = [
    "ArrayIndexPath", "AttributeAccessPath", "MapValuePath", "MissingArrayElementPath",
    "MissingMapEntryPath", "ObjectPath", "RootPath", "UnknownAttributeAccessPath",
]  # fmt: skip


class ObjectPath:
    """A path: its parent and one step. Made by ``ObjectPath.root()`` and the methods below."""

    __slots__ = ("_key", "_length", "_parent")

    STEP: ClassVar[str] = ""
    """How the step prints; ``{}`` stands for its key."""

    def __init__(self, parent: ObjectPath | None, key: Any = None) -> None:
        if type(self) is ObjectPath:
            raise IRTypeError("ObjectPath: start with ObjectPath.root(), then .attr(name) etc.")
        self._parent, self._key = parent, key
        self._length: int = 1 if parent is None else parent._length + 1

    @staticmethod
    def root(root_name: str | None = None) -> RootPath:
        """The path of the root itself; ``root_name`` is printed instead of ``<root>``."""
        return RootPath(None, root_name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        """The field of that name; None for a field that has none."""
        if attr_key is None:
            return UnknownAttributeAccessPath(self)
        return AttributeAccessPath(self, attr_key)

    def array_index(self, index: int) -> ArrayIndexPath:
        """The element of a sequence."""
        return ArrayIndexPath(self, index)

    def missing_array_element(self, index: int) -> MissingArrayElementPath:
        """An element that this sequence lacks and the compared one has."""
        return MissingArrayElementPath(self, index)

    def map_value(self, key: object) -> MapValuePath:
        """The value of a mapping under ``key``."""
        return MapValuePath(self, key)

    def missing_map_entry(self) -> MissingMapEntryPath:
        """An entry that this mapping lacks and the compared one has."""
        return MissingMapEntryPath(self)

    @property
    def parent(self) -> ObjectPath | None:
        """The path without its last step; None of the root."""
        return self._parent

    def get_prefix(self, length: int) -> ObjectPath:
        """The first ``length`` steps (the root counts as one)."""
        if length < 1:
            raise IndexError(f"Prefix length must be at least 1, got {length}")
        if length > self._length:
            raise IndexError(
                "Attempted to get a prefix longer than the path itself: "
                f"{length} steps of a path of {self._length}"
            )
        path: ObjectPath = self
        while path._length > length:
            assert path._parent is not None  # only the root, of length 1, has none
            path = path._parent
        return path

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether ``other`` is this path or goes on from it."""
        return self._length <= other._length and self == other.get_prefix(self._length)

    def steps(self) -> list[ObjectPath]:
        """Every prefix, from the root to the path itself."""
        paths: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            paths.append(path)
            path = path._parent
        return paths[::-1]

    def step(self, value: object) -> object:
        """The part of ``value`` that the last step leads to; LookupError if there is none."""
        raise LookupError(f"{self} leads nowhere")

    def resolve(self, root: object) -> list[object]:
        """``root`` and the part after each step, up to a step that leads nowhere."""
        values = [root]
        for path in self.steps()[1:]:
            try:
                values.append(path.step(values[-1]))
            except (LookupError, TypeError, AttributeError):
                break
        return values

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath) or self._length != other._length:
            return False
        mine: ObjectPath | None = self
        its: ObjectPath | None = other
        while mine is not None and its is not None and mine is not its:
            if type(mine) is not type(its) or not _same_key(mine._key, its._key):
                return False
            mine, its = mine._parent, its._parent
        return True

    def __hash__(self) -> int:
        key = self._key if isinstance(self._key, (str, int, type(None))) else id(self._key)
        return hash((type(self).__name__, self._length, key, self._parent))

    def __str__(self) -> str:
        return "".join([path._text() for path in self.steps()])

    def __repr__(self) -> str:
        return str(self)

    def _text(self) -> str:
        return self.STEP.format(self._key)


def _same_key(mine: object, its: object) -> bool:
    if mine is its:
        return True
    return isinstance(mine, (str, int)) and isinstance(its, (str, int)) and mine == its


class RootPath(ObjectPath):
    """The root."""

    __slots__ = ()

    @property
    def name(self) -> str | None:
        """The name given to the root."""
        key: str | None = self._key
        return key

    def _text(self) -> str:
        return "<root>" if self._key is None else str(self._key)


class AttributeAccessPath(ObjectPath):
    """A field."""

    __slots__ = ()
    STEP = ".{}"

    @property
    def attr_key(self) -> str:
        """The field's name."""
        return str(self._key)

    def step(self, value: object) -> object:
        """The field of ``value``."""
        return getattr(value, self._key)


class UnknownAttributeAccessPath(ObjectPath):
    """A field without a name."""

    __slots__ = ()
    STEP = ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """An element of a sequence."""

    __slots__ = ()
    STEP = "[{}]"

    @property
    def index(self) -> int:
        """The position."""
        return int(self._key)

    def step(self, value: Any) -> object:
        """The element of ``value``."""
        return value[self._key]


class MissingArrayElementPath(ObjectPath):
    """An element that is not there."""

    __slots__ = ()
    STEP = "[<missing element #{}>]"

    @property
    def index(self) -> int:
        """The position."""
        return int(self._key)


class MapValuePath(ObjectPath):
    """A value of a mapping."""

    __slots__ = ()

    @property
    def key(self) -> object:
        """The key."""
        return self._key

    def step(self, value: Any) -> object:
        """The value under the key."""
        return value[self._key]

    def _text(self) -> str:
        return f'["{self._key}"]' if isinstance(self._key, str) else f"[{self._key}]"


class MissingMapEntryPath(ObjectPath):
    """An entry that is not there."""

    __slots__ = ()
    STEP = "[<missing entry>]"
