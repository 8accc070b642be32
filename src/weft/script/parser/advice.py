"""What a script writes in place of functions of Python, numpy and math, which take numbers.

``np.exp(A[i])`` and ``max(A[i], 0)`` are what everyone types first. They fail on an expression in
Python's own words ("must be real number, not BufferLoad"), or worse, return a wrong value without
an error: ``max(x, y)`` of two graph values compares the objects. ``instead`` gives words that help.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

from weft.ir.expr import ExprOp, RelaxExpr
from weft.ir.op import Op
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer, BufferRegion

BUILTINS: Final[dict[str, dict[str, str]]] = {
    "tir": {
        "max": "T.max(a, b)", "min": "T.min(a, b)", "abs": "T.abs(x)", "round": "T.round(x)",
        "pow": "T.pow(x, y)", "divmod": "x // y and x % y",
        "sum": "a loop that adds each element, with T.init() for the first value",
        "len": "the extent, A.shape[0]", "int": 'T.Cast("int32", x)',
        "float": 'T.Cast("float32", x)', "bool": 'T.Cast("bool", x)',
    },
    "relax": {
        "max": "R.maximum(x, y), or R.max(x, axis) along an axis",
        "min": "R.minimum(x, y), or R.min(x, axis) along an axis",
        "abs": "R.abs(x)", "round": "R.round(x)", "pow": "R.power(x, y)", "sum": "R.sum(x, axis)",
        "len": "the extent as a number, or a symbolic one: n = T.int64()",
        "int": 'R.astype(x, "int32")', "float": 'R.astype(x, "float32")',
        "bool": 'R.astype(x, "bool")',
    },
}  # fmt: skip
"""Dialect -> function of Python -> what to write."""
SPELLINGS: Final[dict[str, dict[str, str]]] = {
    "tir": {
        "maximum": "max", "minimum": "min", "fmax": "max", "fmin": "min", "absolute": "abs",
        "fabs": "abs", "power": "pow", "float_power": "pow", "rint": "nearbyint",
        **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
        "arctan2": "atan2", "where": "if_then_else",
    },
    "relax": {
        "absolute": "abs", "fabs": "abs", "fmax": "maximum", "fmin": "minimum", "pow": "power",
        "dot": "matmul", "transpose": "permute_dims", "concatenate": "concat", "amax": "max",
        "amin": "min", "rint": "round",
        **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    },
}  # fmt: skip
"""Dialect -> name in numpy or math -> the dialect's name, where it is another."""
LETTERS: Final = {"tir": "T", "relax": "R"}
VALUES: Final[dict[str, tuple[type, ...]]] = {
    "tir": (ExprOp, Buffer, BufferRegion),
    "relax": (RelaxExpr,),
}
"""Dialect -> the values of a script, of which such a function knows nothing."""
PACKAGES: Final = {"numpy": "np", "math": "math", "torch": "torch"}


def instead(dialect: str, function: Callable[..., object], args: list[Any]) -> str | None:
    """What to write instead of a call; None if the call is none of those."""
    kinds = VALUES.get(dialect)
    if kinds is None or not any(isinstance(item, kinds) for item in args):
        return None
    name = str(getattr(function, "__name__", ""))
    if getattr(builtins, name, None) is function:
        words = BUILTINS[dialect].get(name)
        return None if words is None else _told(name, words)
    package = PACKAGES.get(_package(function))
    if package is None:
        return None
    own = SPELLINGS[dialect].get(name, name)
    letter = LETTERS[dialect]
    words = f"{letter}.{own}" if _has(dialect, own) else f"what {letter} has, such as {letter}.exp"
    return _told(f"{package}.{name}", words)


def is_silent(function: Callable[..., object]) -> bool:
    """Whether Python's function would take graph values without an error, and be wrong."""
    return function is max or function is min


def _told(name: str, words: str) -> str:
    return (
        f"{name} works on numbers, and an expression has its value only when the program runs; "
        f"write {words}"
    )


def _has(dialect: str, name: str) -> bool:
    if dialect == "tir":
        return name in vars(tir_op)
    return Op.is_registered(f"relax.{name}")


def _package(function: Callable[..., object]) -> str:
    """The top-level package of a function; numpy's ufuncs know theirs by their class."""
    place = getattr(function, "__module__", None) or type(function).__module__
    return str(place).partition(".")[0]
