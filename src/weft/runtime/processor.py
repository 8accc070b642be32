"""What this machine's processor can do, in LLVM's words.

Linux says it in ``/proc/cpuinfo``, in words of its own. What it does not confirm, LLVM decides: its
import costs a process that only runs a model more memory than everything else.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from weft.runtime.llvm import binding

Processor = tuple[str, str, Mapping[str, bool]]
"""A system's triple, a processor's name, and the features it has."""

LINUX_NAMES: Final = {
    "sse3": "pni", "lzcnt": "abm", "bmi": "bmi1", "sahf": "lahflm", "pclmul": "pclmulqdq",
    "sha": "shani", "rdrnd": "rdrand", "prfchw": "3dnowprefetch", "crc32": "sse42", "x87": "fpu",
    "64bit": "lm",
}  # fmt: skip
"""LLVM's name of a feature -> Linux's, both without ``.``, ``-`` and ``_``, where they differ."""

BUNDLES: Final = {
    "avx101": (
        "avx512f avx512vl avx512bw avx512dq avx512cd avx512vbmi avx512vbmi2 avx512ifma avx512vnni "
        "avx512bf16 avx512vpopcntdq avx512bitalg avx512fp16"
    ).split(),
}  # fmt: skip
"""Features that are other features together: AVX10.1 has the instructions of these, no more."""

_CPUINFO: Final = Path("/proc/cpuinfo")


@functools.cache
def this_processor() -> Processor:
    """Triple, name and features of this machine's processor, as LLVM has them."""
    llvm = binding()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())


@functools.cache
def _linux_flags() -> frozenset[str]:
    try:
        text = _CPUINFO.read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found[1].replace("_", "").split()) if found else frozenset()


def surely_has(triple: str, features: Sequence[str]) -> bool:
    """Whether Linux says that this is such a system whose processor has all of these features."""
    if sys.platform != "linux" or "-linux" not in triple:
        return False
    plain = [re.sub(r"[.\-]", "", name) for name in features]
    single = [part for name in plain for part in BUNDLES.get(name, [name])]
    needed = {LINUX_NAMES.get(name, name) for name in single}
    return triple.split("-")[0] == platform.machine() and needed <= _linux_flags()
