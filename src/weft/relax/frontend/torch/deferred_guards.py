"""Guards that torch cannot prove for all sizes, and that weft proves or checks in every call.

While torch traces a model it notes what it takes for granted about symbolic sizes, such as that
``n // 160 + 1`` does not divide 1. It refuses a model with guards that it cannot prove for the
whole range, and its report lists them. Where all of these are proved here, the model is right for
all sizes, and torch can be asked to export it without looking at guards. It then leaves each guard
in the graph as an assertion. So a guard need not hold for the few sizes at which something has an
extent of 0 or 1, which torch takes to differ from all other extents, and one that was tried for
thousands of sizes need not be proved for all: the importer makes such a guard a check at the
beginning of the function (``size_guards.py``).
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, Range
from weft.support.errors import TVMError
from weft.tir import op as tir_op
from weft.tir.expr import Var

_COMPLAINT: Final = re.compile(r"^\s*- (.*)$", re.MULTILINE)
_GUARD: Final = re.compile(
    r"Not all values of \w+ = (?P<size>\S+) in the specified range (?P<range>.*?) ?satisfy the "
    r"generated guard (?P<guard>.*?)\.?$"
)
_SIZE: Final = re.compile(r"L(?:\['\w+'\]|\[\d+\]|\.\w+)+?\.size\(\)\[\d+\]")
_LIMIT: Final = re.compile(r"^(?:(?:(\d+) <= )?\w+(?: <= (\d+))?)?$")
Number = Any
"""An int, or an expression of TensorIR."""


@dataclass(frozen=True)
class Arithmetic:
    """What the parts of a guard mean.

    ``functions`` are those of numbers by the names that torch prints; ``quotients`` those of which
    the rounding of a quotient is one of integers.
    """

    constant: Callable[[float], Number]
    operations: Mapping[type, Callable[[Number, Number], Number]]
    functions: Mapping[str, Callable[..., Number]]
    quotients: Mapping[str, Callable[[Number, Number], Number]]


def _integer(value: float) -> IntImm:
    if not isinstance(value, int):
        raise KeyError(value)
    return IntImm("int64", value)


_SYMBOLIC: Final = Arithmetic(
    _integer,
    {
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
        ast.FloorDiv: tir_op.floordiv, ast.Mod: tir_op.floormod,
        ast.Eq: tir_op.equal, ast.NotEq: tir_op.not_equal, ast.Lt: tir_op.less,
        ast.LtE: tir_op.less_equal, ast.Gt: tir_op.greater, ast.GtE: tir_op.greater_equal,
        ast.And: tir_op.logical_and, ast.Or: tir_op.logical_or,
    },
    {"min": tir_op.minimum, "max": tir_op.maximum, "not": tir_op.logical_not},
    {"math.ceil": tir_op.ceildiv, "math.floor": tir_op.floordiv},
)  # fmt: skip
_OF_INTEGERS: Final = Arithmetic(
    lambda value: value,
    {
        ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
        ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
        ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
        ast.And: operator.and_, ast.Or: operator.or_,
    },
    {
        "min": min, "max": max, "round": round, "torch.sym_float": float, "math.ceil": math.ceil,
        "math.floor": math.floor, "math.trunc": math.trunc, "not": operator.not_,
    },
    {},
)  # fmt: skip
ASSUMED_LEAST: Final = 2
"""torch lets no guard be about sizes below, and says no lower bound then."""
_MOST_TRIED: Final = 4096
"""So many sizes, or combinations of them, are tried one by one; of more, each call is checked."""


def may_be_ignored(report: str) -> bool:
    """Whether torch's report complains of guards only, and none needs its attention.

    Each holds for all sizes in its range, or for the smallest 4096, or says that an extent is not
    0 or not 1.

    >>> guard = " - Not all values of n = L['x'].size()[0] in the specified range {} <= n <= 99 "
    >>> guard += "satisfy the generated guard (1 % (1 + (L['x'].size()[0] // 8))) != 0."
    >>> may_be_ignored(guard.format(8)), may_be_ignored(guard.format(7))
    (True, False)
    """
    complaints = _COMPLAINT.findall(report)
    about_one = {item: guard for item in complaints if (guard := _about_one(item)) is not None}
    others = [item for item in complaints if item not in about_one]
    given = list(about_one.values())
    return bool(complaints) and all(_is_proved(item, given) for item in others)


def _about_one(complaint: str) -> tuple[str, ast.expr] | None:
    """(the size, the guard) if that is ``extent != 1`` (or 0) of an extent that few sizes have."""
    parts = _GUARD.match(complaint)
    text = "" if parts is None else _SIZE.sub("size", parts["guard"])
    try:
        guard = ast.parse(text, mode="eval").body
        _expression(guard, {"size": Var("size", "int64")}, _SYMBOLIC)
    except (SyntaxError, KeyError, TVMError):
        return None
    match guard:
        case ast.Compare(left, [ast.NotEq()], [ast.Constant(value=0 | 1)]):
            is_cyclic = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod)
            if not is_cyclic:
                sizes = set() if parts is None else set(_SIZE.findall(parts["guard"]))
                return (sizes.pop() if len(sizes) == 1 else "", guard)
    return None


def _says(guard: ast.expr, **sizes: int) -> bool:
    """Whether a guard holds for these sizes."""
    try:
        return bool(_expression(guard, sizes, _OF_INTEGERS))
    except ZeroDivisionError:
        return False


def _is_proved(complaint: str, given: Sequence[tuple[str, ast.expr]]) -> bool:
    """Whether a guard holds for all sizes, at least where those in ``given`` hold."""
    parts = _GUARD.match(complaint)
    limits = None if parts is None else _LIMIT.match(parts["range"])
    if parts is None or limits is None:
        return False
    low, high = (None if limit is None else int(limit) for limit in limits.groups())
    low = ASSUMED_LEAST if low is None else low
    return _holds_for_each(parts, low, high, given) or _is_proved_by_rules(parts, low, high)


def _holds_for_each(
    parts: re.Match[str], low: int, high: int | None, given: Sequence[tuple[str, ast.expr]]
) -> bool:
    """Whether the guard holds for each value of its sizes, of many for the smallest."""
    names = {size: f"size{i}" for i, size in enumerate(_sizes_of(parts))}
    count = int(_MOST_TRIED ** (1 / len(names)))
    low, most = (low, low + count) if high is None else (low, min(high + 1, low + count))
    others = [range(ASSUMED_LEAST, ASSUMED_LEAST + count)] * (len(names) - 1)
    assumed = [other for name, other in given if name == parts["size"]]
    try:
        text = _SIZE.sub(lambda size: names[size[0]], parts["guard"])
        guard = ast.parse(text, mode="eval").body
        return all(
            _says(guard, **dict(zip(names.values(), sizes, strict=True)))
            or not all(_says(other, size=sizes[0]) for other in assumed)
            for sizes in itertools.product(range(low, most), *others)
        )
    except (SyntaxError, KeyError):
        return False


def _sizes_of(parts: re.Match[str]) -> list[str]:
    """The sizes in a guard, first the one that the complaint is about."""
    return list(dict.fromkeys([parts["size"], *_SIZE.findall(parts["guard"])]))


def _is_proved_by_rules(parts: re.Match[str], low: int, high: int | None) -> bool:
    analyzer = Analyzer()
    variables: dict[str, Var] = {}
    for size in _sizes_of(parts):
        variables[size] = Var(f"size{len(variables)}", "int64")
        analyzer.bind_nonnegative(variables[size])
    variable = variables[parts["size"]]
    if high is not None:
        bounds = Range(IntImm("int64", low), IntImm("int64", high + 1))
        analyzer.bind(variable, bounds, allow_override=True)
    names = {variable.name: variable for variable in variables.values()}
    text = _SIZE.sub(lambda size: variables[size[0]].name, parts["guard"])
    try:
        return analyzer.can_prove(_expression(ast.parse(text, mode="eval").body, names, _SYMBOLIC))
    except (SyntaxError, KeyError, TVMError):
        return False


def _expression(node: ast.expr, names: Mapping[str, Number], arithmetic: Arithmetic) -> Number:
    """The value of a guard as torch prints it; KeyError for what is not understood."""
    match node:
        case ast.Constant(value=int(value) | float(value)):
            return arithmetic.constant(value)
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_expression(operand, names, arithmetic)
        case ast.UnaryOp(ast.Not(), operand):
            return arithmetic.functions["not"](_expression(operand, names, arithmetic))
        case ast.BinOp(left, operation, right) | ast.Compare(left, [operation], [right]):
            operate = arithmetic.operations[type(operation)]
            return operate(*(_expression(side, names, arithmetic) for side in (left, right)))
        case ast.BoolOp(operation, values):
            sides = [_expression(value, names, arithmetic) for value in values]
            return functools.reduce(arithmetic.operations[type(operation)], sides)
        case ast.Call(function, [ast.BinOp(left, ast.Div(), right)], []) if arithmetic.quotients:
            divide = arithmetic.quotients[ast.unparse(function)]
            return divide(*(_expression(side, names, arithmetic) for side in (left, right)))
        case ast.Call(function, arguments, []):
            call = arithmetic.functions[ast.unparse(function)]
            return call(*(_expression(item, names, arithmetic) for item in arguments))
    raise KeyError(ast.dump(node))
