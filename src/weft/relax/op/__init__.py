"""Graph operators: ``relax.op.<name>``; importing the package registers all of them.

An operator can be found here by its name as soon as it is defined, also one of a user's
(``weft.relax.op.definition.FUNCTIONS``). The package fills the slot ``relax_operators``, through
which lower levels call operators: Python's ``+`` on graph expressions, methods of functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from weft.ir.expr import RelaxExpr
from weft.relax.expr import Call, ShapeExpr
from weft.relax.ir import lattice
from weft.relax.op import (
    base,
    binary,
    builtin,
    ccl,
    classical,
    create,
    distributed,
    image,
    index,
    joins,
    linalg,
    linear_algebra,
    manipulate,
    memory,
    nn,
    quantization,
    sampling,
    scatter,
    selection,
    special,
    statistical,
    strided,
    unary,
    vision,
    vm,
)
from weft.relax.op.base import call_global
from weft.relax.op.definition import FUNCTIONS, Namespace, function_of_plugin
from weft.relax.op.linear_algebra import linear
from weft.relax.op.selection import masked_fill
from weft.support import slots
from weft.support.missing import MissingNameError

_OTHERS = (
    "builtin", "ccl", "dense", "distributed", "image", "linalg", "linear", "masked_fill", "memory",
    "nn", "relu", "vision", "vm",
)  # fmt: skip
"""Names in this namespace that are modules or functions, not rows of operators."""


def _names() -> list[str]:
    return sorted({*[name for name in FUNCTIONS if "." not in name], *_OTHERS})


__all__ = list(_names())


def __getattr__(name: str) -> Callable[..., Call]:
    """The operator of that name; ``relu`` and ``dense`` are found here as well as in ``nn``."""
    own = f"nn.{name}" if name in ("dense", "relu") else name
    function = FUNCTIONS.get(own) or function_of_plugin(own, __name__)
    if function is None:
        if any(item.startswith(f"{name}.") for item in FUNCTIONS):
            return Namespace(name)
        raise MissingNameError(f"there is no graph operator {name!r}", name, _names, "relax.op.")
    return function


def __dir__() -> list[str]:
    return _names()


_LATE = {
    "bind_params": "weft.relax.rewrite.binding",
    "bind_symbolic_vars": "weft.relax.rewrite.binding",
    "inline_functions": "weft.relax.rewrite.binding",
}
"""Functions that need the block builder, which is above this package: imported at first use."""


class RelaxOperators:
    """The object in the slot: operators by name, and the few functions that nodes call."""

    call_global = staticmethod(call_global)
    make_shape = staticmethod(ShapeExpr)
    struct_info_equal = staticmethod(lattice.struct_info_equal)
    struct_info_is_base_of = staticmethod(lattice.struct_info_is_base_of)
    result_info = staticmethod(lattice.result_info)

    def __getattr__(self, name: str) -> Callable[..., object]:
        """A function of _LATE, or the operator of that name."""
        if name in _LATE:
            late: Callable[..., object] = getattr(importlib.import_module(_LATE[name]), name)
            return late
        return __getattr__(name)


slots.relax_operators.fill(RelaxOperators())
