"""Comparison of results: arrays within tolerances, index expressions by proof, gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.support.errors import IRValueError
from weft.tir.analysis.undefined_vars import undefined_vars
from weft.tir.expr import Var
from weft.tir.stmt_functor import substitute


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """A numpy array from one, a number, a list, an NDArray or a torch tensor."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray | np.generic):
        value = value.numpy()
    return np.asanyarray(value)


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raise AssertionError unless shapes are equal and |actual - desired| <= atol + rtol*|desired|.

    The shapes must agree: numpy's function of that name would broadcast a scalar.
    """
    mine, theirs = as_array(actual), as_array(desired)
    if mine.shape != theirs.shape:
        raise AssertionError(f"expected shape {theirs.shape}, got {mine.shape}")
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, verbose=True)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raise a ValueError unless both index expressions are proved equal for all their values."""
    if not Analyzer().can_prove_equal(as_prim_expr(lhs), as_prim_expr(rhs)):
        raise IRValueError(f"{lhs} and {rhs} are not proved equal")


def check_bool_expr_is_true(
    bool_expr: PrimExpr, vranges: Mapping[Var, Any], cond: PrimExpr | None = None
) -> None:
    """Raise AssertionError unless the expression holds at each point of the ranges (and ``cond``).

    Every point is tried, so the ranges should be small.
    """
    variables = [var for var in undefined_vars(bool_expr) if var in vranges]
    spans = [range(*_ends(vranges[var])) for var in variables]
    analyzer = Analyzer()
    for point in itertools.product(*spans):
        values: Any = {
            var: IntImm(var.dtype, value) for var, value in zip(variables, point, strict=True)
        }
        if cond is not None and not _holds(analyzer, cond, values):
            continue
        if not _holds(analyzer, bool_expr, values):
            where = ", ".join(f"{var} = {at}" for var, at in zip(variables, point, strict=True))
            raise AssertionError(f"{bool_expr} does not hold at {where}")


def _ends(span: Any) -> tuple[int, int]:
    start = int(span.min)
    return start, start + int(span.extent)


def _holds(analyzer: Analyzer, condition: PrimExpr, values: Any) -> bool:
    return bool(analyzer.can_prove(substitute(condition, values)))


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Sequence[Any] | Mapping[str, Any],
    grad_values: Sequence[Any] | Mapping[str, Any],
    function_value: Any = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Compare gradients with central differences of ``function``, whose result is summed.

    ``input_values`` and ``grad_values`` are sequences for positional arguments or mappings for
    named ones. An element fails if it is off by more than ``atol + rtol * |difference quotient|``.
    """
    named = isinstance(input_values, Mapping)
    pairs: Any = (
        input_values.items() if isinstance(input_values, Mapping) else enumerate(input_values)
    )
    inputs: dict[Any, Any] = {key: as_array(value) for key, value in pairs}
    gradients: Any = grad_values

    def total(values: Mapping[Any, Any]) -> float:
        result = function(**values) if named else function(*values.values())
        return float(np.sum(as_array(result), dtype="float64"))

    for key in inputs:
        expected = _differences(total, inputs, key, delta)
        given = as_array(gradients[key])
        if given.shape != expected.shape:
            raise AssertionError(
                f"gradient of input {key}: expected shape {expected.shape}, got {given.shape}"
            )
        off = np.abs(given - expected) > atol + rtol * np.abs(expected)
        if np.any(off):
            first = tuple(int(axis) for axis in np.argwhere(off)[0])
            raise AssertionError(
                f"gradient of input {key}: {int(off.sum())} of {off.size} elements are wrong; at "
                f"{first} expected about {expected[first]:g}, got {given[first]:g}"
            )


def _differences(
    total: Callable[[Mapping[Any, Any]], float], inputs: dict[Any, Any], key: Any, delta: float
) -> np.ndarray[Any, Any]:
    value = inputs[key].astype("float64")
    result = np.zeros(value.shape, "float64")
    for index in np.ndindex(value.shape):
        ends = []
        for step in (delta, -delta):
            moved = value.copy()
            moved[index] += step
            ends.append(total({**inputs, key: moved.astype(inputs[key].dtype)}))
        result[index] = (ends[0] - ends[1]) / (2 * delta)
    return result
