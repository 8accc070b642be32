"""Functions that tests of the virtual machine call by the names that TVM's tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import register_func
from weft.runtime.vm.virtual_machine import VirtualMachine

FUNCTIONS: Final[dict[str, Callable[..., object]]] = {
    "move": lambda value: value,
    "add": lambda a, b: array(a.numpy() + b.numpy()),
    "mul": lambda a, b: array(a.numpy() * b.numpy()),
    "equal_zero": lambda a: array(np.all(a.numpy() == 0)),
    "subtract_one": lambda a: array(a.numpy() - 1),
    "identity": lambda a, b: array(a.numpy()).copyto(b),
    "tile": lambda a, b: array(np.tile(a.numpy(), (1, 2))).copyto(b),
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
