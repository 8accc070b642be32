"""Comparison of results: arrays within tolerances, index expressions by proof, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import as_prim_expr
from weft.support.errors import IRValueError
from weft.testing.constraints import (
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
)

__all__ = [
    "as_array", "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true",
    "check_int_constraints_trans_consistency", "check_numerical_grads",
]  # fmt: skip


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
    named ones. Gradients and differences may be apart (Euclidean distance) by ``atol * sqrt(n)``,
    n being their size, and ``rtol`` times the length of the differences.
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
        given = as_array(gradients[key])
        if given.shape != inputs[key].shape:
            raise AssertionError(
                f"gradient of input {key}: expected shape {inputs[key].shape}, got {given.shape}"
            )
        found = _differences(total, inputs, key, delta)
        found = np.where(_off(given, found, atol, rtol), _refined(total, inputs, key, delta), found)
        _check_gradient(key, given, found, atol, rtol)


def _off(given: Any, found: Any, atol: float, rtol: float) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = np.abs(given - found) > atol + rtol * np.abs(found)
    return result


def _check_gradient(key: Any, given: Any, found: Any, atol: float, rtol: float) -> None:
    distance = float(np.linalg.norm(given - found))
    allowed = atol * float(np.sqrt(given.size)) + rtol * float(np.linalg.norm(found))
    if not np.isfinite(distance):
        raise IRValueError(f"gradient of input {key}: a value is NaN or infinite: {given}, {found}")
    if distance > allowed:
        off = _off(given, found, atol, rtol)
        first = tuple(int(axis) for axis in np.argwhere(off)[0])
        raise AssertionError(
            f"gradient of input {key}: {int(off.sum())} of {off.size} elements are wrong; at "
            f"{first} expected about {found[first]:g}, got {given[first]:g}; the distance is "
            f"{distance:g}, allowed are {allowed:g}"
        )


def _refined(
    total: Callable[[Mapping[Any, Any]], float], inputs: dict[Any, Any], key: Any, delta: float
) -> np.ndarray[Any, Any]:
    """Differences with the leading term of the error removed, from two step widths."""
    wide, narrow = (_differences(total, inputs, key, step) for step in (delta, delta / 2))
    result: np.ndarray[Any, Any] = (4 * narrow - wide) / 3
    return result


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
