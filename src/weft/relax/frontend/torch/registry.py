"""The table of converters: ATen overload -> function that makes graph expressions.

::

    @converter("aten.softmax.int")
    def softmax(context: Context, self: Expr, dim: int, dtype: str | None = None) -> Expr:
        return op.nn.softmax(context.cast(self, dtype), dim)

Arguments come as the ATen schema names them (what ``torch.ops.aten.softmax.int`` prints): tensors
as expressions, symbolic sizes as ``PrimExpr``, data types by name, lists as Python lists; arguments
at their default may be left out by torch, so the function repeats the defaults that it reads. The
names in ``IGNORED`` are never passed. Several results are a tuple of expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from weft.relax.frontend.torch.values import Value
from weft.support import plugins
from weft.support.registration import refuse_second

Converter = Callable[..., Value]
"""A function of a ``Context`` and an operator's arguments that gives its results."""
C = TypeVar("C", bound=Converter)

CONVERTERS: Final[dict[str, Converter]] = {}
"""Converters by the name of an overload, ``aten.add.Tensor``."""
IGNORED: Final = frozenset({
    "device", "layout", "pin_memory", "memory_format", "generator", "non_blocking",
})  # fmt: skip
"""Arguments that say where or how torch stores a tensor, not what it holds."""


def converter(*overloads: str, override: bool = False) -> Callable[[C], C]:
    """Decorator: the function converts these overloads.

    Raises:
        IRValueError: one of them has a converter, and ``override`` is not given.
    """

    def register(function: C) -> C:
        for overload in overloads:
            refuse_second("the converter of", overload, overload in CONVERTERS, override)
            CONVERTERS[overload] = function
        return function

    return register


def converters_with(custom: Mapping[str, Converter] | None = None) -> dict[str, Converter]:
    """All converters, those of plug-ins too; ``custom`` ones come first."""
    plugins.load_group(plugins.CONVERTERS, "torch")
    return {**CONVERTERS, **(custom or {})}


def overload_name(target: object) -> str:
    """``aten.add.Tensor`` of ``torch.ops.aten.add.Tensor``; another callable's own name."""
    name = getattr(target, "name", None)
    schema = getattr(target, "_schema", None)
    if callable(name) and schema is not None:
        space, _, rest = schema.name.partition("::")
        return f"{space}.{rest}.{schema.overload_name or 'default'}"
    return str(getattr(target, "__name__", target))
