"""What the compiler knows of one family of processors: a row of plain data.

Everything that names a processor, an instruction or a feature stands in such a row (``x86.py``,
``aarch64.py``); the rest of weft asks the row of the target's triple. Features have LLVM's names.

What needs features says so in a text: ``+`` joins those that it takes, a blank separates choices,
and an empty text needs none (``weft.backends.cpu.isa.features.offers``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Statement(NamedTuple):
    """An instruction as a statement of LLVM IR."""

    declaration: str
    call: str


class Intrinsic(NamedTuple):
    """An instruction as a function of LLVM IR, and what its last operands are: (type, value)."""

    name: str
    rest: tuple[tuple[str, str], ...] = ()


class Loading(NamedTuple):
    """How the addresses in relocatable code are filled in: types of relocation in ELF files."""

    address: int
    """The whole address, in 8 bytes."""
    distance: int
    """The distance from the place, in 4 bytes."""
    call: int
    """The same to a function, or to a jump to it where the function is far away."""
    entries: tuple[int, ...]
    """The same to the entry of a symbol in the table of addresses."""
    jump: bytes
    """Jumps to the address in an entry; its last 4 bytes, the distance to that, follow."""


NOTHING = Statement("", "")
"""Stands where a processor has no such instruction."""


@dataclass(frozen=True, eq=False)
class Architecture:
    """A family of processors; the defaults hold for one of which nothing is known."""

    name: str
    """The first word of LLVM's triples."""
    aliases: tuple[str, ...] = ()
    """Other names that systems and triples have for it."""
    elf_machine: int = 0
    """Its number in the header of ELF files."""
    relocations: frozenset[int] = frozenset()
    """The types of relocation that code of weft has, by their numbers in ELF files."""
    loading: Loading | None = None
    """For the runtime's own loader; None: LLVM loads code."""
    pause: Statement = NOTHING
    """Tells the processor that a thread looks at one place until it changes."""

    # Processors and features.

    processors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """LLVM's name of a processor -> the instruction sets that it has."""
    other_processors: frozenset[str] | None = None
    """Names that LLVM knows beside those; None: all others are left to LLVM."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Feature -> those that LLVM turns on with it; where one of them is turned off, so is it."""
    instruction_features: str = ""
    """A pattern of the beginnings of features that are instructions, not tuning."""
    kernel_features: tuple[str, ...] = ()
    """Features that kernels make use of, as ``weft doctor`` tells them."""
    always: frozenset[str] = frozenset()
    """Features that calls need: LLVM ends the process where they are off."""
    portable: str = ""
    """A target whose code runs on most processors of the family, and which these are."""

    # Linux's words for what the processor has.

    linux_line: str = ""
    """How the line of features in ``/proc/cpuinfo`` begins."""
    linux_names: Mapping[str, str] = field(default_factory=dict)
    """LLVM's name of a feature -> Linux's, without ``.``, ``-`` and ``_``, where they differ."""
    bundles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Features that are other features together, without ``.``, ``-`` and ``_``."""

    # Vectors.

    vectors: tuple[tuple[int, str], ...] = ((128, ""),)
    """Bits of a vector register and what it needs, the widest first."""
    preferred: int = 0
    """Vectors of so many bits are to be preferred, where LLVM by itself prefers shorter ones."""
    wide_processors: Mapping[str, str] = field(default_factory=dict)
    """Processors that are not in ``processors`` -> the feature by which they have the widest."""
    registers: tuple[tuple[int, int], ...] = ((0, 32),)
    """Of vectors of so many bits and more there are so many registers, the widest first."""
    fuses: str = ""
    """What a product and a sum in one instruction, rounded once, needs."""
    has_maximum: bool = False
    """Whether one instruction is the maximum of two floats, NaN where one is."""
    masked: tuple[tuple[int, str], ...] = ()
    """Bits of elements of which a load leaves lanes out, and what that needs, the fewest first."""
    rich: str | None = None
    """What the instructions of ``rich_operations`` need; None: there are none."""
    looks_up: tuple[tuple[int, str], ...] = ()
    """Lanes of float32 of which one instruction picks any, and what it needs, the most first."""
    dot_products: Mapping[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Bits of a vector -> instructions that multiply small integers and add some products, and what
    each needs, the best first."""
    byte_dots: frozenset[str] = frozenset()
    """Those that take unsigned and signed bytes, four products at a time."""

    # Intrinsics of LLVM.

    prefix: str = ""
    """How the names of its own intrinsics begin."""
    intrinsic_needs: tuple[tuple[str, str], ...] = ()
    """How the name of an intrinsic goes on (a pattern), and what it needs; the first that fits
    counts."""
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    """Operation and type of vector -> the intrinsic: ``"min f32x4"``. ``min`` and ``max`` give the
    second operand where both are zeros or one is NaN; ``majority`` the bits that two of three have;
    ``scale`` x * 2**power in the lanes of a mask; ``permute`` the lanes that places name;
    ``truncate`` the whole part, the least integer where none fits."""
