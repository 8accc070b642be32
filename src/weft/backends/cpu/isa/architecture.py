"""What the compiler knows of one family of processors: a row of plain data.

Everything that names a processor, an instruction or a feature stands in such a row (``x86.py``,
``aarch64.py``); the rest of weft asks the row of the target's triple. Features have LLVM's names.

Needs are written as a text: ``"avx512vnni+avx512vl avxvnni"`` means both of the first two or the
third. ``+`` joins features that are needed together, a blank separates choices, and an empty text
needs nothing (``weft.backends.cpu.isa.features.offers``).
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
    """An instruction as a function of LLVM IR, and the (type, value) of its last operands."""

    name: str
    rest: tuple[tuple[str, str], ...] = ()


class Loading(NamedTuple):
    """Numbers of the relocation types in ELF files by which our own loader fills in addresses."""

    address: int
    """Writes the whole address of a symbol, in 8 bytes."""
    distance: int
    """Writes the distance from here to a symbol, in 4 bytes."""
    call: int
    """Writes the distance to a function, or to a jump to it if the function is too far away."""
    entries: tuple[int, ...]
    """Write the distance to the symbol's entry in the table of addresses (GOT)."""
    jump: bytes
    """The code that jumps to the address in such an entry; the 4-byte distance to it follows."""
    number: int
    """Writes a number of 4 bytes: a place in a table for debuggers."""
    ret: bytes
    """The code that returns from a function."""


NOTHING = Statement("", "")
"""Stands for an instruction that the processor does not have."""


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
    """The numbers of the relocation types that weft's code contains."""
    loading: Loading | None = None
    """What the runtime's own loader needs; None: LLVM loads the code."""
    is_position_independent: bool = True
    """Whether code finds its data wherever the program is loaded to."""
    is_reordered: bool = True
    """Whether LLVM puts the instructions of a block into another order before it allocates
    registers, where nobody asks it not to (weft.codegen.llvm.register_tiles)."""
    pause: Statement = NOTHING
    """Tells the processor that a thread is waiting in a loop for memory to change."""

    # Processors and features.

    processors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """LLVM's name of a processor -> the instruction sets that it has."""
    other_processors: frozenset[str] | None = None
    """Other names that LLVM knows; a name that is in neither is an error. None: LLVM decides."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Feature -> the features that LLVM turns on with it. Turning one of these off turns it off."""
    instruction_features: str = ""
    """A pattern that matches the start of features that are instructions, not tuning."""
    kernel_features: tuple[str, ...] = ()
    """The features that kernels use; ``weft doctor`` prints which of them there are."""
    always: frozenset[str] = frozenset()
    """Features that must stay on: without them LLVM aborts the process at the first call."""
    portable: str = ""
    """For error messages: a target for most processors of the family, and which these are."""
    runs_elsewhere: str = (
        "write the model with export_library (a library for C) or save (a file for weft.load), "
        "copy that to a machine of the target, and run it there"
    )
    """For error messages: how a model runs whose code this machine cannot run."""
    package: str = ""
    """``module:function`` that writes a model as a folder, where models are no single files."""

    # The text of its assembly, as LLVM writes it.

    register_names: Mapping[str, int] = field(default_factory=dict)
    """A pattern of names of vector registers -> their bits, the widest first."""
    spill: str = ""
    """A pattern of an instruction that stores a vector register in the stack frame."""

    # Linux's names of features.

    linux_line: str = ""
    """How the line of features in ``/proc/cpuinfo`` begins."""
    linux_names: Mapping[str, str] = field(default_factory=dict)
    """LLVM's name of a feature -> Linux's name, where they differ; without ``.``, ``-``, ``_``."""
    bundles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Feature -> the features that it stands for; without ``.``, ``-``, ``_``."""

    # Vectors.

    vectors: tuple[tuple[int, str], ...] = ((128, ""),)
    """(bits of a vector register, what it needs), the widest first."""
    preferred: int = 0
    """The bits of a vector that LLVM is told to prefer where it would prefer shorter ones."""
    wide_processors: Mapping[str, str] = field(default_factory=dict)
    """Processor that is not in ``processors`` -> the feature that gives it the widest vectors."""
    registers: tuple[tuple[int, int], ...] = ((0, 32),)
    """(bits, registers): how many registers there are for vectors of at least so many bits, the
    widest first."""
    fuses: str | None = ""
    """What a multiply-add in one instruction, rounded once, needs; None: there is none."""
    calls_to_fuse: frozenset[int] = frozenset()
    """Bits of floats for which a function of the backend's runtime multiplies and adds."""
    converts_half: bool = True
    """Whether LLVM can convert float16 to and from float32; else integers of its bits do it."""
    rounds: bool = False
    """Whether LLVM has instructions for the int32 that is nearest to a float32."""
    has_maximum: bool = False
    """Whether one instruction computes the maximum of two floats, NaN if one of them is NaN."""
    masked: tuple[tuple[int, str], ...] = ()
    """(bits of an element, what it needs): loads that leave lanes out, for elements of at least so
    many bits; the fewest bits first."""
    rich: str | None = None
    """What the instructions of ``rich_operations`` need; None: the family has none of them."""
    looks_up: tuple[tuple[int, str], ...] = ()
    """(lanes, what it needs): instructions that pick any of so many float32, the most first."""
    dot_products: Mapping[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Bits of a vector -> (instruction, what it needs): instructions that multiply small integers
    and add some of the products, the best first."""
    byte_dots: frozenset[str] = frozenset()
    """The ``dot_products`` of four unsigned with four signed bytes."""
    byte_pair_dots: frozenset[str] = frozenset()
    """Those of them that are wrong where int16 does not hold the sum of the first two products, or
    of the last two."""

    # Intrinsics of LLVM.

    prefix: str = ""
    """How the names of the family's own intrinsics begin."""
    intrinsic_needs: tuple[tuple[str, str], ...] = ()
    """(pattern of the rest of an intrinsic's name, what it needs); the first match counts."""
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    """Operation and type of vector -> the intrinsic, as in ``"min f32x4"``. ``min`` and ``max``
    return the second operand if both are zeros or one is NaN; ``majority`` returns the bits that
    two of three have; ``scale`` is x * 2**power in the lanes of a mask; ``permute`` returns the
    lanes that its indices name; ``truncate`` is the integer part, or the least integer if the value
    fits in none."""

    def vector_registers(self, bits: int) -> int:
        """How many registers hold vectors of so many bits.

        >>> from weft.backends.cpu.isa import architecture_of
        >>> x86 = architecture_of("x86_64-linux-gnu")
        >>> x86.vector_registers(256), x86.vector_registers(512)
        (16, 32)
        """
        return next(count for least, count in self.registers if bits >= least)
