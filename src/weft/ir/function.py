"""BaseFunc: what PrimFunc and relax Function share: attributes, hidden provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from weft.ir.attrs import Attrs
from weft.ir.expr import RelaxExpr
from weft.ir.node import derived, freeze, with_slots
from weft.support.errors import wrong_type


@with_slots
class BaseFunc(RelaxExpr):
    """A function of an IRModule. ``attrs`` is an immutable map, never None.

    ``provenance`` is the hidden slot of design.md 3.12 ("te" where the compiler made the function
    from tensor expressions): printing, attributes and equality do not see it.
    """

    _extra_slots_: ClassVar[tuple[str, ...]] = ("attrs", "provenance")
    attrs: Attrs = derived()
    provenance: str | None = derived()

    def _carry_(self, copy: Self) -> None:
        copy.provenance = self.provenance

    @property
    def __name__(self) -> str:
        """The global symbol; as a Python function's, so that a decorated one keeps its name."""
        if "global_symbol" not in self.attrs:
            raise AttributeError("a private function has no name of its own")
        return str(self.attrs["global_symbol"])

    def with_attr(
        self, attr_key_or_dict: str | Mapping[str, object], attr_value: object = None
    ) -> Self:
        """A copy with one attribute (or a dict of them) set."""
        if isinstance(attr_key_or_dict, str):
            changes: dict[str, object] = {attr_key_or_dict: attr_value}
        elif isinstance(attr_key_or_dict, Mapping):
            changes = dict(attr_key_or_dict)
        else:
            raise wrong_type(
                "with_attr: expected the name of an attribute or a dict", attr_key_or_dict
            )
        frozen = {key: freeze(value) for key, value in changes.items()}
        return self.with_(attrs=Attrs({**self.attrs, **frozen}))

    def with_attrs(self, attr_map: Mapping[str, object]) -> Self:
        """A copy with these attributes set; others stay."""
        return self.with_attr(attr_map)

    def without_attr(self, attr_key: str) -> Self:
        """A copy without that attribute."""
        if attr_key not in self.attrs:
            return self
        return self.with_(attrs=Attrs({k: v for k, v in self.attrs.items() if k != attr_key}))
