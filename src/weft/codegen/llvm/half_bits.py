"""float16 to and from float32 by integer operations, for targets that LLVM cannot do it on.

Both are vectors of operations without branches (F. Giesen, "Half to float done quickly" and "Float
to half done quickly", 2012 and 2013); rounding is to the nearest, halves to even.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.types import float_constant, splat, with_lanes

_SIGN16, _REST16 = 0x8000, 0x7FFF
_INFINITE_HALF: Final = 0x7C00 << 13
"""The bits of a float16 that is infinite, where those of a float32 have the same exponent."""
_INFINITE: Final = 0x7F800000
_HALF_OF_ONE: Final = 0x3F000000
"""0.5: added to a number below the normal float16, it leaves that number's bits at the end."""
_LEAST_NORMAL, _TOO_LARGE = 0x38800000, 0x47800000
"""The bits of 2**-14 and of 65536."""
_REBIAS: Final = ((15 - 127) << 23) + 0xFFF
"""What moves an exponent of float32 to that of float16 and rounds up from just above a half."""


class _Lanes:
    """Operations on 32-bit integers in a number of lanes."""

    def __init__(self, b: FunctionBuilder, lanes: int) -> None:
        self.b, self.lanes = b, lanes
        self.words, self.flags = with_lanes("i32", lanes), with_lanes("i1", lanes)
        self.floats, self.halves = with_lanes("float", lanes), with_lanes("half", lanes)
        self.short = with_lanes("i16", lanes)

    def op(self, word: str, x: str, y: int | str) -> str:
        """An operation on a value and another one or a constant."""
        other = splat("i32", str(y), self.lanes) if isinstance(y, int) else y
        return self.b.op(f"{word} {self.words} {x}, {other}")

    def test(self, word: str, x: str, bound: int) -> str:
        """A comparison with a constant."""
        return self.b.op(f"icmp {word} {self.words} {x}, {splat('i32', str(bound), self.lanes)}")

    def select(self, flag: str, x: str, y: str) -> str:
        """``x`` where ``flag``, else ``y``."""
        kind = self.words
        return self.b.op(f"select {self.flags} {flag}, {kind} {x}, {kind} {y}")

    def constant(self, value: int) -> str:
        """A number in every lane."""
        return splat("i32", str(value), self.lanes)

    def number(self, value: float) -> str:
        """A float in every lane."""
        return splat("float", float_constant(value, "float"), self.lanes)


def extended(b: FunctionBuilder, value: str, lanes: int) -> str:
    """The float32 of each float16 in ``value``; a product makes numbers below the normal ones."""
    k = _Lanes(b, lanes)
    bits = b.op(f"bitcast {k.halves} {value} to {k.short}")
    wide = b.op(f"zext {k.short} {bits} to {k.words}")
    sign = k.op("shl", k.op("and", wide, _SIGN16), 16)
    size = k.op("shl", k.op("and", wide, _REST16), 13)
    small = b.op(f"bitcast {k.words} {size} to {k.floats}")
    scaled = b.op(f"fmul {k.floats} {small}, {k.number(2.0**112)}")
    finite = b.op(f"bitcast {k.floats} {scaled} to {k.words}")
    largest = k.op("or", size, _INFINITE)
    whole = k.select(k.test("uge", size, _INFINITE_HALF), largest, finite)
    return b.op(f"bitcast {k.words} {k.op('or', whole, sign)} to {k.floats}")


def shortened(b: FunctionBuilder, value: str, lanes: int) -> str:
    """The nearest float16 of each float32 in ``value``."""
    k = _Lanes(b, lanes)
    bits = b.op(f"bitcast {k.floats} {value} to {k.words}")
    size = k.op("and", bits, 0x7FFFFFFF)
    sign = k.op("lshr", k.op("xor", bits, size), 16)
    odd = k.op("and", k.op("lshr", size, 13), 1)
    normal = k.op("lshr", k.op("add", k.op("add", size, _REBIAS), odd), 13)
    positive = b.op(f"bitcast {k.words} {size} to {k.floats}")
    moved = b.op(f"fadd {k.floats} {positive}, {k.number(0.5)}")
    small = k.op("sub", b.op(f"bitcast {k.floats} {moved} to {k.words}"), _HALF_OF_ONE)
    is_nan = k.test("ugt", size, _INFINITE)
    large = k.select(is_nan, k.constant(0x7E00), k.constant(0x7C00))
    finite = k.select(k.test("ult", size, _LEAST_NORMAL), small, normal)
    whole = k.select(k.test("uge", size, _TOO_LARGE), large, finite)
    short = b.op(f"trunc {k.words} {k.op('or', whole, sign)} to {k.short}")
    return b.op(f"bitcast {k.short} {short} to {k.halves}")
