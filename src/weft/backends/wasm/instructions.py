"""The instructions in a function's body: where each begins, and which are made exact.

LLVM 22 takes ``relaxed_min`` and ``relaxed_max`` wherever ``pmin`` and ``pmax`` would fit, if an
engine has relaxed SIMD. Of these an engine may return any operand where one is NaN, and weft's
formulas count on which. So they are written back as what they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.backends.wasm.binary import Reader, unsigned

VECTOR: Final = 0xFD
"""The prefix of instructions on vectors of 128 bits; a number follows."""
_BULK, _ATOMIC = 0xFC, 0xFE
EXACT: Final = {0x10D: 0xEA, 0x10E: 0xEB, 0x10F: 0xF6, 0x110: 0xF7}
"""relaxed_min and relaxed_max of f32x4, then of f64x2 -> pmin and pmax; both take two bytes."""
_NUMBERS: Final = {
    **dict.fromkeys([0x02, 0x03, 0x04, 0x0C, 0x0D, 0x10, 0x12, *range(0x20, 0x27)], 1),
    **dict.fromkeys([0x3F, 0x40, 0x41, 0x42, 0xD0, 0xD2], 1),
    **dict.fromkeys([0x11, 0x13], 2),
}
"""Instruction -> how many numbers follow: indices, types of blocks, integer constants."""
_BULK_NUMBERS: Final = {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}
_SELECT, _BRANCH_TABLE, _FLOAT, _DOUBLE = 0x1C, 0x0E, 0x43, 0x44


def instructions(body: bytes) -> Iterator[tuple[int, int]]:
    """The place of each vector instruction's number in a function's body, and that number."""
    reader = Reader(body)
    for _ in reader.times():  # local variables
        reader.number()
        reader.byte()
    while reader:
        code = reader.byte()
        if code == VECTOR:
            at, number = reader.at, reader.number()
            yield at, number
            _skip_vector(reader, number)
        elif code == _BULK:
            _skip_numbers(reader, _BULK_NUMBERS.get(reader.number(), 0))
        elif code == _ATOMIC:
            _skip_address(reader) if reader.number() != 3 else reader.byte()
        elif 0x28 <= code <= 0x3E:
            _skip_address(reader)
        elif code in (_SELECT, _BRANCH_TABLE):
            _skip_numbers(reader, reader.number() + (code == _BRANCH_TABLE))
        elif code in (_FLOAT, _DOUBLE):
            reader.take(4 if code == _FLOAT else 8)
        else:
            _skip_numbers(reader, _NUMBERS.get(code, 0))


def _skip_numbers(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.number()


def _skip_address(reader: Reader) -> None:
    """Pass over what an access has: alignment, the number of a memory if it says so, an offset."""
    names_memory = reader.number() & 0x40
    _skip_numbers(reader, 2 if names_memory else 1)


def _skip_vector(reader: Reader, number: int) -> None:
    """Pass over what follows a vector instruction: an address, a constant, a lane."""
    is_lane_access = 84 <= number <= 91
    if number <= 11 or is_lane_access or number in (92, 93):
        _skip_address(reader)
    if number in (12, 13):
        reader.take(16)
    elif 21 <= number <= 34 or is_lane_access:
        reader.byte()


def made_exact(body: bytes) -> bytes:
    """A function's body with the instructions of ``EXACT`` replaced."""
    if not any(bytes([VECTOR]) + unsigned(number) in body for number in EXACT):
        return body
    changed = bytearray(body)
    for at, number in instructions(body):
        if number in EXACT:
            changed[at : at + 2] = unsigned(EXACT[number])
    return bytes(changed)
