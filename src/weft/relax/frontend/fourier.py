"""Discrete Fourier transforms as graph expressions, for every importer.

A transform along an axis is a product with the matrix of its sines and cosines. One of a length
over ``DIRECT`` that has factors is done in two steps of its factors with a rotation in between
(Cooley and Tukey, 1965), so that matrices stay small. Complex numbers are two tensors of one shape:
the real parts, and the imaginary parts, or None for numbers that are real.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr, as_prim_expr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.ir.lattice import tensor_dims
from weft.tir import op as tir_op

Planes = tuple[Expr, Expr | None]
Factor = PrimExpr | float
"""A number that scales results, or a float64 expression of a symbolic length."""
Matrix = np.ndarray
DIRECT: Final = 512
"""The longest transform that is one product; its two float32 matrices have 2 MiB."""


@dataclass(frozen=True)
class Transform:
    """One transform along one axis; symbolic numbers make its matrices at run time.

    Attributes:
        length: the number of points.
        used: inputs that there are; the others count as zeros.
        count: results that are wanted, from the first on.
        inverse: with the exponent's other sign.
        mirrored: the inputs are the first half of a spectrum whose other half mirrors it
            (the results are then real: read the first plane).
        scale: a factor of all results; with a symbolic length it may be a float64 expression.
    """

    length: Extent
    used: Extent
    count: Extent
    inverse: bool = False
    mirrored: bool = False
    scale: Factor = 1.0


def full_transform(length: Extent, *, inverse: bool = False, scale: Factor = 1.0) -> Transform:
    """All results from all inputs."""
    return Transform(length, length, length, inverse, scale=scale)


def scale_of(normalization: str, length: Extent) -> Factor:
    """The factor of one axis: 1 ("none"), 1 / sqrt(length) ("by root of length") or 1 / length."""
    if normalization == "none":
        return 1.0
    if isinstance(length, int):
        divisor = math.sqrt(length) if normalization == "by root of length" else length
        return 1 / divisor if divisor else 1.0
    wide = tir_op.cast("float64", as_prim_expr(length))
    return 1 / (tir_op.sqrt(wide) if normalization == "by root of length" else wide)


def transformed(
    builder: BlockBuilder, planes: Planes, axis: int, transform: Transform
) -> tuple[Expr, Expr]:
    """The transform of complex numbers along an axis.

    Args:
        builder: where the expressions are emitted.
        planes: real and imaginary parts, floats, with ``transform.used`` elements along ``axis``.
        axis: counted from the front.
        transform: which one.

    Returns:
        Real and imaginary parts, with ``transform.count`` elements along ``axis``.
    """
    rank = len(_dims(planes[0]))
    order = [*(index for index in range(rank) if index != axis), axis]
    rows = _each(builder, planes, lambda part: op.permute_dims(part, order))
    results = _rows_transformed(builder, rows, transform)
    back = [order.index(index) for index in range(rank)]
    return _both(builder, results, lambda part: op.permute_dims(part, back))


def product(
    builder: BlockBuilder, planes: Planes, matrices: tuple[Expr, Expr]
) -> tuple[Expr, Expr]:
    """Rows of complex numbers times a complex matrix: (..., n) by (n, m)."""
    return _multiplied(builder, planes, matrices, op.matmul)


def times(builder: BlockBuilder, planes: Planes, factors: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
    """The products of complex numbers, one by one; shapes broadcast."""
    return _multiplied(builder, planes, factors, op.multiply)


def _multiplied(
    builder: BlockBuilder,
    planes: Planes,
    factors: tuple[Expr, Expr],
    multiply: Callable[[Expr, Expr], Expr],
) -> tuple[Expr, Expr]:
    """(a + bi)(c + di) by a real product; an imaginary part that is None is 0."""
    emit = builder.emit
    (real, imaginary), (first, second) = planes, factors
    real_part, imaginary_part = emit(multiply(real, first)), emit(multiply(real, second))
    if imaginary is not None:
        real_part = emit(op.subtract(real_part, emit(multiply(imaginary, second))))
        imaginary_part = emit(op.add(imaginary_part, emit(multiply(imaginary, first))))
    return real_part, imaginary_part


def transform_matrix(transform: Transform) -> Matrix:
    """exp(-2 pi i j k / length), scaled, for inputs j and results k, as complex128."""
    length, used, count = (
        expect(extent, int) for extent in (transform.length, transform.used, transform.count)
    )
    places = np.outer(np.arange(used), np.arange(count)) % length
    sign = 2j if transform.inverse else -2j
    matrix: Matrix = np.exp(sign * np.pi / length * places) * transform.scale
    if transform.mirrored:
        twice = np.full(used, 2.0)
        twice[0] = 1.0
        if length % 2 == 0 and used == length // 2 + 1:
            twice[-1] = 1.0
        matrix = matrix * twice[:, None]
    return matrix


def _rows_transformed(
    builder: BlockBuilder, rows: Planes, transform: Transform
) -> tuple[Expr, Expr]:
    """The transform along the last axis."""
    dtype = str(rows[0].struct_info.dtype)
    length = transform.length
    extents = (length, transform.used, transform.count)
    if not isinstance(length, int) or not all(isinstance(extent, int) for extent in extents):
        return product(builder, rows, _symbolic_matrices(builder, transform, dtype))
    factor = _factor(length) if length > DIRECT and not transform.mirrored else 1
    if factor > 1 and transform.used == length:
        results = _in_two_steps(builder, rows, transform, factor)
        if transform.count == length:
            return results
        axis, count = len(_dims(results[0])) - 1, transform.count
        return _both(builder, results, lambda part: op.strided_slice(part, [axis], [0], [count]))
    return product(builder, rows, constants(transform_matrix(transform), dtype))


def constants(matrix: Matrix, dtype: str) -> tuple[Expr, Expr]:
    """Real and imaginary parts of a complex matrix as constants."""
    return const(matrix.real.astype(dtype)), const(matrix.imag.astype(dtype))


def _in_two_steps(
    builder: BlockBuilder, rows: Planes, transform: Transform, first: int
) -> tuple[Expr, Expr]:
    """length = first * second: input n is second * a + b, result k is c + first * d."""
    length, dtype = expect(transform.length, int), str(rows[0].struct_info.dtype)
    second = length // first
    outer = _dims(rows[0])[:-1]
    rank = len(outer)
    tables = _each(builder, rows, lambda part: op.reshape(part, [*outer, first, second]))
    inverse = transform.inverse
    inner = transformed(builder, tables, rank, full_transform(first, inverse=inverse))
    sign = 2j if transform.inverse else -2j
    places = np.outer(np.arange(first), np.arange(second))
    turns = np.exp(sign * np.pi / length * places) * transform.scale
    turned = times(builder, inner, constants(turns, dtype))
    ended = _rows_transformed(builder, turned, full_transform(second, inverse=inverse))
    order = [*range(rank), rank + 1, rank]
    ordered = _both(builder, ended, lambda part: op.permute_dims(part, order))
    return _both(builder, ordered, lambda part: op.reshape(part, [*outer, length]))


def _factor(length: int) -> int:
    """The smallest factor from the square root on; 1 of a prime number."""
    low = next(low for low in range(math.isqrt(length), 0, -1) if length % low == 0)
    return length // low if low > 1 else 1


def _symbolic_matrices(
    builder: BlockBuilder, transform: Transform, dtype: str
) -> tuple[Expr, Expr]:
    """The matrix of a transform whose length is known at run time, computed there."""
    emit = builder.emit
    length = as_prim_expr(transform.length).astype("int64")
    points = PrimValue(length.astype("float64"))
    places = [
        emit(op.reshape(emit(op.arange(as_prim_expr(extent), dtype="int64")), shape))
        for extent, shape in ((transform.used, [-1, 1]), (transform.count, [1, -1]))
    ]
    turns = emit(op.floor_mod(emit(op.multiply(*places)), PrimValue(length)))
    whole = emit(op.multiply(emit(op.astype(turns, "float64")), const(2 * math.pi, "float64")))
    angle = emit(op.divide(whole, points))
    scale = transform.scale
    weight = PrimValue(scale if isinstance(scale, PrimExpr) else FloatImm("float64", scale))
    sine_weight = weight if transform.inverse else PrimValue(-weight.value)
    planes = []
    for function, factor in ((op.cos, weight), (op.sin, sine_weight)):
        plane = emit(op.multiply(emit(function(angle)), factor))
        if transform.mirrored:
            plane = emit(op.multiply(plane, _mirror_weights(builder, places[0], length)))
        planes.append(emit(op.astype(plane, dtype)))
    return planes[0], planes[1]


def _mirror_weights(builder: BlockBuilder, place: Expr, length: PrimExpr) -> Expr:
    """2 for inputs that have a mirror image, 1 for the first one and for the middle one."""
    emit = builder.emit
    twice = emit(op.add(place, place))
    is_first = emit(op.equal(place, const(0, "int64")))
    alone = emit(op.logical_or(is_first, emit(op.equal(twice, PrimValue(length)))))
    return emit(op.where(alone, const(1.0, "float64"), const(2.0, "float64")))


def _each(builder: BlockBuilder, planes: Planes, function: Callable[[Expr], Expr]) -> Planes:
    real, imaginary = planes
    if imaginary is None:
        return builder.emit(function(real)), None
    return _both(builder, (real, imaginary), function)


def _both(
    builder: BlockBuilder, planes: tuple[Expr, Expr], function: Callable[[Expr], Expr]
) -> tuple[Expr, Expr]:
    return builder.emit(function(planes[0])), builder.emit(function(planes[1]))


def _dims(tensor: Expr) -> list[Extent]:
    dims = tensor_dims(tensor.struct_info)
    assert dims is not None, "callers know the shapes of what they transform"
    return [int(dim.value) if isinstance(dim, IntImm) else dim for dim in dims]
