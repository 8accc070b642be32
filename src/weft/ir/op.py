"""The registry of operators: one ``Op`` object per name, with attributes by key.

TensorIR intrinsics have names such as ``tir.exp``, graph operators such as ``relax.add``. What a
layer knows of an operator (how to infer, lower or print it) is an attribute of the Op.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, ClassVar, Final, NoReturn, TypeVar, overload

from weft.ir.expr import RelaxExpr
from weft.ir.node import field, node
from weft.support import plugins
from weft.support.errors import IRKeyError, IRTypeError, IRValueError, wrong_type
from weft.support.registration import refuse_second

V = TypeVar("V")

_LEVEL: Final = 10
"""The level of an attribute that ``Op.register`` sets."""

ATTRIBUTE_KINDS: Final[dict[str, type]] = {}
"""Name of an attribute -> the class of its values; the module of that class adds the entry."""

_LEVELS: Final[dict[tuple[str, str], int]] = {}
"""(Operator's name, attribute's name) -> the level at which the attribute was set."""


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
            raise wrong_type("expected the name of an operator", op_name)
        operator = Op._registry.get(op_name)
        if operator is None and plugins.load_group(plugins.OPERATORS):
            operator = Op._registry.get(op_name)
        if operator is None:
            nearest = difflib.get_close_matches(op_name, Op._registry, n=3)
            hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
            raise IRKeyError(f"operator {op_name!r} is not registered{hint}")
        return operator

    @staticmethod
    def register(op_name: str, *, override: bool = False, **attributes: object) -> Op:
        """Create the operator (or find it) and set attributes on it.

        Raises:
            IRValueError: it has another value of an attribute, and ``override`` is not given.
        """
        op = Op._registry.get(op_name)
        if op is None:
            op = Op._registry[op_name] = Op(op_name)
        for name, value in attributes.items():
            op._refuse_second(name, value, override)
        op.attributes.update(attributes)
        return op

    def _refuse_second(self, name: str, value: object, override: bool) -> None:
        """Raise if the attribute has another value; the same one changes nothing."""
        kind = ATTRIBUTE_KINDS.get(name, object)
        if not isinstance(value, kind):
            raise IRTypeError(
                f"the attribute {name} of the operator {self.name!r}: expected a {kind.__name__} "
                f"({kind.__module__}.{kind.__name__}), got {type(value).__name__} {value!r:.40}"
            )
        known = self.attributes.get(name, value)
        is_same = known is value or (type(known) is type(value) and known == value)
        refuse_second(f"the attribute {name} of the operator", self.name, not is_same, override)

    @staticmethod
    def is_registered(op_name: str) -> bool:
        """Whether there is an operator of that name, as far as is loaded."""
        return op_name in Op._registry

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

    def set_attr(self, attr_name: str, value: object, plevel: int = 10) -> None:
        """Set an attribute, whatever it was; ``plevel`` is that of ``register_op_attr``."""
        self.attributes[attr_name] = value
        _LEVELS[self.name, attr_name] = plevel

    def reset_attr(self, attr_name: str) -> None:
        """Remove an attribute."""
        self.attributes.pop(attr_name, None)

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return Op.get, (self.name,)

    def __call__(self, *args: object) -> NoReturn:
        raise IRValueError(f"{self.name} is an operator; build a call with relax.Call or tir.Call")


@overload
def register_op_attr(
    op_name: str, attr_key: str, value: None = None, level: int = 10, *, override: bool = False
) -> Callable[[V], V]: ...
@overload
def register_op_attr(
    op_name: str, attr_key: str, value: V, level: int = 10, *, override: bool = False
) -> V: ...
def register_op_attr(
    op_name: str, attr_key: str, value: object = None, level: int = 10, *, override: bool = False
) -> object:
    """Set an attribute of an operator; without ``value`` it is a decorator.

    A value is replaced if it was set at a lower ``level``, as in TVM.

    Raises:
        IRValueError: the operator has another value of the attribute at the same or a higher
            level, and ``override`` is not given.
    """

    def apply(given: V) -> V:
        operator = Op.register(op_name)
        if level <= _LEVELS.get((op_name, attr_key), _LEVEL):
            operator._refuse_second(attr_key, given, override)
        operator.set_attr(attr_key, given, level)
        return given

    return apply if value is None else apply(value)
