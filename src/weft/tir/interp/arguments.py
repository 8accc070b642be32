"""Random arguments for PrimFuncs: what ``verify=True`` runs them on."""

from __future__ import annotations

import math
import zlib
from typing import Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.support.dtype import DataType
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.values import Value

MOST_ELEMENTS: Final = 1 << 24
"""A function with a larger argument is not run."""

PERIOD: Final = 262_139
"""Random numbers that are drawn for one argument, at most."""


def random_arguments(name: str, func: PrimFunc, seed: int, size: int) -> list[Value] | None:
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
    known = Analyzer().simplify(substitute(extent, values)) if values else extent
    return known.value if isinstance(known, IntImm) else size


def _scalar(dtype: DataType, size: int) -> object:
    return dtype.numpy.type(size) if dtype.is_float else size


def random_values(
    random: np.random.Generator, dtype: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Normal floats, booleans, small integers that may serve as indices.

    Large arrays repeat after ``PERIOD`` elements, a prime, so that no two rows are alike.
    """
    count = math.prod(shape)
    drawn = min(count, PERIOD)
    if dtype.element.is_float:
        values = random.standard_normal(drawn).astype(dtype.element.numpy)
    elif dtype.is_bool:
        values = random.integers(0, 2, drawn).astype("bool")
    else:
        values = random.integers(0, 4, drawn).astype(dtype.element.numpy)
    return np.resize(values, shape) if count > drawn else values.reshape(shape)
