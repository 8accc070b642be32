"""WebAssembly with 32-bit addresses: what every engine has since 2023, and relaxed SIMD.

The names are those of the feature table at webassembly.org; LLVM has the same.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa.architecture import Architecture

TRIPLE: Final = "wasm32-unknown-unknown"
BASE: Final = ("bulk-memory", "nontrapping-fptoint", "sign-ext", "simd128")
"""What all code here uses: Chrome and Edge from 91, Firefox from 89, Safari from 16.4, node 16."""
RELAXED: Final = (*BASE, "relaxed-simd")
"""With products and sums in one instruction; whether it rounds once is the engine's choice."""

WASM32: Final = Architecture(
    "wasm32",
    is_position_independent=False,  # one module is one program: its linker chooses addresses
    is_reordered=False,  # a machine of a stack: LLVM's backend of it leaves the order
    instruction_features="simd128|relaxed-simd|bulk-memory|nontrapping-fptoint|sign-ext|atomics",
    kernel_features=("simd128", "relaxed-simd"),
    needs={"relaxed-simd": "simd128"},
    portable='"wasm" for every engine of WebAssembly',
    vectors=((128, ""),),
    registers=((0, 16),),  # what engines map them to on x86
    fuses=None,  # whether relaxed SIMD rounds once is the engine's choice
    calls_to_fuse=frozenset({64}),  # fma in runtime.ll: functions of float64 are made of it
    converts_half=False,  # LLVM 22 does not end for some such conversions
    has_maximum=True,
    prefix="llvm.wasm.",
    intrinsic_needs=((r"relaxed\.", "relaxed-simd"),),
    package="weft.backends.wasm.package:write_package",
    runs_elsewhere=(
        "model.save(folder) writes an ES module; node or a web page runs it: "
        'import {load} from "./folder/model.js"'
    ),
)
