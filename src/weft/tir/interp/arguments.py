"""Random arguments for PrimFuncs, on which ``verify=True`` runs them."""

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
"""The most random numbers that are drawn for one argument."""


def random_arguments(name: str, func: PrimFunc, seed: int, size: int) -> list[Value] | None:
    """Arguments of a function, with ``size`` for every symbol; None if one is too large.

    The same name and seed give the same arguments.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    arguments = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            arguments.append(param.dtype.numpy.type(size) if param.dtype.is_float else size)
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


def random_values(
    random: np.random.Generator, dtype: DataType, shape: tuple[int, ...]
) -> np.ndarray:
    """Normally distributed floats, random booleans, or small integers that may serve as indices.

    A large array repeats after ``PERIOD`` elements; that is a prime, so that its rows still differ.
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
