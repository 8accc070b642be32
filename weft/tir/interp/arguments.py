"""Random arguments for PrimFuncs: what ``verify=True`` runs them on."""

from __future__ import annotations

import math
import zlib
from typing import Any, Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.support.dtype import DataType
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

MOST_ELEMENTS: Final = 1 << 24
"""A function with a larger argument is not run."""


def random_arguments(name: str, func: PrimFunc, seed: int, size: int) -> list[Any] | None:
    """Arguments of a function, every symbol ``size``; None where one has too many elements.

    The same name and seed give the same arguments.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    arguments = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            arguments.append(_scalar(param.dtype, size))
            continue
        shape = tuple([_extent(extent, size) for extent in buffer.shape])
        if math.prod(shape) > MOST_ELEMENTS:
            return None
        arguments.append(random_values(random, buffer.dtype, shape))
    return arguments


def _extent(extent: PrimExpr, size: int) -> int:
    values = {var: IntImm(var.dtype, size) for var in collect(extent, Var)}
    found = Analyzer().simplify(substitute(extent, values)) if values else extent
    return found.value if isinstance(found, IntImm) else size


def _scalar(dtype: DataType, size: int) -> Any:
    return dtype.numpy.type(size) if dtype.is_float else size


def random_values(
    random: np.random.Generator, dtype: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Normal floats, booleans, small integers that may serve as indices."""
    if dtype.element.is_float:
        return np.asarray(random.standard_normal(shape)).astype(dtype.element.numpy)
    if dtype.is_bool:
        return np.asarray(random.integers(0, 2, shape)).astype("bool")
    return np.asarray(random.integers(0, 4, shape)).astype(dtype.element.numpy)
