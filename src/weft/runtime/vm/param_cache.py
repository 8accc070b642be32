"""Weights that programs find by name: ``vm.builtin.ndarray_cache.*`` and ``param_array_*``.

TVM's language models load a folder of weights into one table of the process, then ask for them by a
prefix and a number, or by names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.runtime.device import Device
from weft.runtime.ndarray import NDArray
from weft.runtime.param_folder import load_ndarray_cache
from weft.support.errors import IRKeyError, IRValueError

_WEIGHTS: Final[dict[str, NDArray]] = {}


def _load(cache_path: str, device_type: int, device_id: int) -> None:
    """Add the weights of a folder to the table."""
    _WEIGHTS.update(load_ndarray_cache(cache_path, Device(device_type, device_id))[0])


def _update(name: str, array: NDArray, override: bool = False) -> None:
    """Add one array; IRValueError for a name that is taken, unless ``override``."""
    if name in _WEIGHTS and not override:
        raise IRValueError(f"ndarray_cache.update: there is a {name!r} already")
    _WEIGHTS[name] = array


def _named(names: Sequence[str]) -> list[NDArray]:
    """The arrays of these names, in order; IRKeyError for one that is not there."""
    missing = [str(name) for name in names if str(name) not in _WEIGHTS]
    if missing:
        raise IRKeyError(f"param_array_from_cache_by_name: there is no {', '.join(missing[:8])}")
    return [_WEIGHTS[str(name)] for name in names]


def _numbered(prefix: str, num_params: int) -> list[NDArray]:
    """``prefix_0``, ``prefix_1`` ...: so many, or for -1 all up to the first that is not there."""
    arrays: list[NDArray] = []
    while num_params < 0 or len(arrays) < num_params:
        name = f"{prefix}_{len(arrays)}"
        if name not in _WEIGHTS:
            break
        arrays.append(_WEIGHTS[name])
    if len(arrays) < num_params:
        raise IRKeyError(f"param_array_from_cache: there is no {prefix}_{len(arrays)}")
    return arrays


BUILTINS: Final[dict[str, Callable[..., object]]] = {
    "ndarray_cache.clear": _WEIGHTS.clear,
    "ndarray_cache.get": _WEIGHTS.get,
    "ndarray_cache.load": _load,
    "ndarray_cache.remove": lambda name: _WEIGHTS.pop(name, None),
    "ndarray_cache.update": _update,
    "param_array_from_cache": _numbered,
    "param_array_from_cache_by_name": _named,
    "param_array_from_cache_by_name_unpacked": lambda *names: _named(names),
}
"""Name without ``vm.builtin.`` -> function."""
