"""What passes and schedules ask about a machine: cores, vectors, multiply-add units, caches.

The backend of a target says what it has (``weft.codegen.backend.Backend.features``).
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.support import slots
from weft.target.target import TargetLike, as_target


@dataclass(frozen=True)
class Machine:
    """One processor, as far as schedules depend on it. Caches in bytes, of one core but ``l3``."""

    cores: int
    vector_bits: int
    vector_registers: int
    fma_ports: int
    l1: int
    l2: int
    l3: int
    dot_products: tuple[str, ...] = ()
    """Instructions that multiply small integers and add some products, the best first."""
    multiplies_bytes: bool = False
    """Whether one of them takes products of unsigned and signed bytes, four at a time."""
    multiplies_byte_pairs: bool = False
    """Whether one of them does so if int16 holds each sum of two neighbouring products."""
    masked_bits: int | None = None
    """Bits of the smallest elements whose loads can be masked; None if no loads can."""

    def masks(self, bits: int) -> bool:
        """Whether a masked load of elements of ``bits`` bits is as fast as a full one."""
        return self.masked_bits is not None and bits >= self.masked_bits

    def lanes(self, bits: int = 32) -> int:
        """Elements of ``bits`` bits in a vector register.

        >>> Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20).lanes()
        8
        """
        return max(self.vector_bits // bits, 1)

    def accumulator_rows(self, vectors: int) -> int:
        """How many rows of ``vectors`` vectors the registers hold, beside a product's operands.

        The operands are a row of vectors and one broadcast number.

        >>> Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20).accumulator_rows(2)
        6
        """
        return max((self.vector_registers - vectors - 1) // vectors, 0)


def vector_count(elements: int, lanes: int) -> int:
    """How many vectors hold ``elements``; the rest is divided into powers of two.

    With 8 lanes, 14 elements are one vector of 8, one of 4 and one of 2:

    >>> vector_count(14, 8)
    3
    """
    whole, rest = divmod(elements, lanes)
    return whole + rest.bit_count()


def machine_of(target: TargetLike | None = None) -> Machine:
    """The machine that code for ``target`` (None: this machine's CPU) is made for.

    >>> machine_of("llvm -num-cores=4").cores
    4
    """
    resolved = as_target("llvm" if target is None else target)
    machine: Machine = slots.backend_of.get()(resolved).features(resolved)
    return machine
