"""Guards that torch cannot prove for all sizes, and weft's own arithmetic can.

While torch traces a model it notes what it takes for granted about symbolic sizes, such as that
``n // 160 + 1`` does not divide 1. It refuses a model with guards that it cannot prove for the
whole range, and its report lists them. Where all of these are proved here, the model is right for
all sizes, and torch can be asked to export it without looking at guards.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.support.errors import TVMError
from weft.tir import op as tir_op
from weft.tir.expr import Var

_COMPLAINT: Final = re.compile(r"^\s*- (.*)$", re.MULTILINE)
_GUARD: Final = re.compile(
    r"Not all values of \w+ = (?P<size>\S+) in the specified range (?P<range>.*) satisfy the "
    r"generated guard (?P<guard>.*?)\.?$"
)
_SIZE: Final = re.compile(r"L(?:\['\w+'\]|\[\d+\]|\.\w+)+?\.size\(\)\[\d+\]")
_LIMIT: Final = re.compile(r"^(?:(\d+) <= )?\w+(?: <= (\d+))?$")
_OPERATIONS: Final[dict[type, Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: tir_op.floordiv, ast.Mod: tir_op.floormod,
    ast.Eq: tir_op.equal, ast.NotEq: tir_op.not_equal, ast.Lt: tir_op.less,
    ast.LtE: tir_op.less_equal, ast.Gt: tir_op.greater, ast.GtE: tir_op.greater_equal,
}  # fmt: skip
_ROUNDED: Final = {"ceil": tir_op.ceildiv, "floor": tir_op.floordiv}


def are_proved(report: str) -> bool:
    """Whether torch's report complains of guards only, and each holds for all sizes in its range.

    >>> guard = " - Not all values of n = L['x'].size()[0] in the specified range {} <= n <= 99 "
    >>> guard += "satisfy the generated guard (1 % (1 + (L['x'].size()[0] // 8))) != 0."
    >>> are_proved(guard.format(8)), are_proved(guard.format(7))
    (True, False)
    """
    complaints = _COMPLAINT.findall(report)
    return bool(complaints) and all(map(_is_proved, complaints))


def _is_proved(complaint: str) -> bool:
    parts = _GUARD.match(complaint)
    limits = None if parts is None else _LIMIT.match(parts["range"])
    if parts is None or limits is None:
        return False
    analyzer = Analyzer()
    variables: dict[str, Var] = {}
    for size in dict.fromkeys([parts["size"], *_SIZE.findall(parts["guard"])]):
        variables[size] = Var(f"size{len(variables)}", "int64")
        analyzer.bind_nonnegative(variables[size])
    variable, (low, high) = variables[parts["size"]], limits.groups()
    if high is not None:
        bounds = Range(IntImm("int64", int(low or 0)), IntImm("int64", int(high) + 1))
        analyzer.bind(variable, bounds, allow_override=True)
    names = {variable.name: variable for variable in variables.values()}
    text = _SIZE.sub(lambda size: variables[size[0]].name, parts["guard"])
    try:
        return analyzer.can_prove(_expression(ast.parse(text, mode="eval").body, names))
    except (SyntaxError, KeyError, TVMError):
        return False


def _expression(node: ast.expr, names: dict[str, Var]) -> PrimExpr:
    """The expression of a guard as torch prints it; KeyError for what is not understood."""
    match node:
        case ast.Constant(value=int(value)):
            return IntImm("int64", value)
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left, operation, right) | ast.Compare(left, [operation], [right]):
            operate = _OPERATIONS[type(operation)]
            return operate(_expression(left, names), _expression(right, names))
        case ast.Call(
            ast.Attribute(ast.Name("math"), rounding), [ast.BinOp(left, ast.Div(), right)], []
        ):
            divide: Callable[..., PrimExpr] = _ROUNDED[rounding]
            return divide(_expression(left, names), _expression(right, names))
    raise KeyError(ast.dump(node))
