"""Comparison of results: arrays within tolerances, index expressions by proof, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import ExprLike, as_prim_expr
from weft.support.errors import IRValueError
from weft.testing.constraints import (
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
)

__all__ = [
    "as_array", "assert_allclose", "assert_prim_expr_equal", "check_bool_expr_is_true",
    "check_int_constraints_trans_consistency", "check_numerical_grads",
]  # fmt: skip


def as_array(value: Any) -> np.ndarray:
    """A numpy array from one, a number, a list, an NDArray or a torch tensor."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "numpy") and not isinstance(value, np.ndarray | np.generic):
        value = value.numpy()
    return np.asanyarray(value)


def assert_allclose(
    actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7
) -> None:
    """Raise AssertionError unless shapes are equal and |actual - desired| <= atol + rtol*|desired|.

    The shapes must agree: numpy's function of that name would broadcast a scalar.
    """
    mine, theirs = as_array(actual), as_array(desired)
    if mine.shape != theirs.shape:
        raise AssertionError(f"expected shape {theirs.shape}, got {mine.shape}")
    np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol, verbose=True)


def assert_prim_expr_equal(lhs: ExprLike, rhs: ExprLike) -> None:
    """Raise a ValueError unless both index expressions are proved equal for all their values."""
    if not Analyzer().can_prove_equal(as_prim_expr(lhs), as_prim_expr(rhs)):
        raise IRValueError(f"{lhs} and {rhs} are not proved equal")


Arrays = Mapping[int | str, np.ndarray]
"""Arrays by the place or the name of a parameter."""


def _by_key(values: Sequence[object] | Mapping[str, object]) -> Arrays:
    if isinstance(values, Mapping):
        return {name: as_array(value) for name, value in values.items()}
    return {place: as_array(value) for place, value in enumerate(values)}


def check_numerical_grads(
    function: Callable[..., object],
    input_values: Sequence[object] | Mapping[str, object],
    grad_values: Sequence[object] | Mapping[str, object],
    function_value: object = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Compare gradients with central differences of ``function``, whose result is summed.

    ``input_values`` and ``grad_values`` are sequences for positional arguments or mappings for
    named ones. The Euclidean distance of gradients and differences may be ``atol * sqrt(n)``, with
    n their size, plus ``rtol`` times the norm of the differences.
    """
    named = isinstance(input_values, Mapping)
    inputs, gradients = _by_key(input_values), _by_key(grad_values)

    def total(values: Arrays) -> float:
        if named:
            result = function(**{str(key): value for key, value in values.items()})
        else:
            result = function(*values.values())
        return float(np.sum(as_array(result), dtype="float64"))

    for key in inputs:
        given = gradients[key]
        if given.shape != inputs[key].shape:
            raise AssertionError(
                f"gradient of input {key}: expected shape {inputs[key].shape}, got {given.shape}"
            )
        differences = _differences(total, inputs, key, delta)
        refined = _refined(total, inputs, key, delta)
        differences = np.where(_off(given, differences, atol, rtol), refined, differences)
        _check_gradient(key, given, differences, atol, rtol)


def _off(given: np.ndarray, differences: np.ndarray, atol: float, rtol: float) -> np.ndarray:
    result: np.ndarray = np.abs(given - differences) > atol + rtol * np.abs(differences)
    return result


def _check_gradient(
    key: int | str, given: np.ndarray, differences: np.ndarray, atol: float, rtol: float
) -> None:
    distance = float(np.linalg.norm(given - differences))
    allowed = atol * float(np.sqrt(given.size)) + rtol * float(np.linalg.norm(differences))
    if not np.isfinite(distance):
        raise IRValueError(
            f"gradient of input {key}: a value is NaN or infinite: {given}, {differences}"
        )
    if distance > allowed:
        off = _off(given, differences, atol, rtol)
        first = tuple(int(axis) for axis in np.argwhere(off)[0])
        raise AssertionError(
            f"gradient of input {key}: {int(off.sum())} of {off.size} elements are wrong; at "
            f"{first} expected about {differences[first]:g}, got {given[first]:g}; the distance is "
            f"{distance:g}, allowed are {allowed:g}"
        )


def _refined(
    total: Callable[[Arrays], float], inputs: Arrays, key: int | str, delta: float
) -> np.ndarray:
    """Differences with the leading term of the error removed, from two step widths."""
    wide, narrow = (_differences(total, inputs, key, step) for step in (delta, delta / 2))
    result: np.ndarray = (4 * narrow - wide) / 3
    return result


def _differences(
    total: Callable[[Arrays], float], inputs: Arrays, key: int | str, delta: float
) -> np.ndarray:
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
