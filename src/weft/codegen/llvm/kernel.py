"""Kernel: a few words for writing vector mathematics as LLVM IR, for any number of lanes.

A kernel is a function of the module on ``lanes`` float32 values, always inlined. ``F`` methods work
on float32, ``D`` on float64; products and sums that stand together are ``llvm.fmuladd``, fused
where the processor can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.types import float_constant, with_lanes

_MANGLED: Final = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}


class Kernel:
    """Emits one helper function; ``real`` is the element type that ``add``, ``fma`` ... work on."""

    def __init__(self, context: ModuleContext, lanes: int, real: str = "float") -> None:
        self.b = FunctionBuilder(context)
        self.lanes = lanes
        self.real = real

    def double(self) -> Kernel:
        """The same kernel working in float64."""
        other = Kernel.__new__(Kernel)
        other.b, other.lanes, other.real = self.b, self.lanes, "double"
        return other

    @property
    def kind(self) -> str:
        """The vector type."""
        return with_lanes(self.real, self.lanes)

    @property
    def int_element(self) -> str:
        """The integer type of the same width."""
        return "i32" if self.real == "float" else "i64"

    @property
    def ints(self) -> str:
        """The vector of such integers."""
        return with_lanes(self.int_element, self.lanes)

    @property
    def flags(self) -> str:
        """The vector of conditions."""
        return with_lanes("i1", self.lanes)

    def number(self, value: float) -> str:
        """A constant in every lane."""
        text = float_constant(value, self.real)
        return text if self.lanes == 1 else f"splat ({self.real} {text})"

    def integer(self, value: int) -> str:
        """An integer constant in every lane."""
        return str(value) if self.lanes == 1 else f"splat ({self.int_element} {value})"

    def _operand(self, value: str | float) -> str:
        return value if isinstance(value, str) else self.number(value)

    def op(self, name: str, a: str | float, b: str | float) -> str:
        """A floating-point operation: fadd, fsub, fmul, fdiv."""
        return self.b.op(f"{name} {self.kind} {self._operand(a)}, {self._operand(b)}")

    def add(self, a: str | float, b: str | float) -> str:
        """a + b."""
        return self.op("fadd", a, b)

    def sub(self, a: str | float, b: str | float) -> str:
        """a - b."""
        return self.op("fsub", a, b)

    def mul(self, a: str | float, b: str | float) -> str:
        """a * b."""
        return self.op("fmul", a, b)

    def div(self, a: str | float, b: str | float) -> str:
        """a / b."""
        return self.op("fdiv", a, b)

    def call(self, name: str, *args: str | float) -> str:
        """An LLVM intrinsic on this type."""
        suffix = _MANGLED[self.real]
        if self.lanes != 1:
            suffix = f"v{self.lanes}{suffix}"
        values = [(self.kind, self._operand(arg)) for arg in args]
        return self.b.call(f"llvm.{name}.{suffix}", self.kind, values)

    def fma(self, a: str | float, b: str | float, c: str | float) -> str:
        """a * b + c."""
        return self.call("fmuladd", a, b, c)

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """The polynomial with the constant term first."""
        result: str | float = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return str(result)

    def compare(self, test: str, a: str | float, b: str | float) -> str:
        """A comparison: olt, oge, uno ..."""
        return self.b.op(f"fcmp {test} {self.kind} {self._operand(a)}, {self._operand(b)}")

    def select(self, flag: str, a: str | float, b: str | float) -> str:
        """a where flag, else b."""
        kind = self.kind
        return self.b.op(
            f"select {self.flags} {flag}, {kind} {self._operand(a)}, {kind} {self._operand(b)}"
        )

    def clamp(self, x: str, low: float, high: float) -> str:
        """x within bounds; NaN stays."""
        x = self.select(self.compare("olt", x, low), low, x)
        return self.select(self.compare("ogt", x, high), high, x)

    def bits(self, x: str) -> str:
        """The bits of x as integers."""
        return self.b.op(f"bitcast {self.kind} {x} to {self.ints}")

    def from_bits(self, x: str) -> str:
        """The number with these bits."""
        return self.b.op(f"bitcast {self.ints} {x} to {self.kind}")

    def iop(self, name: str, a: str, b: str | int) -> str:
        """An integer operation: add, sub, and, shl, ashr ..."""
        other = b if isinstance(b, str) else self.integer(b)
        return self.b.op(f"{name} {self.ints} {a}, {other}")

    def scale(self, x: str, power: str, zero: str) -> str:
        """x * 2**power, a whole number, and 0 where ``zero`` holds, in one instruction.

        It is not run for those lanes: results below the normal numbers would be slow. Ask
        ``context.scales``.
        """
        width = next((size for size in (4, 8) if size >= self.lanes), 16)
        keep = self._negated(zero)
        parts = [
            self._scaled(
                self._part(x, at, width), self._part(power, at, width),
                self._part(keep, at, width, "i1"), width,
            )
            for at in range(0, self.lanes, width)
        ]  # fmt: skip
        return self._joined(parts, width)

    def lookup(self, table: Sequence[float], places: str) -> str:
        """``table[place % 16]`` of sixteen numbers, by permutations. Ask ``context.looks_up``."""
        width = self.b.context.looks_up
        parts = [
            self._picked(table, self._part(places, at, width, self.int_element), width)
            for at in range(0, self.lanes, width)
        ]
        return self._joined(parts, width)

    def _picked(self, table: Sequence[float], places: str, width: int) -> str:
        """A vector of numbers of a table; of one with more than a vector, by halves."""
        kind, index = f"<{width} x {self.real}>", f"<{width} x {self.int_element}>"
        if len(table) == width:
            numbers = ", ".join([f"{self.real} {float_constant(n, self.real)}" for n in table])
            permute = self.b.context.intrinsics[f"permute f32x{width}"]
            return self.b.call(permute.name, kind, [(kind, f"<{numbers}>"), (index, places)])
        half = len(table) // 2
        low, high = (self._picked(part, places, width) for part in (table[:half], table[half:]))
        # the bit that chooses becomes the sign, by which one instruction selects lanes
        up = 32 - half.bit_length()
        sign = self.b.op(f"shl {index} {places}, splat ({self.int_element} {up})")
        flag = self.b.op(f"icmp slt {index} {sign}, zeroinitializer")
        return self.b.op(f"select <{width} x i1> {flag}, {kind} {high}, {kind} {low}")

    def _joined(self, parts: list[str], width: int) -> str:
        """The lanes of vectors of ``width`` lanes, one after the other."""
        while len(parts) > 1:
            odd = ["poison"] * (len(parts) % 2)
            pairs = zip(parts[::2], [*parts[1::2], *odd], strict=True)
            parts = [self._shuffled(a, b, width, range(2 * width)) for a, b in pairs]
            width *= 2
        if self.lanes == 1:
            return self.b.op(f"extractelement <{width} x {self.real}> {parts[0]}, i64 0")
        if width == self.lanes:
            return parts[0]
        return self._shuffled(parts[0], "poison", width, range(self.lanes))

    def _negated(self, flags: str) -> str:
        ones = "true" if self.lanes == 1 else "splat (i1 true)"
        return self.b.op(f"xor {self.flags} {flags}, {ones}")

    def _scaled(self, x: str, power: str, keep: str, width: int) -> str:
        """One instruction on a vector that it takes."""
        kind, bits = f"<{width} x {self.real}>", max(width, 8)
        if width < bits:  # a mask has eight bits at least
            keep = self._shuffled(keep, "poison", width, range(bits), "i1")
        mask = self.b.op(f"bitcast <{bits} x i1> {keep} to i{bits}")
        values = [(kind, x), (kind, power), (kind, "zeroinitializer"), (f"i{bits}", mask)]
        scale = self.b.context.intrinsics[f"scale f32x{width}"]
        return self.b.call(scale.name, kind, [*values, *scale.rest])

    def _part(self, x: str, start: int, width: int, element: str = "") -> str:
        """``width`` lanes from ``start`` on; those beyond the last one are open."""
        element = element or self.real
        if self.lanes == width:
            return x
        if self.lanes == 1:
            kind = f"<{width} x {element}>"
            return self.b.op(f"insertelement {kind} poison, {element} {x}, i64 0")
        return self._shuffled(x, "poison", self.lanes, range(start, start + width), element)

    def _shuffled(self, a: str, b: str, lanes: int, places: range, element: str = "") -> str:
        """Lanes of two vectors of ``lanes`` lanes; a place beyond both is open."""
        last = lanes if b == "poison" else 2 * lanes
        mask = ", ".join([f"i32 {place}" if place < last else "i32 poison" for place in places])
        kind = f"<{lanes} x {element or self.real}>"
        picked = f"<{len(places)} x i32> <{mask}>"
        return self.b.op(f"shufflevector {kind} {a}, {kind} {b}, {picked}")

    def to_real(self, x: str) -> str:
        """Integers as numbers."""
        return self.b.op(f"sitofp {self.ints} {x} to {self.kind}")

    def widen(self, x: str) -> str:
        """float32 as float64 (call it on the float64 kernel)."""
        return self.b.op(f"fpext {with_lanes('float', self.lanes)} {x} to {self.kind}")

    def narrow(self, x: str) -> str:
        """float64 as float32 (call it on the float64 kernel)."""
        return self.b.op(f"fptrunc {self.kind} {x} to {with_lanes('float', self.lanes)}")

    def nearest(self, x: str, factor: float = 1.0) -> tuple[str, str]:
        """The nearest integer of x * factor, below 2**21, as a number and as an integer."""
        magic = 12582912.0 if self.real == "float" else 6755399441055744.0
        shifted = self.add(x, magic) if factor == 1.0 else self.fma(x, factor, magic)
        return self.sub(shifted, magic), self.iop("sub", self.bits(shifted), self.magic_bits)

    @property
    def magic_bits(self) -> int:
        """The bits of the constant that ``nearest`` adds."""
        return 0x4B400000 if self.real == "float" else 0x4338000000000000

    def finish(self, name: str, parameters: int, result: str) -> str:
        """The text of the helper function, returning ``result``."""
        kind = with_lanes("float", self.lanes)
        self.b.lines.append(f"  ret {kind} {result}")
        self.b.terminated = True
        params = ", ".join([f"{kind} %x{n}" for n in range(parameters)])
        return self.b.finish(f"define internal {kind} {name}({params}) alwaysinline nounwind")
