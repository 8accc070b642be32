"""What this machine's processor can do, in LLVM's words.

Linux says it in ``/proc/cpuinfo``, in words of its own. What it does not confirm, LLVM decides: its
import costs a process that only runs a model more memory than everything else.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from weft.backends.cpu.isa import architecture_of, host_system, system_of
from weft.support.llvm_binding import binding

Processor = tuple[str, str, Mapping[str, bool]]
"""A system's triple, a processor's name, and the features it has."""

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
    line = architecture_of(host_system()[0]).linux_line
    match = re.search(rf"^{line}\s*:(.*)$", text, re.MULTILINE) if line else None
    return frozenset(match[1].replace("_", "").split()) if match else frozenset()


def surely_has(triple: str, features: Sequence[str]) -> bool:
    """Whether Linux says that this is such a system whose processor has all of these features."""
    if sys.platform != "linux" or "-linux" not in triple:
        return False
    here = architecture_of(host_system()[0])
    plain = [re.sub(r"[.\-]", "", name) for name in features]
    single = [part for name in plain for part in here.bundles.get(name, [name])]
    needed = {here.linux_names.get(name, name) for name in single}
    return system_of(triple) == host_system() and needed <= _linux_flags()
