"""Cores, vectors, multiply-add units and caches of a CPU, as passes and schedules ask for them.

``machine_of(target)`` takes each figure from the first source that has it: the target's options;
the operating system, if the target is this machine's processor (caches only); defaults of the
architecture. The options of ``llvm`` targets are ``-num-cores``, ``-vector-width`` (bits),
``-fma-ports``, ``-l1d-cache-bytes``, ``-l2-cache-bytes`` and ``-l3-cache-bytes``.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Final

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.features import first_offered, offers
from weft.codegen.backend import has_backend
from weft.target.features import required_features
from weft.target.host import host_cpu, llvm_options, vector_bits
from weft.target.machine import Machine
from weft.target.target import Target

_CACHES: Final = {
    "l1d-cache-bytes": 32 << 10, "l2-cache-bytes": 512 << 10, "l3-cache-bytes": 8 << 20
}  # fmt: skip
"""Option -> the size that is assumed if neither the target nor the operating system says it."""
_LEVELS: Final = {(1, "Data"): "l1d-cache-bytes", (2, "Unified"): "l2-cache-bytes",
                  (3, "Unified"): "l3-cache-bytes"}  # fmt: skip
_SYSFS: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def is_cpu(target: Target) -> bool:
    """Whether the target is a CPU for which a backend makes code."""
    return "cpu" in target.keys and has_backend(target.kind)


@functools.lru_cache(maxsize=64)
def machine_of(target: Target) -> Machine:
    """The processor of a target, as far as schedules depend on it.

    >>> machine = machine_of(Target("llvm -mcpu=x86-64-v3 -num-cores=4"))
    >>> machine.cores, machine.vector_bits, machine.vector_registers
    (4, 256, 16)
    """
    options = llvm_options(target)
    is_host = options.cpu == host_cpu()
    known = {**_CACHES, **(_host_caches() if is_host else {})}
    caches = [int(target.attrs.get(name, known[name])) for name in _CACHES]
    architecture, bits = architecture_of(options.triple), vector_bits(target)
    present = set(required_features(options))
    dots = architecture.dot_products.get(bits, ())
    offered = tuple([name for name, needed in dots if offers(present, needed)])
    return Machine(
        # All cores of the machine, not only those that this process may use: the code that is built
        # must not depend on that.
        target.num_cores or os.cpu_count() or 1,
        bits,
        architecture.vector_registers(bits),
        int(target.attrs.get("fma-ports", 2)),
        caches[0],
        caches[1],
        caches[2],
        offered,
        not architecture.byte_dots.isdisjoint(offered),
        not architecture.byte_pair_dots.isdisjoint(offered),
        first_offered(present, architecture.masked, None),
    )


@functools.cache
def _host_caches() -> dict[str, int]:
    """The sizes of this machine's caches, read from Linux; empty on other systems."""
    sizes = {}
    for entry in sorted(_SYSFS.glob("index*")):
        try:
            level, kind, size = [(entry / name).read_text().strip() for name in _FILES]
        except OSError:
            continue
        name = _LEVELS.get((int(level), kind))
        if name is not None and size[-1:] in _UNITS:
            sizes[name] = int(size[:-1]) * _UNITS[size[-1]]
    return sizes


_FILES: Final = ("level", "type", "size")
