"""Graph operators: ``relax.op.<name>``; importing the package registers all of them.

Fills the slot ``relax_operators``: what Python's operators on graph expressions, struct infos and
functions call.
"""

from __future__ import annotations

import importlib
from typing import Any

from weft.relax import lattice
from weft.relax.expr import ShapeExpr
from weft.relax.op import base, builtin, memory, nn, vm
from weft.relax.op.base import *  # noqa: F403 - one public namespace, a file for each family
from weft.relax.op.binary import *  # noqa: F403
from weft.relax.op.create import *  # noqa: F403
from weft.relax.op.definition import FUNCTIONS
from weft.relax.op.index import *  # noqa: F403
from weft.relax.op.linear_algebra import *  # noqa: F403
from weft.relax.op.manipulate import *  # noqa: F403
from weft.relax.op.nn import dense, relu
from weft.relax.op.selection import *  # noqa: F403
from weft.relax.op.statistical import *  # noqa: F403
from weft.relax.op.unary import *  # noqa: F403
from weft.support import slots

__all__ = ["builtin", "dense", "memory", "nn", "relu", "vm"]

_LATE = {
    "bind_params": "weft.relax.binding",
    "bind_symbolic_vars": "weft.relax.binding",
    "inline_functions": "weft.relax.binding",
}
"""Functions of this room that build on the block builder, imported at first use."""


class RelaxOperators:
    """The namespace in the slot: operators by name and the few functions that nodes call."""

    call_global = staticmethod(base.call_global)
    make_shape = staticmethod(ShapeExpr)
    struct_info_equal = staticmethod(lattice.struct_info_equal)
    struct_info_is_base_of = staticmethod(lattice.struct_info_is_base_of)

    def __getattr__(self, name: str) -> Any:
        """A function of _LATE, or the operator of that name."""
        if name in _LATE:
            return getattr(importlib.import_module(_LATE[name]), name)
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        raise AttributeError(f"there is no graph operator {name!r}")


slots.relax_operators.fill(RelaxOperators())
