"""The binary format of WebAssembly: numbers in LEB128, names, vectors, sections.

From the WebAssembly Core Specification, chapter 5. A ``Reader`` walks over bytes; the functions
below it write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from weft.support.errors import InternalError

MAGIC: Final = b"\0asm\1\0\0\0"
"""How every module and object begins: the magic number, and version 1."""
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START = range(9)
ELEMENT, CODE, DATA = range(9, 12)
"""Numbers of sections, in their order; 12, the count of data segments, stands before 10."""
I32: Final = 0x7F
FUNCREF: Final = 0x70
I32_CONST: Final = 0x41
GLOBAL_GET: Final = 0x23
END: Final = 0x0B


class Reader:
    """A place in some bytes, from which values are read one after the other."""

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at = data, at
        self.end = len(data) if end is None else end

    def __bool__(self) -> bool:
        return self.at < self.end

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        if self.at + count > self.end:
            raise InternalError(
                f"expected {count} more bytes of a WebAssembly object at {self.at}, found "
                f"{self.end - self.at}"
            )
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        """An unsigned number."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self) -> int:
        """A signed number."""
        begin = self.at
        value = self.number()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) else value

    def name(self) -> str:
        """A text."""
        return self.take(self.number()).decode()

    def times(self) -> Iterator[int]:
        """The places of the items of a vector, whose count comes next."""
        yield from range(self.number())

    def skip_limits(self) -> None:
        """Pass over the least and the greatest size of a memory or a table."""
        has_most = self.byte() & 1
        self.number()
        if has_most:
            self.number()


def sections(data: bytes) -> Iterator[tuple[int, Reader]]:
    """The number and the content of each section. Raises InternalError for what is no module."""
    if not data.startswith(MAGIC):
        raise InternalError(f"expected a WebAssembly object, got {len(data)} bytes of another kind")
    whole = Reader(data, len(MAGIC))
    while whole:
        number, size = whole.byte(), whole.number()
        begin = whole.at
        whole.take(size)
        yield number, Reader(data, begin, begin + size)


def unsigned(value: int) -> bytes:
    """A number in LEB128, in as few bytes as it needs.

    >>> unsigned(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def signed(value: int) -> bytes:
    """A signed number in LEB128, in as few bytes as it needs.

    >>> signed(-2).hex(), signed(64).hex()
    ('7e', 'c000')
    """
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value & 127])


def name(text: str) -> bytes:
    """A text with its length."""
    data = text.encode()
    return unsigned(len(data)) + data


def vector(items: Iterable[bytes]) -> bytes:
    """Items with their count."""
    parts = list(items)
    return unsigned(len(parts)) + b"".join(parts)


def section(number: int, content: bytes) -> bytes:
    """A section with its number and size."""
    return bytes([number]) + unsigned(len(content)) + content


def constant(value: int) -> bytes:
    """The constant expression of an i32."""
    return bytes([I32_CONST]) + signed(value) + bytes([END])


def global_value(number: int) -> bytes:
    """The constant expression of the value of an imported global."""
    return bytes([GLOBAL_GET]) + unsigned(number) + bytes([END])
