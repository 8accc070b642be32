"""``R``: the names of graph scripts (``from weft.script import relax as R``)."""

from __future__ import annotations

import sys
from collections import abc
from typing import Any, Final

from weft.ir.module import IRModule
from weft.relax.dpl.rewrite import PatternMatchingRewriter
from weft.relax.expr import Call as _Call
from weft.relax.expr import Expr as _Expr
from weft.relax.expr import RelaxLike as _RelaxLike
from weft.script.ir_builder import relax as _build
from weft.script.ir_builder.relax_info import InfoLike as _InfoLike
from weft.script.ir_builder.relax_info import as_struct_info
from weft.script.parser.entry import decorate, parse_definition
from weft.script.parser.macro import make_macro


def function(
    f: abc.Callable[..., object] | None = None,
    /,
    *,
    pure: bool = True,
    private: bool = False,
    check_well_formed: bool = True,
) -> Any:
    """Parse a function as a graph of operators.

    Args:
        f: the function; left out where ``@R.function(...)`` has arguments.
        pure: it has no effect but its result. A function that is not pure calls what has
            effects.
        private: without ``global_symbol``: nothing outside of its module calls it.
        check_well_formed: refuse a graph that breaks a rule of the language.

    >>> from weft.script import relax as R
    >>> @R.function
    ... def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
    ...     with R.dataflow():
    ...         y = R.matmul(x, w)
    ...         z = R.nn.relu(y)
    ...         R.output(z)
    ...     return z
    >>> main.ret_struct_info.dtype
    'float32'
    """
    options = {"private": private, "pure": pure}
    if f is not None:
        return decorate(f, "relax", options, check_well_formed)

    def apply(given: abc.Callable[..., object]) -> Any:
        return decorate(given, "relax", options, check_well_formed)

    return apply


function.dispatch_token = "relax"  # type: ignore[attr-defined] # as TVM has it


def macro(*args: object, hygienic: bool = True) -> Any:
    """Make a function whose body is written into the script at each call: ``@R.macro``.

    Args:
        args: the function, where ``@R.macro`` has no arguments.
        hygienic: names mean what they mean where the macro is defined, not where it is called.
    """
    return make_macro("relax", args, hygienic)


def rewriter(mod: type) -> PatternMatchingRewriter:
    """Make a rewriter of graphs from a class: it replaces ``pattern`` by ``replacement``.

    >>> from weft.script import relax as R
    >>> @R.rewriter
    ... class AddToMultiply:
    ...     @R.function
    ...     def pattern(x: R.Tensor((4,), "float32")):
    ...         return R.add(x, x)
    ...
    ...     @R.function
    ...     def replacement(x: R.Tensor((4,), "float32")):
    ...         return R.multiply(x, R.const(2.0, "float32"))
    """
    module: IRModule = parse_definition(mod, sys._getframe(1), "ir", {}, True)
    return PatternMatchingRewriter.from_module(module)


rewriter.dispatch_token = "ir"  # type: ignore[attr-defined] # as TVM has it


def Call(  # noqa: N802 - R.Call
    op: _Expr | str,
    args: _RelaxLike,
    attrs: abc.Mapping[str, object] | None = None,
    sinfo_args: abc.Sequence[_InfoLike] = (),
) -> _Call:
    """Make the node of a call as it is written: ``R.Call("relax.add", (x, y), attrs={...})``.

    ``R.add(x, y)`` checks its arguments and fills in attributes; this does not.
    """
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


def __dir__() -> list[str]:
    return sorted({"function", "macro", "rewriter", "Call", *dir(_build)})
