"""Arithmetic on dimensions: proofs that two are equal or different, products, broadcasting.

Struct-info rules and passes use these functions: they compare constants directly, and need an
Analyzer (weft.arith) only for symbolic expressions. A dimension is an int64 PrimExpr.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.expr import Extent, IntImm, PrimExpr, as_prim_expr, constant_value
from weft.ir.functor import substitute
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.expr import Mul, Var
from weft.tir.op import floordiv
from weft.topi.extents import cannot_stretch

INT64 = DataType("int64")


def same_dim(lhs: Extent, rhs: Extent) -> bool:
    """Whether both dimensions are proved equal."""
    if lhs is rhs:
        return True
    left, right = constant_value(lhs), constant_value(rhs)
    if left is not None and right is not None:
        return left == right
    if structural_equal(lhs, rhs):
        return True
    return Analyzer().can_prove_equal(as_prim_expr(lhs), as_prim_expr(rhs))


def differ(lhs: Extent, rhs: Extent) -> bool:
    """Whether both dimensions are proved different."""
    left, right = constant_value(lhs), constant_value(rhs)
    if left is not None and right is not None:
        return left != right
    if lhs is rhs or structural_equal(lhs, rhs):
        return False
    difference = Analyzer().simplify(as_prim_expr(lhs - rhs))
    return isinstance(difference, IntImm) and difference.value != 0


def same_dims(lhs: Sequence[Extent] | None, rhs: Sequence[Extent] | None) -> bool:
    """Whether both shapes are known, have the same rank, and are proved equal."""
    if lhs is None or rhs is None or len(lhs) != len(rhs):
        return False
    return all(same_dim(a, b) for a, b in zip(lhs, rhs, strict=True))


def simplified(dim: Extent) -> PrimExpr:
    """The dimension in simplest form."""
    if isinstance(dim, IntImm):
        return dim
    if isinstance(dim, int):
        return IntImm(INT64, dim)
    return Analyzer().simplify(dim)


def with_symbols(dim: PrimExpr, values: Mapping[Var, Extent]) -> PrimExpr:
    """The dimension with symbols replaced; in simplest form where one became a number.

    >>> from weft import tir
    >>> n = tir.Var("n", "int64")
    >>> with_symbols(n * 2 + 1, {n: 4})
    T.int64(9)
    """
    known = {var: op.cast(var.dtype, value) for var, value in values.items()}
    replaced = substitute(dim, known)
    is_fixed = any(isinstance(value, IntImm) for value in known.values())
    return simplified(replaced) if is_fixed else replaced


def product(dims: Iterable[Extent]) -> PrimExpr:
    """The number of elements of a shape, in simplest form."""
    constant, symbolic = 1, None
    for dim in dims:
        value = constant_value(dim)
        if value is not None:
            constant *= value
        else:
            symbolic = dim if symbolic is None else symbolic * dim
    if symbolic is None or constant == 0:
        return IntImm(INT64, constant)
    return as_prim_expr(symbolic) if constant == 1 else simplified(symbolic * constant)


def factors(dims: Iterable[Extent]) -> tuple[int, list[Extent]]:
    """The constant factor and the other factors of a product: ``(4, n * 2)`` gives (8, [n])."""
    constant, others = 1, []
    waiting = list(dims)
    while waiting:
        dim = waiting.pop(0)
        value = constant_value(dim)
        if value is not None:
            constant *= value
        elif isinstance(dim, Mul):
            waiting[:0] = [dim.a, dim.b]
        else:
            others.append(dim)
    return constant, others


def quotient(dims: Iterable[Extent], divisors: Iterable[Extent]) -> PrimExpr:
    """The product of ``dims`` divided by that of ``divisors``, without common factors.

    ``quotient([n, 8], [n, 2])`` is 4; a divisor of 0 gives 0.
    """
    number, above = factors(dims)
    divisor, below = factors(divisors)
    if divisor == 0:
        return IntImm(INT64, 0)
    left = []
    for factor in below:
        place = next((i for i, other in enumerate(above) if same_dim(factor, other)), None)
        if place is None:
            left.append(factor)
        else:
            above.pop(place)
    common = math.gcd(number, divisor) or 1
    whole = product([*above, number // common])
    rest = product([*left, divisor // common])
    return whole if constant_value(rest) == 1 else simplified(floordiv(whole, rest))


def broadcast(lhs: Sequence[Extent], rhs: Sequence[Extent]) -> list[Extent] | str | None:
    """The broadcast shape; None if it cannot be decided; an error text if the shapes differ."""
    joint = broadcast_extents(lhs, rhs)
    if isinstance(joint, str):
        return joint
    decided = [dim for dim in joint if dim is not None]
    return decided if len(decided) == len(joint) else None


def broadcast_extents(lhs: Sequence[Extent], rhs: Sequence[Extent]) -> list[Extent | None] | str:
    """As ``broadcast``, but None for each extent that cannot be decided."""
    result: list[Extent | None] = []
    for offset in range(1, max(len(lhs), len(rhs)) + 1):
        a = lhs[-offset] if offset <= len(lhs) else None
        b = rhs[-offset] if offset <= len(rhs) else None
        if a is None or b is None:
            result.append(b if a is None else a)
            continue
        left, right = constant_value(a), constant_value(b)
        if left is not None and right is not None and left != right and 1 not in (left, right):
            return f"{left} and {right} at axis {-offset}"
        result.append(_broadcast_extent(a, b))
    return result[::-1]


def _broadcast_extent(a: Extent, b: Extent) -> Extent | None:
    """What two extents are together, whatever their symbols are; None if that depends on them.

    What a kernel compares when it runs (``topi.extents.broadcast_indices``) need not be decided
    here: where one of two extents is not 1, the other is 1 or equal to it.
    """
    if constant_value(a) == 1:
        return b
    if constant_value(b) == 1 or same_dim(a, b):
        return a
    if constant_value(a) is not None or constant_value(b) is not None:
        return b if constant_value(a) is None else a
    if cannot_stretch(a, b):
        return a
    return b if cannot_stretch(b, a) else None
