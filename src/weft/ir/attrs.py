"""Attributes of functions, calls and operators: immutable maps from names to values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.ir.expr import IntImm, StringImm
from weft.ir.node import Array, Map
from weft.ir.node_code import register_conversion
from weft.support.errors import IRAttributeError, IRTypeError


class Attrs(Map[str, Any]):
    """A Map with str keys that also reads as attributes: ``call.attrs.strides``.

    Never None: a function without attributes has an empty one.
    """

    __slots__ = ()

    def __init__(self, items: Mapping[str, object] | Iterable[tuple[str, object]] = ()) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        super().__init__([(key, _plain(value)) for key, value in pairs])

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self) or "none"
            raise IRAttributeError(f"no attribute {name!r}; there are: {known}") from None

    def get_int(self, name: str) -> int:
        """The attribute as a Python int."""
        return int(self[name])

    def get_str(self, name: str) -> str:
        """The attribute as a Python str."""
        return str(getattr(self[name], "value", self[name]))

    def updated(self, **changes: object) -> Attrs:
        """A copy with some attributes set."""
        return Attrs({**self, **changes})


def _plain(value: object) -> object:
    """A value in the one form in which attributes store it, so that equal ones compare equal.

    int32 and bool constants become Python numbers, string constants str, sequences Arrays.
    """
    if type(value) is IntImm:
        if value.dtype.is_bool:
            return bool(value.value)
        return value.value if value.dtype == "int32" else value
    if type(value) is StringImm:
        return value.value
    kind = type(value)
    if isinstance(value, (list, tuple)) and (kind is list or kind is tuple or kind is Array):
        items = [_plain(item) for item in value]
        same = kind is Array and all(new is old for new, old in zip(items, value, strict=True))
        return value if same else Array(items)
    if isinstance(value, dict) and (kind is dict or kind is Map):
        return Map({key: _plain(item) for key, item in value.items()})
    return value


DictAttrs = Attrs


def as_attrs(value: object) -> Attrs:
    """Attrs from None, a mapping or Attrs; lists and dicts inside are frozen."""
    if isinstance(value, Attrs):
        return value
    if not value:
        return Attrs()
    if not isinstance(value, Mapping):
        raise IRTypeError(f"attrs: expected a dict, got {type(value).__name__} {value!r:.60}")
    return Attrs({str(key): item for key, item in value.items()})


register_conversion("Attrs", Attrs, as_attrs)
