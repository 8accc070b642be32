"""What vector instructions of processors compute, by the name of their LLVM intrinsic.

The interpreter of TensorIR calls these functions. Each takes the lanes of its arguments as numpy
arrays and returns the lanes of the result as exact integers, which the caller wraps to the type.
The references are Intel's Intrinsics Guide and the Arm Architecture Reference Manual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

Lanes = Any
"""One number a lane, in a numpy array."""


def dot_four_bytes(total: Lanes, unsigned: Lanes, signed: Lanes) -> Lanes:
    """``vpdpbusd``: four products of an unsigned and a signed byte, added to each int32."""
    a = _split(unsigned, np.dtype("uint8"))
    b = _split(signed, np.dtype("int8"))
    return total.astype("int64") + (a * b).reshape(-1, 4).sum(axis=1)


def multiply_add_pairs(a: Lanes, b: Lanes) -> Lanes:
    """``vpmaddwd``: products of int16, added in pairs."""
    products = a.astype("int64") * b.astype("int64")
    return products.reshape(-1, 2).sum(axis=1)


def dot_two_words(total: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """``vpdpwssd``: two products of int16, added to each int32."""
    words = np.dtype("int16")
    return total.astype("int64") + multiply_add_pairs(_split(a, words), _split(b, words))


def multiply_add_bytes(unsigned: Lanes, signed: Lanes) -> Lanes:
    """``vpmaddubsw``: products of an unsigned and a signed byte, added in pairs, saturated."""
    products = unsigned.astype("int64") * signed.astype("int64")
    return np.clip(products.reshape(-1, 2).sum(axis=1), -(2**15), 2**15 - 1)


def dot_bytes(total: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """``sdot``, ``udot``: four products of bytes of one sign, added to each 32-bit number."""
    products = a.astype("int64") * b.astype("int64")
    return total.astype("int64") + products.reshape(-1, 4).sum(axis=1)


def widened_product(a: Lanes, b: Lanes) -> Lanes:
    """``smull``: products of twice the width."""
    return a.astype("int64") * b.astype("int64")


def sums_of_pairs(*vectors: Lanes) -> Lanes:
    """``saddlp``, ``addp``: sums of neighbouring lanes, of one vector after the other."""
    return np.concatenate(vectors).astype("int64").reshape(-1, 2).sum(axis=1)


def _split(value: Lanes, parts: np.dtype[Any]) -> Lanes:
    """The bytes or words of each lane, lowest first, as int64."""
    return np.ascontiguousarray(value.astype("int32")).view(parts).astype("int64")


INTRINSICS: Final[dict[str, Callable[..., Lanes]]] = {
    "llvm.x86.avx512.vpdpbusd.512": dot_four_bytes,
    "llvm.x86.avx512.vpdpbusd.256": dot_four_bytes,
    "llvm.x86.avx512.vpdpbusd.128": dot_four_bytes,
    "llvm.x86.avx512.vpdpwssd.512": dot_two_words,
    "llvm.x86.avx512.vpdpwssd.256": dot_two_words,
    "llvm.x86.avx512.vpdpwssd.128": dot_two_words,
    "llvm.x86.avx512.pmaddw.d.512": multiply_add_pairs,
    "llvm.x86.avx2.pmadd.wd": multiply_add_pairs,
    "llvm.x86.sse2.pmadd.wd": multiply_add_pairs,
    "llvm.x86.avx512.pmaddubs.w.512": multiply_add_bytes,
    "llvm.x86.avx2.pmadd.ub.sw": multiply_add_bytes,
    "llvm.x86.ssse3.pmadd.ub.sw.128": multiply_add_bytes,
    "llvm.aarch64.neon.sdot.v4i32.v16i8": dot_bytes,
    "llvm.aarch64.neon.udot.v4i32.v16i8": dot_bytes,
    "llvm.aarch64.neon.smull.v8i16": widened_product,
    "llvm.aarch64.neon.saddlp.v4i32.v8i16": sums_of_pairs,
    "llvm.aarch64.neon.addp.v4i32": sums_of_pairs,
}
