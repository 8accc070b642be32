"""Attributes of functions, calls and operators: immutable maps from names to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ir.node import Map, freeze, register_conversion
from weft.support.errors import IRAttributeError


class Attrs(Map):
    """A Map with str keys that also reads as attributes: ``call.attrs.strides``.

    Never None: a function without attributes has an empty one.
    """

    __slots__ = ()

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

    def updated(self, **changes: Any) -> Attrs:
        """A copy with some attributes set."""
        return Attrs({**self, **{key: freeze(value) for key, value in changes.items()}})


DictAttrs = Attrs


def as_attrs(value: Any) -> Attrs:
    """Attrs from None, a mapping or Attrs; lists and dicts inside are frozen."""
    if isinstance(value, Attrs):
        return value
    items: Mapping[str, Any] = value or {}
    return Attrs({str(key): freeze(item) for key, item in items.items()})


register_conversion("Attrs", Attrs, as_attrs)
