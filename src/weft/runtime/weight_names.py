"""Names of weights: of a PyTorch parameter, an ONNX initializer, a bound argument.

Code needs no names; pictures and reports tell by them which weight a kernel takes. So names are no
part of arrays, but noted beside them for as long as they live: by importers, and by passes that
compute a weight of others.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Final

from weft.runtime.ndarray import NDArray

_NAMES: Final[weakref.WeakKeyDictionary[NDArray, str]] = weakref.WeakKeyDictionary()


def name_weight(array: NDArray, name: str) -> NDArray:
    """Note the name that a model gives an array; gives the array.

    >>> import numpy as np
    >>> weight_name(name_weight(NDArray(np.zeros(3)), "linear.bias"))
    'linear.bias'
    """
    _NAMES[array] = name
    return array


def name_weights(arrays: Sequence[NDArray], names: Sequence[str | None] | None) -> None:
    """Note the names of arrays, as a file has them; a file of an earlier weft has none."""
    for array, name in zip(arrays, names or [None] * len(arrays), strict=True):
        if name is not None:
            name_weight(array, name)


def weight_name(array: NDArray) -> str | None:
    """The name that was noted for an array."""
    return _NAMES.get(array)


def inherit_name(array: NDArray, sources: Iterable[NDArray]) -> NDArray:
    """Give an array that was computed of others the name of the largest one with a name.

    >>> import numpy as np
    >>> weight, scale = (name_weight(NDArray(np.ones(n)), f"conv.{n}") for n in (8, 2))
    >>> weight_name(inherit_name(NDArray(np.ones(8)), [scale, weight]))
    'conv.8'
    """
    named = [source for source in sources if source in _NAMES]
    if named:
        _NAMES[array] = _NAMES[max(named, key=lambda source: source.size)]
    return array


def weight_label(array: NDArray, number: int) -> str:
    """The name of a weight, or its number, with its type and shape.

    >>> import numpy as np
    >>> weight_label(NDArray(np.zeros((2, 3), "float32")), 4)
    'constant4 float32[2, 3]'
    """
    return f"{weight_name(array) or f'constant{number}'} {array.dtype}{list(array.shape)}"
