"""8-bit floats of a torch graph: tensors of their bits, and names of their own for operators.

A node that takes or gives such tensors is looked up as ``aten._to_copy.default (float8)``; its
converter gets tensors of uint8 where torch has 8-bit floats. They live inside of a graph only.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from weft.relax.frontend.float_codes import Encoding, encoding_of

FLOAT8: Final = " (float8)"
"""What follows the name of an overload where it is called on 8-bit floats."""
_ONE_ZERO: Final = frozenset({torch.float8_e4m3fnuz, torch.float8_e5m2fnuz})
"""Those in which the code of -0 is no number."""
FLOAT8_TYPES: Final = _ONE_ZERO | {torch.float8_e4m3fn, torch.float8_e5m2}
AS_BITS: Final = (
    "give its bits, x.view(torch.uint8), and let the model read them, x.view({dtype}), or give "
    "float32"
)
"""What to do about an input or a result of 8-bit floats."""


def is_float8(value: object) -> bool:
    """Whether a tensor or a data type is one of 8-bit floats."""
    kind = value.dtype if isinstance(value, torch.Tensor) else value
    return isinstance(kind, torch.dtype) and kind in FLOAT8_TYPES


@functools.cache
def values_of(dtype: torch.dtype) -> npt.NDArray[Any]:
    """The float32 value of every code."""
    codes = torch.arange(256, dtype=torch.uint8)
    values: npt.NDArray[Any] = codes.view(dtype).to(torch.float32).numpy()
    return values


@functools.cache
def encoding(dtype: torch.dtype) -> Encoding:
    """How float32 becomes such a float; what is too large becomes what this torch makes of it.

    From some version on that is the largest float8_e4m3fn; before, it was no number.
    """
    ends = torch.tensor([math.inf, math.nan]).to(dtype).view(torch.uint8)
    overflow, nan = ends.tolist()
    return encoding_of(np.copy(values_of(dtype)), overflow, nan, dtype not in _ONE_ZERO)
