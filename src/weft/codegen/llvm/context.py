"""What the functions of one LLVM module share: declarations, constants, helper functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from weft.backends.cpu.isa.architecture import Intrinsic
from weft.codegen.llvm.debug_lines import DebugLines
from weft.codegen.llvm.signature import Signature
from weft.support.errors import CodegenError

FIRST_LOOP = 2
"""The number of the first loop's metadata; 0 and 1 are the branch weights of every module."""


@dataclass
class ModuleContext:
    """Collects the text of a module; functions add to it while they are emitted.

    ``signatures`` says by name how the module's own functions are called. The flags say what the
    target's processor can do in one instruction.
    """

    contract: bool = True
    """Whether LLVM may fuse a product and a sum, which rounds once instead of twice."""
    num_cores: int = 0
    """Parallel loops run on at most so many threads (0: as many as the runtime gives)."""
    vector_bits: int = 128
    """The width of the target's vector registers."""
    scales: bool = False
    """Whether one instruction computes ``x * 2**n`` in each lane (``T.scaleb``)."""
    masked: bool = False
    """Whether a load or store under a mask costs no more than one of the whole vector."""
    any_bits: bool = False
    """Whether one instruction computes any bitwise function of three operands."""
    converts_half: bool = True
    """Whether LLVM can convert between float16 and float32 (``half_bits`` where it cannot)."""
    rounds: bool = False
    """Whether LLVM has an instruction for the int32 that is nearest to a float32."""
    has_maximum: bool = False
    """Whether one instruction is the maximum of two floats that is NaN where either is NaN."""
    looks_up: int = 0
    """How long a table is from which one instruction picks lanes (``T.lookup``); 0: none does."""
    dots: int = 0
    """How many sums of four products of bytes one instruction takes (``T.dot_four_bytes``)."""
    fused_bits: frozenset[int] = frozenset({32, 64})
    """Bits of the floats that are multiplied and added with a single rounding (``T.fma``)."""
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    """The processor's own instructions, as ``Architecture.intrinsics`` has them."""
    debug: DebugLines | None = None
    """Locations of instructions in the printed functions, for texts that are shown."""
    declarations: dict[str, str] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    signatures: dict[str, Signature] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)
    """The metadata of single loops, as text; the first one has the number ``FIRST_LOOP``."""
    imports: list[str] = field(default_factory=list)
    """LLVM IR that the program brings with it; each text once."""
    _serial: int = 0

    def unique(self, stem: str) -> str:
        """A symbol that the module does not have yet: ``const`` → ``const.1``."""
        self._serial += 1
        return f"{stem}.{self._serial}"

    def declare(self, name: str, result: str, params: str, attributes: str = "") -> str:
        """Declare an external function unless that was done before; return ``@name``."""
        operand = symbol(name)
        if name not in self.declarations:
            self.declarations[name] = f"declare {result} {operand}({params}) {attributes}"
        return operand

    def loop(self, how: Literal["full", "enable", "disable"]) -> str:
        """Metadata that tells LLVM how to unroll one loop: wholly, by a factor, or not at all."""
        number = FIRST_LOOP + 2 * len(self.loops)
        kind = f'!{number + 1} = !{{!"llvm.loop.unroll.{how}"}}'
        self.loops.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}\n{kind}")
        return f"!{number}"

    def string(self, text: str) -> str:
        """A pointer to the text as a C string: UTF-8 that ends in NUL. Equal texts share it."""
        name = self.strings.get(text)
        if name is None:
            name = f"@.str.{len(self.strings)}"
            data = native_text(text) + b"\0"
            self.strings[text] = name
            self.constants.append(
                f"{name} = private unnamed_addr constant [{len(data)} x i8] {byte_text(data)}"
            )
        return name

    def constant(self, text: str) -> str:
        """The address of constant data; ``text`` is its type and value. Equal texts share it."""
        name = self.tables.get(text)
        if name is None:
            name = self.tables[text] = f"@.table.{len(self.tables)}"
            self.constants.append(f"{name} = private unnamed_addr constant {text}, align 64")
        return name

    def text(self, header: str) -> str:
        """The whole module."""
        parts = [header, *self.constants, *self.declarations.values(), *self.helpers.values()]
        debug = [] if self.debug is None else [self.debug.text()]
        return "\n".join([*parts, *self.functions, *self.loops, *debug, ""])


_PLAIN = frozenset(range(32, 127)) - {ord('"'), ord("\\")}


def byte_text(data: bytes) -> str:
    """Bytes as an LLVM string constant."""
    return 'c"' + "".join([chr(b) if b in _PLAIN else f"\\{b:02X}" for b in data]) + '"'


def native_text(text: str) -> bytes:
    """The UTF-8 bytes of a text. Raises CodegenError where it holds a NUL, which ends a C string,
    or a character that UTF-8 cannot write.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise CodegenError(f"expected a text that UTF-8 can write, got {text!r:.80}") from error
    place = data.find(0)
    if place >= 0:
        raise CodegenError(
            f"expected a text without NUL bytes, got {text!r:.80} with one at {place}: in compiled "
            "code a name or a message ends there"
        )
    return data


def symbol(name: str) -> str:
    """``@name``, quoted where LLVM needs it."""
    if not name:
        raise CodegenError("expected the name of a function, got an empty text")
    plain = name.replace("_", "").replace(".", "").replace("$", "")
    if name.isascii() and plain.isalnum() and not name[0].isdigit():
        return f"@{name}"
    return '@"' + byte_text(native_text(name))[2:]
