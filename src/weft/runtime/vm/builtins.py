"""Builtins of the virtual machine: what bytecode does that is neither kernel nor library.

One row a builtin; each takes values of registers and returns a value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.runtime.containers import ShapeTuple
from weft.runtime.ndarray import NDArray, empty
from weft.runtime.registry import get_global_func
from weft.support.errors import (
    AssertionFault,
    IRIndexError,
    IRValueError,
    RuntimeFault,
    wrong_type,
)

RUN_OPERATOR: Final = "weft.run_operator"
"""What compiles and runs an operator; weft.driver registers it."""


def _alloc_tensor(shape: Sequence[int], dtype: str) -> NDArray:
    if any(extent < 0 for extent in shape):
        raise IRValueError(f"expected extents of 0 or more, got shape {tuple(shape)}")
    return empty(tuple(shape), dtype)


def _tuple_getitem(value: object, index: int) -> object:
    if not isinstance(value, tuple | list):
        raise wrong_type(f"expected a tuple to take field {index} of", value)
    if not 0 <= index < len(value):
        raise IRIndexError(f"field {index} of a tuple of {len(value)}")
    return value[index]


def _shape_of(value: object) -> ShapeTuple:
    if not isinstance(value, NDArray):
        raise wrong_type("shape_of: expected a tensor", value)
    return ShapeTuple(value.shape)


def _to_condition(value: object) -> bool:
    if isinstance(value, NDArray):
        if value.ndim != 0:
            raise IRValueError(f"a condition must be a scalar, got shape {tuple(value.shape)}")
        return bool(value.numpy())
    return bool(value)


def _format(fmt: str, values: tuple[object, ...], between: str) -> str:
    shown = [_shown(item) for item in values]
    return fmt.format(*shown) if fmt else between.join([str(item) for item in shown])


def _shown(value: object) -> object:
    """A tensor as an array, which takes a format; a tuple with its fields as they are printed."""
    if isinstance(value, NDArray):
        return value.numpy()
    if isinstance(value, tuple | list):
        fields = ", ".join([str(_shown(item)) for item in value])
        return f"({fields},)" if len(value) == 1 else f"({fields})"
    return value


def _print(*values: object) -> tuple[()]:
    fmt, rest = (values[0], values[1:]) if values and isinstance(values[0], str) else ("", values)
    print(_format(fmt, rest, " "))  # noqa: T201 - R.print prints
    return ()


def _debug_print(line: str, tensor: object) -> None:
    print(f"[{line}]:\n{_shown(tensor)}")  # noqa: T201 - nn.print_ prints


def _invoke_debug_func(io: object, name: str, line: str, *args: object) -> object:
    """Call a registered function beside the program; ``io`` keeps such calls in order."""
    function = get_global_func(name, allow_missing=True)
    if function is None:
        raise RuntimeFault(
            f"debug_func at {line}: no function is registered under the name {name!r}; "
            f"weft.register_func({name!r}, function) does that"
        )
    function(line, *args)
    return io


def _assert_op(condition: object, *values: Any) -> tuple[()]:
    if not _to_condition(condition):
        fmt, rest = ("", values) if not values else (values[0], values[1:])
        text = _format(fmt, rest, ", ") if values else ""
        raise AssertionFault(f"Assertion Failed: {text}" if text else "Assertion Failed")
    return ()


def _tensor_to_shape(value: NDArray) -> ShapeTuple:
    if value.ndim != 1:
        raise IRValueError(f"tensor_to_shape: expected one dimension, got {tuple(value.shape)}")
    return ShapeTuple(int(extent) for extent in value.numpy())


def check_limit(function: str, symbol: str, value: int, limit: int) -> None:
    """Refuse a symbol above what memory was planned for."""
    if value > limit:
        raise IRValueError(
            f"{function}: {symbol} is {value}, but memory was planned for at most {limit}, which "
            "the function's tir_var_upper_bound says"
        )


def operator_runner(operator: str) -> Callable[..., object]:
    """The compiler's function that runs operators; RuntimeFault where there is no compiler."""
    runner = get_global_func(RUN_OPERATOR, allow_missing=True)
    if runner is None:
        raise RuntimeFault(
            f"{operator} works on a tensor of unknown rank, dtype or shape: it is compiled when it "
            "is called, and the compiler is not loaded; import weft.driver.build, or give the "
            "tensor its shape by a match_cast"
        )
    return runner


BUILTINS: Final[dict[str, Callable[..., object]]] = {
    "alloc_tensor": _alloc_tensor,
    "assert_op": _assert_op,
    "check_limit": check_limit,
    "copy": lambda value: NDArray(value.numpy(), value.dtype),
    "debug_print": _debug_print,
    "identity": lambda value: value,
    "invoke_debug_func": _invoke_debug_func,
    "null_value": lambda: None,
    "print": _print,
    "shape_of": _shape_of,
    "shape_to_tensor": lambda shape: NDArray(np.array(shape, np.int64)),
    "tensor_to_shape": _tensor_to_shape,
    "to_condition": _to_condition,
    "tuple_getitem": _tuple_getitem,
}
"""Name -> function. Closures are made by the machine itself, which knows its functions."""
