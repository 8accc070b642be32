"""The kinds of CPUs for which the rules of MetaSchedule have intrinsics, under TVM's names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.features import first_offered
from weft.backends.cpu.tensor_intrin import x86
from weft.target.features import required_features
from weft.target.host import llvm_options
from weft.target.target import Target


@dataclass(frozen=True)
class SearchKind:
    """What the rules of a design space assume of a CPU."""

    name: str
    architecture: str = ""
    """The family of processors; empty: any."""
    needs: str = ""
    """The features that a processor of this kind has, as the tables of ``isa`` write them."""
    intrinsics: tuple[str, ...] = ()
    """Names of the tensor intrinsics that products of small integers are tiled around."""
    jobs_per_core: int = 16
    """The most parallel iterations for each core."""
    lanes: int = 64
    """The largest innermost tile, and the longest loop that becomes a vector."""
    unroll_steps: tuple[int, ...] = (0, 16, 64, 512)
    """The limits of unrolling that are tried."""


PLAIN: Final = SearchKind("llvm")
"""A CPU without instructions for small integers."""
_ARM: Final = partial(
    SearchKind, architecture="aarch64", jobs_per_core=8, lanes=32, unroll_steps=(0, 8, 32, 256)
)
_X86: Final = partial(SearchKind, architecture="x86_64")
_ARM_DOTS: Final = (
    "dot_4x4_i8i8s32_sdot", "dot_4x4_u8u8u32_udot", "dot_4x4_u8u8i32_hdot"
)  # fmt: skip
SEARCH_KINDS: Final = (
    PLAIN,
    _X86("vnni", needs="avx512vnni avxvnni", intrinsics=(x86.VNNI_DOT_16x4_INTRIN,)),
    _X86("avx512", needs="avx512bw+avx512f", intrinsics=(x86.AVX512_DOT_16x4_INTRIN,)),
    _ARM("dotprod", needs="dotprod", intrinsics=_ARM_DOTS),
    _ARM("asimd", needs="neon", intrinsics=("dot_4x4_i8i8s32_neon",)),
)
"""All kinds; where a processor is of several, the first one after ``PLAIN`` counts."""


def search_kind_of(target: Target) -> SearchKind:
    """The kind of the CPU that a target describes.

    >>> [search_kind_of(Target(f"llvm -mcpu={cpu}")).name for cpu in ("core2", "cascadelake")]
    ['llvm', 'vnni']
    """
    options = llvm_options(target)
    family = architecture_of(options.triple).name
    rows = [(kind, kind.needs) for kind in SEARCH_KINDS if kind.architecture == family]
    return first_offered(set(required_features(options)), rows, PLAIN)
