"""``R``: the names of graph scripts (``from weft.script import relax as R``)."""

from __future__ import annotations

import sys
from collections import abc
from typing import Any, Final

from weft.ir.module import IRModule
from weft.relax.dpl.rewrite import PatternMatchingRewriter
from weft.relax.expr import Call as _Call
from weft.script.ir_builder import relax as _build
from weft.script.ir_builder.relax_info import as_struct_info
from weft.script.parser.entry import decorate, parse_definition
from weft.script.parser.macro import make_macro


def function(
    f: abc.Callable[..., Any] | None = None,
    /,
    *,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
) -> Any:
    """Parse a function as a graph: ``@R.function`` or ``@R.function(private=True)``."""
    options = {"private": private, "pure": pure}
    if f is not None:
        return decorate(f, "relax", options, check_well_formed)

    def apply(given: abc.Callable[..., Any]) -> Any:
        return decorate(given, "relax", options, check_well_formed)

    return apply


function.dispatch_token = "relax"  # type: ignore[attr-defined] # as TVM has it


def macro(*args: Any, hygienic: bool = True) -> Any:
    """A part of a script to be expanded where it is called: ``@R.macro``."""
    return make_macro("relax", args, hygienic)


def rewriter(mod: type) -> PatternMatchingRewriter:
    """Parse a class with ``pattern`` and ``replacement`` as a rewriter: ``@R.rewriter``."""
    made: IRModule = parse_definition(mod, sys._getframe(1), "ir", {}, True)
    return PatternMatchingRewriter.from_module(made)


rewriter.dispatch_token = "ir"  # type: ignore[attr-defined] # as TVM has it


def Call(op: Any, args: Any, attrs: Any = None, sinfo_args: Any = ()) -> Any:  # noqa: N802 - R.Call
    """The node of a call, nothing added: ``R.Call("relax.add", (x, y), attrs={...})``."""
    return _Call(op, args, attrs, [as_struct_info(info) for info in sinfo_args])


_PROXIES: Final = {
    "CallableProxy": "Callable", "ObjectProxy": "Object", "ShapeProxy": "Shape",
    "TensorProxy": "Tensor", "TupleProxy": "Tuple",
}  # fmt: skip
"""What TVM's module ``script.parser.relax.entry`` calls the annotations."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "entry":
        return sys.modules[__name__]
    name = _PROXIES.get(name, name)
    return getattr(_build, name)
