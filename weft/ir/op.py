"""The registry of operators: one ``Op`` object per name, with attributes by key.

TensorIR intrinsics are ``tir.exp``; graph operators ``relax.add``. What each layer knows of an
operator (how it infers, lowers, prints) hangs on it as an attribute.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, ClassVar

from weft.ir.expr import RelaxExpr
from weft.ir.node import field, node
from weft.support.errors import IRKeyError, IRTypeError, IRValueError


@node
class Op(RelaxExpr):
    """An operator; ``Op.get(name)`` returns the one object of that name."""

    name: str
    attributes: dict[str, Any] = field(default=None, compare=False, visit=False)

    _registry: ClassVar[dict[str, Op]] = {}

    def _check_(self) -> None:
        self.struct_info = None
        self.attributes = {}

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that name; raises IRKeyError with the nearest names."""
        if not isinstance(op_name, str):
            raise IRTypeError(f"expected the name of an operator, got {type(op_name).__name__}")
        found = Op._registry.get(op_name)
        if found is None:
            nearest = difflib.get_close_matches(op_name, Op._registry, n=3)
            hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
            raise IRKeyError(f"operator {op_name!r} is not registered{hint}")
        return found

    @staticmethod
    def register(op_name: str, **attributes: Any) -> Op:
        """Create the operator (or find it) and set attributes on it."""
        found = Op._registry.get(op_name)
        if found is None:
            found = Op._registry[op_name] = Op(op_name)
        found.attributes.update(attributes)
        return found

    @staticmethod
    def list_op_names() -> list[str]:
        """All registered names, sorted."""
        return sorted(Op._registry)

    def get_attr(self, attr_name: str) -> Any:
        """The attribute, or None."""
        return self.attributes.get(attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Whether the attribute is set."""
        return attr_name in self.attributes

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Set an attribute; a later call wins (``plevel`` is accepted for TVM's signature)."""
        self.attributes[attr_name] = value

    def reset_attr(self, attr_name: str) -> None:
        """Remove an attribute."""
        self.attributes.pop(attr_name, None)

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return Op.get, (self.name,)

    def __call__(self, *args: Any) -> Any:
        raise IRValueError(f"{self.name} is an operator; build a call with relax.Call or tir.Call")


def register_op_attr(
    op_name: str, attr_key: str, value: Any = None, level: int = 10
) -> Callable[[Any], Any] | Any:
    """Set an attribute of an operator; without ``value`` it is a decorator."""

    def apply(given: Any) -> Any:
        Op.register(op_name).set_attr(attr_key, given, level)
        return given

    return apply if value is None else apply(value)
