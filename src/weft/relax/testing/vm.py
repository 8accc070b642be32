"""Functions that tests of the virtual machine call by the names that TVM's tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import register_func
from weft.runtime.vm.virtual_machine import VirtualMachine


def _add(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() + b.numpy())


def _mul(a: NDArray, b: NDArray) -> NDArray:
    return array(a.numpy() * b.numpy())


def _equal_zero(a: NDArray) -> NDArray:
    return array(np.all(a.numpy() == 0))


def _subtract_one(a: NDArray) -> NDArray:
    return array(a.numpy() - 1)


def _identity(a: NDArray, b: NDArray) -> None:
    array(a.numpy()).copyto(b)


def _tile(a: NDArray, b: NDArray) -> None:
    array(np.tile(a.numpy(), (1, 2))).copyto(b)


FUNCTIONS: Final[dict[str, Callable[..., object]]] = {
    "move": lambda value: value,
    "add": _add,
    "mul": _mul,
    "equal_zero": _equal_zero,
    "subtract_one": _subtract_one,
    "identity": _identity,
    "tile": _tile,
    "add_scalar": lambda a, b: a + b,
    "get_device_id": lambda device: device.device_id,
    "check_if_defined": lambda value: value is not None,
}
"""Name without ``test.vm.`` -> function."""

for _name, _function in FUNCTIONS.items():
    register_func(f"test.vm.{_name}", _function, override=True)


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: NDArray) -> NDArray:
    """The result of a function; asserts that a saved call of it returns the same."""
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    result: NDArray = vm[func_name](*inputs)
    again: NDArray = vm[saved]()
    np.testing.assert_allclose(result.numpy(), again.numpy(), rtol=1e-7, atol=1e-7)
    return result
