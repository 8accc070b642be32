"""Index arithmetic for iteration maps: operators that fold constants, and products in order.

Extents are often int32 while the loop is int64, so operands are promoted (``weft.tir.op``). Two
constants of the same type, the common case, are computed here directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, lcm

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr, Range, integer_range
from weft.tir import op
from weft.tir.expr import Add, FloorDiv, Mul, Sub


def add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b."""
    if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype:
        return fold.wrapped(a.dtype, a.value + b.value)
    return op.add(a, b)


def sub(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a - b."""
    if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype:
        return fold.wrapped(a.dtype, a.value - b.value)
    return op.subtract(a, b)


def mul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a * b."""
    if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype:
        return fold.wrapped(a.dtype, a.value * b.value)
    return op.multiply(a, b)


def floordiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a // b; factors of a product cancel."""
    if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype and b.value:
        return fold.wrapped(a.dtype, a.value // b.value)
    quotient = _exact_quotient(a, b)
    return op.floordiv(a, b) if quotient is None else quotient


def _exact_quotient(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """a / b where the factors of a product cancel: of ``n * m * 12`` and ``m * 4``, ``n * 3``."""
    if type(a) not in (Mul, Add, Sub) or a.dtype is not b.dtype:
        return None
    (total, symbols), (number, taken) = factors(a), factors(b)
    rest = without(symbols, taken) if number and total % number == 0 else None
    return None if rest is None else ordered_product(const_like(a, total // number), *rest)


def floormod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a % b."""
    if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype and b.value:
        return fold.wrapped(a.dtype, a.value % b.value)
    return op.floormod(a, b)


def ceildiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a / b rounded up."""
    quotient = _exact_quotient(a, b)
    return quotient if quotient is not None else floordiv(add(a, sub(b, const_like(b, 1))), b)


def end_of(dom: Range) -> PrimExpr | None:
    """The first number beyond a range; None where its type has no such number."""
    if type(dom.min) is IntImm and type(dom.extent) is IntImm and dom.min.dtype is dom.extent.dtype:
        if dom.min.value + dom.extent.value > integer_range(dom.min.dtype)[1]:
            return None
    return add(dom.min, dom.extent)


def maximum(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The larger."""
    return fold.max_(*same_type(a, b))


def minimum(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The smaller."""
    return fold.min_(*same_type(a, b))


def same_type(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Both with the wider type; a constant takes the other's."""
    if a.dtype is b.dtype:
        return a, b
    if type(a) is IntImm:
        return IntImm(b.dtype, a.value), b
    if type(b) is IntImm:
        return a, IntImm(a.dtype, b.value)
    if a.dtype.bits < b.dtype.bits:
        return op.cast(b.dtype, a), b
    return a, op.cast(a.dtype, b)


def const_like(expr: PrimExpr, value: int) -> PrimExpr:
    """The constant of the type of ``expr``."""
    return fold.const(expr.dtype, value)


def factors(expr: PrimExpr) -> tuple[int, list[PrimExpr]]:
    """The constant factor of a product, and its other factors from left to right.

    A sum gives what its terms have in common: of ``n * (m * 7 + 14)`` it is 7, and ``n, m + 2``.
    """
    if type(expr) is IntImm:
        return int(expr.value), []
    if isinstance(expr, (Add, Sub)):
        return _common_factor(expr)
    if type(expr) is not Mul:
        return 1, [expr]
    (left, first), (right, second) = factors(expr.a), factors(expr.b)
    return left * right, first + second


def _common_factor(total: Add | Sub) -> tuple[int, list[PrimExpr]]:
    """The largest number that divides all terms of a sum, and the sum of the quotients."""
    terms = list(_terms(total))
    common = gcd(*[number for number, _ in terms])
    if common <= 1:
        return 1, [total]
    first, *others = [(number // common, symbol) for number, symbol in terms]
    quotient = _multiple(total, *first)
    for number, symbol in others:
        join = sub if number < 0 else add
        quotient = join(quotient, _multiple(total, abs(number), symbol))
    return common, [quotient]


def _terms(total: PrimExpr) -> Iterator[tuple[int, PrimExpr | None]]:
    """The numbers of the terms of a sum and what they multiply (None: nothing), in order."""
    waiting, rest = [], total
    while isinstance(rest, (Add, Sub)):
        number, symbol = _term(rest.b)
        waiting.append((number if type(rest) is Add else -number, symbol))
        rest = rest.a
    yield _term(rest)
    yield from reversed(waiting)


def _term(expr: PrimExpr) -> tuple[int, PrimExpr | None]:
    """The constant of a term, and what it multiplies; None for a number."""
    if type(expr) is IntImm:
        return expr.value, None
    if type(expr) is Mul and type(expr.b) is IntImm:
        return expr.b.value, expr.a
    return 1, expr


def _multiple(total: PrimExpr, number: int, symbol: PrimExpr | None) -> PrimExpr:
    """A term of a sum like ``total``."""
    if symbol is None:
        return const_like(total, number)
    return mul(symbol, const_like(symbol, number))


def ordered_product(*exprs: PrimExpr) -> PrimExpr:
    """The product with its constant factor last: ``n * 4 * m`` is ``n * m * 4``."""
    constant, symbols = 1, []
    for expr in exprs:
        value, rest = factors(expr)
        constant *= value
        symbols += rest
    if not symbols:
        return fold.const(exprs[0].dtype, constant)
    product = symbols[0]
    for symbol in symbols[1:]:
        product = mul(product, symbol)
    return product if constant == 1 else mul(product, const_like(product, constant))


def common_multiple(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """A common multiple: the least of constants; of symbols the product where none divides."""
    (value_a, symbols_a), (value_b, symbols_b) = factors(a), factors(b)
    value = const_like(a, lcm(value_a, value_b))
    unit = const_like(a, 1)
    x = ordered_product(unit, *symbols_a) if symbols_a else unit
    y = ordered_product(unit, *symbols_b) if symbols_b else unit
    for small, large in ((y, x), (x, y)):
        if product_divides(small, large) or equal(
            analyzer, floormod(large, small), const_like(large, 0)
        ):
            return mul(large, value)
    return mul(mul(x, y), value)


def equal(analyzer: Analyzer, a: PrimExpr, b: PrimExpr) -> bool:
    """Whether both are known to be equal; products whatever the order of their factors."""
    if a is b:
        return True
    if type(a) is IntImm and type(b) is IntImm:
        return bool(a.value == b.value)
    if (type(a) is Mul or type(b) is Mul) and have_same_factors(a, b):
        return True
    return analyzer.can_prove_equal(a, b)


def have_same_factors(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two products have the same factors, in whatever order."""
    (value_a, symbols_a), (value_b, symbols_b) = factors(a), factors(b)
    return (
        value_a == value_b
        and without(symbols_a, symbols_b) == []
        and (len(symbols_a) == len(symbols_b))
    )


def without(symbols: list[PrimExpr], taken: list[PrimExpr]) -> list[PrimExpr] | None:
    """``symbols`` without ``taken``, each removed as often as it occurs; None if one is missing."""
    rest = list(symbols)
    for symbol in taken:
        for position, candidate in enumerate(rest):
            if expr_deep_equal(candidate, symbol):
                del rest[position]
                break
        else:
            return None
    return rest


def product_divides(divisor: PrimExpr, value: PrimExpr) -> bool:
    """Whether the product ``value`` has all factors of ``divisor``."""
    (number, symbols), (total, others) = factors(divisor), factors(value)
    return number != 0 and total % number == 0 and without(others, symbols) is not None


def parts_counted(count: PrimExpr) -> tuple[PrimExpr, int] | None:
    """``(n + 7) // 8`` as n and 8: the number, and how much of it each of its parts has.

    None for any other expression. There are no parts only if the number is zero.
    """
    if not isinstance(count, FloorDiv) or not isinstance(count.b, IntImm):
        return None
    total, size = count.a, count.b.value
    if isinstance(total, Add) and isinstance(total.b, IntImm) and total.b.value == size - 1:
        return total.a, size
    return None
