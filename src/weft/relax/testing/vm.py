"""Functions that tests of the virtual machine call by the names that TVM's tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.runtime.ndarray import array
from weft.runtime.registry import register_func
from weft.runtime.vm.virtual_machine import VirtualMachine


def _add(a: Any, b: Any) -> Any:
    return array(a.numpy() + b.numpy())


def _mul(a: Any, b: Any) -> Any:
    return array(a.numpy() * b.numpy())


def _equal_zero(a: Any) -> Any:
    return array(np.all(a.numpy() == 0))


def _subtract_one(a: Any) -> Any:
    return array(a.numpy() - 1)


def _identity(a: Any, b: Any) -> None:
    array(a.numpy()).copyto(b)


def _tile(a: Any, b: Any) -> None:
    array(np.tile(a.numpy(), (1, 2))).copyto(b)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
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


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: Any) -> Any:
    """The result of a function, after a check that a saved call of it gives the same."""
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    result, again = vm[func_name](*inputs), vm[saved]()
    np.testing.assert_allclose(result.numpy(), again.numpy(), rtol=1e-7, atol=1e-7)
    return result
