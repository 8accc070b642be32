"""``make_node``: nodes by the names that their classes have in TVM's object system.

Generic tools build nodes from a text and fields; programs call the classes themselves.
"""

from __future__ import annotations

import importlib
from typing import Final

from weft.ir.attrs import Attrs, as_attrs
from weft.ir.node import NODE_TYPES, Node
from weft.support.errors import IRAttributeError, IRTypeError

_DEFINED_IN: Final[dict[str, tuple[str, ...]]] = {
    "relax": (
        "weft.relax.expr",
        "weft.relax.struct_info",
        "weft.relax.distributed.struct_info",
    ),
    "te": ("weft.te.operation",),
    "": ("weft.tir.function", "weft.te.operation", "weft.relax.expr"),
}
"""First part of a name -> the modules that declare such nodes; imported when asked for."""


def make_node(type_key: str, **kwargs: object) -> Node | Attrs:
    """A node of the class named ``type_key`` (``"IntImm"``, ``"tir.For"``, ``"relax.expr.Call"``).

    Fields are those of the constructor; ``"DictAttrs"`` takes any.
    """
    if type_key == "DictAttrs":
        return as_attrs(kwargs)
    kind = node_class(type_key)
    span = kwargs.pop("span", None)
    slots = kind._all_slots_
    unknown = [name for name in kwargs if name not in slots]
    if unknown:
        raise IRAttributeError(
            f"make_node: {type_key} has no field {', '.join(sorted(unknown))}; "
            f"there are: {', '.join(kind.INIT_FIELDS)}"
        )
    fields = {name: value for name, value in kwargs.items() if name in kind.INIT_FIELDS}
    try:
        return kind(**fields, span=span)
    except TypeError as error:
        if isinstance(error, IRTypeError):
            raise
        raise IRAttributeError(
            f"make_node: {type_key} needs the fields {', '.join(kind.INIT_FIELDS)}: {error}"
        ) from error


def node_class(type_key: str) -> type[Node]:
    """The class of nodes with that name; IRTypeError if there is none."""
    package, _, name = type_key.rpartition(".")
    first = package.partition(".")[0]
    for prefix in (first, ""):
        for module in _DEFINED_IN.get(prefix, ()):
            importlib.import_module(module)
        kind = NODE_TYPES.get(f"Relax{name}") if first == "relax" else None
        kind = kind or NODE_TYPES.get(name)
        if kind is not None:
            return kind
    raise IRTypeError(f"make_node: weft has no node class {type_key!r}")
