"""``weft doctor``: prints what this machine offers, and which parts of it weft can use."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import weft
from weft.backends.cpu.isa import architecture_of
from weft.cli.caches import KINDS, described
from weft.cli.tables import print_table
from weft.runtime.threads.parallel import num_threads
from weft.target.codegen import llvm_version_major
from weft.target.host import host_cpu, host_features, llvm_options

PACKAGES: Final = (
    "numpy", "llvmlite", "ml_dtypes", "safetensors", "rich", "torch", "torchvision", "onnx",
    "onnxruntime", "openvino", "transformers", "timm",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This subcommand takes none."""


def run(options: argparse.Namespace) -> int:
    """Print one line for each finding."""
    print_table("", ("", ""), list(findings()), text=(0, 1))
    return 0


def findings() -> Iterator[tuple[str, str]]:
    """(name, finding) pairs, in the order in which they are printed."""
    yield "weft", f"{weft.__version__} at {Path(weft.__file__).parent}"
    yield "python", f"{platform.python_version()} at {sys.executable}"
    yield "system", f"{platform.system()} {platform.machine()}"
    for package in PACKAGES:
        yield package, _version(package)
    yield "LLVM", str(llvm_version_major())
    yield "CPU", host_cpu()
    features = host_features()
    used = architecture_of(llvm_options().triple).kernel_features
    known = " ".join([name for name in used if features.get(name)])
    yield "features", known or "none that weft's kernels use"
    yield "cores", f"{len(os.sched_getaffinity(0))} usable of {os.cpu_count()}"
    yield "threads", f"{num_threads()} for parallel loops"
    for kind in KINDS:
        yield f"cache of {kind}", described(kind)
    yield "", "weft cache --clear deletes what the caches hold"
    yield "C compiler", shutil.which("cc") or "none: export_library needs one, .weft files do not"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
