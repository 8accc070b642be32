"""Platforms that code is compiled for here, and how programs for each are linked and run."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.lib.linked import linked_for
from tests.lib.node import RELAXED_FLAG, node
from tests.lib.node import missing as missing_node
from weft.backends.cpu.isa import host_system, system_of
from weft.backends.wasm.code import unpacked
from weft.backends.wasm.link import STACK
from weft.codegen.backend import NativeCode
from weft.runtime.export.c_text import DTYPES
from weft.runtime.native.builtins_ir import builtins_ir
from weft.runtime.native.parts import part_object
from weft.runtime.threads.parallel_ir import parallel_ir
from weft.target.host import host_features

ROOT = "/usr/aarch64-linux-gnu"
"""Where Debian's libc6-dev-arm64-cross puts the C library of AArch64."""


class Row(NamedTuple):
    """A function of a batch: its symbol, its name, where its arguments stand in memory."""

    symbol: str
    name: str
    places: tuple[int, ...]


@dataclass(frozen=True)
class Platform:
    """A target, the C compiler for it, and the program that runs what it links (none: itself)."""

    name: str
    target: str
    system: str = "x86_64-linux"
    features: tuple[str, ...] = ()
    compiler: str = "cc"
    runner: tuple[str, ...] = ()

    def missing(self) -> str:
        """What this machine lacks to run programs of the platform; nothing if it has all."""
        programs = [name for name in (self.compiler, *self.runner[:1]) if not shutil.which(name)]
        if programs:
            return f"there is no {' and no '.join(programs)}"
        if self.runner:
            return "" if Path(ROOT).is_dir() else f"there is no C library in {ROOT}"
        if system_of(self.system) != host_system():
            return f"this machine is no {self.system}"
        lacks = [name for name in self.features if not host_features().get(name)]
        return f"this processor lacks {', '.join(lacks)}" if lacks else ""

    def run(self, command: list[str], folder: Path) -> str:
        """What a program of the platform prints."""
        done = subprocess.run(
            [*self.runner, *command], cwd=folder, capture_output=True, text=True, timeout=3600,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def compile(self, arguments: list[str], folder: Path) -> None:
        """Run the C compiler."""
        done = subprocess.run(
            [self.compiler, *arguments], cwd=folder, capture_output=True, text=True, timeout=3600,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def run_batch(self, code: NativeCode, rows: Sequence[Row], folder: Path) -> str:
        """Run all functions on the memory in before.bin: what is printed; the rest in after.bin."""
        triple = code.options.triple
        objects = {
            "kernels.o": code.object_code, "parallel.o": part_object(parallel_ir(triple), triple),
            "builtins.o": part_object(builtins_ir(), triple),
        }  # fmt: skip
        for name, content in objects.items():
            (folder / name).write_bytes(content)
        declared = [f'extern function f{i} __asm__("{row.symbol}");' for i, row in enumerate(rows)]
        entries = [
            f'  {{f{i}, "{row.name}", {{{", ".join(map(str, row.places)) or "0"}}}}},'
            for i, row in enumerate(rows)
        ]
        text = [*declared, f"#define ROWS {len(rows)}", "static const row rows[] = {", *entries]
        (folder / "rows.h").write_text("\n".join([*text, "};", ""]), encoding="utf-8")
        source = Path(__file__).with_name("batch.c").read_text(encoding="utf-8")
        (folder / "batch.c").write_text(source, encoding="utf-8")
        self.compile(
            ["-O1", "-Wall", "-Werror", "batch.c", *objects, "-o", "batch", "-lm", "-lpthread"],
            folder,
        )
        return self.run(["./batch", "before.bin", "after.bin"], folder)


@dataclass(frozen=True)
class WasmPlatform(Platform):
    """Code for WebAssembly, linked by weft and run by node.

    ``relaxed``: with relaxed SIMD; ``threads``: how many run parallel loops.
    """

    relaxed: bool = False
    threads: int = 1

    def missing(self) -> str:
        """What this machine lacks to run it; nothing if it has all."""
        return missing_node()

    def run_batch(self, code: NativeCode, rows: Sequence[Row], folder: Path) -> str:
        """As for programs of C."""
        variants = unpacked(code.object_code)
        kernels = variants.relaxed if self.relaxed else variants.base
        exports = [*[row.symbol for row in rows], "aligned_alloc", "weft_fault"]
        module = linked_for(self.threads, kernels, exports, folder / "batch.wasm")
        (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        flags = [RELAXED_FLAG] if self.relaxed else []
        script = str(Path(__file__).parent / "wasm" / "batch.mjs")
        return node([*flags, script, str(self.threads), str(module.pages), str(STACK)], folder)


NATIVE = Platform("native", "llvm", "-".join(host_system()))
HASWELL = Platform(
    "haswell", "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", features=("avx2", "fma", "bmi2"),
)  # fmt: skip
AARCH64 = Platform(
    "aarch64", "llvm -mtriple=aarch64-linux-gnu -mattr=+neon", "aarch64-linux",
    compiler="aarch64-linux-gnu-gcc", runner=("qemu-aarch64-static", "-L", ROOT),
)  # fmt: skip

WASM = WasmPlatform("wasm", "wasm")
WASM_RELAXED = WasmPlatform("wasm-relaxed-threads", "wasm -num-cores=3", relaxed=True, threads=3)


def platform_params(*platforms: Platform) -> list:
    """Parameters of a test, those that this machine cannot run marked to be skipped."""
    return [
        pytest.param(
            platform, id=platform.name,
            marks=pytest.mark.skipif(bool(platform.missing()), reason=platform.missing() or "none"),
        )
        for platform in platforms
    ]  # fmt: skip


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
/* Reads input i from the file "i.in", whose shape the arguments say; writes output i to "i.out". */
int main(int count, char **argument) {
  net_model *model = net_create();
  net_tensor in[NET_INPUTS + 1], out[NET_OUTPUTS + 1];
  int64_t shapes[NET_INPUTS + NET_OUTPUTS][16];
  char name[32];
  int at = 1;
  if (!model) return 3;
  if (at < count) net_set_threads(atoi(argument[at++]));
  for (int i = 0; i < NET_INPUTS; i++) {
    snprintf(name, sizeof name, "%d.in", i);
    FILE *file = fopen(name, "rb");
    if (!file) return 4;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    in[i].data = aligned_alloc(64, size / 64 * 64 + 64);
    if (fread(in[i].data, 1, size, file) != (size_t)size) return 5;
    fclose(file);
    in[i].dtype = net_input(i)->dtype;
    in[i].shape = shapes[i];
    in[i].ndim = atoi(argument[at++]);
    for (int k = 0; k < in[i].ndim; k++) shapes[i][k] = atol(argument[at++]);
  }
  for (int i = 0; i < NET_OUTPUTS; i++) {
    long elements = 1;
    out[i].dtype = net_output(i)->dtype;
    out[i].ndim = net_output(i)->ndim;
    out[i].shape = shapes[NET_INPUTS + i];
    if (net_output_shape(in, i, shapes[NET_INPUTS + i])) { puts(net_error()); return 1; }
    printf("%d", out[i].dtype);
    for (int k = 0; k < out[i].ndim; k++) {
      elements *= out[i].shape[k];
      printf(" %ld", (long)out[i].shape[k]);
    }
    puts("");
    out[i].data = aligned_alloc(64, elements * 8 / 64 * 64 + 64);
  }
  for (int run = 0; run < 2; run++) /* the second one finds workers awake */
    if (net_run(model, in, out)) { puts(net_error()); return 1; }
  for (int i = 0; i < NET_OUTPUTS; i++) {
    static const int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
    long size = sizes[out[i].dtype];
    for (int k = 0; k < out[i].ndim; k++) size *= out[i].shape[k];
    snprintf(name, sizeof name, "%d.out", i);
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(out[i].data, 1, size, file) != (size_t)size || fclose(file)) return 6;
  }
  net_destroy(model);
  return 0;
}
"""


def run_exported(model, platform: Platform, folder: Path, *inputs, threads: int = 2) -> list:
    """The outputs of a model that a C program of the platform runs."""
    model.export_library(folder / "net.so", cc=platform.compiler)
    (folder / "main.c").write_text(MAIN, encoding="utf-8")
    platform.compile(["-Wall", "-Werror", "main.c", "./net.so", "-o", "main"], folder)
    arguments = [str(threads)]
    for number, array in enumerate(map(np.ascontiguousarray, inputs)):
        (folder / f"{number}.in").write_bytes(array.tobytes())
        arguments += [str(array.ndim), *map(str, array.shape)]
    printed = platform.run(["./main", *arguments], folder)
    outputs = []
    for number, line in enumerate(printed.splitlines()):
        dtype, *shape = map(int, line.split())
        data = (folder / f"{number}.out").read_bytes()
        outputs.append(np.frombuffer(data, DTYPES[dtype]).reshape(shape))
    return outputs
