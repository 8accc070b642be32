"""What a default schedule asks of a processor: cores, vectors, multiply-add units, caches.

``machine_of(target)`` derives it: what the target says first, then, for this machine's own
processor, what the operating system says of its caches, then figures that hold for the
architecture. Options of ``llvm`` targets that override: ``-num-cores``, ``-vector-width`` (bits),
``-fma-ports``, ``-l1d-cache-bytes``, ``-l2-cache-bytes``, ``-l3-cache-bytes``.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.features import first_offered, offers
from weft.target.features import required_features
from weft.target.host import host_cpu, llvm_options, vector_bits
from weft.target.target import Target, as_target

_CACHES: Final = {
    "l1d-cache-bytes": 32 << 10, "l2-cache-bytes": 512 << 10, "l3-cache-bytes": 8 << 20
}  # fmt: skip
"""Options and what is assumed of a processor that is neither this one nor described."""
_LEVELS: Final = {(1, "Data"): "l1d-cache-bytes", (2, "Unified"): "l2-cache-bytes",
                  (3, "Unified"): "l3-cache-bytes"}  # fmt: skip
_SYSFS: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Machine:
    """One processor, as far as schedules depend on it. Caches in bytes, of one core but ``l3``."""

    cores: int
    vector_bits: int
    vector_registers: int
    fma_ports: int
    l1: int
    l2: int
    l3: int
    dot_products: tuple[str, ...] = ()
    """Instructions that multiply small integers and add some products, the best first."""
    masked_bits: int | None = None
    """Bits of the smallest elements of which a load leaves lanes out; None where it cannot."""

    def masks(self, bits: int) -> bool:
        """Whether a load of elements of ``bits`` bits leaves lanes out as fast as it reads them."""
        return self.masked_bits is not None and bits >= self.masked_bits

    def lanes(self, bits: int = 32) -> int:
        """Elements of ``bits`` bits in a vector register.

        >>> Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20).lanes()
        8
        """
        return max(self.vector_bits // bits, 1)

    def accumulator_rows(self, vectors: int) -> int:
        """The rows of so many vectors that registers can hold, with operands of a product.

        The operands are a row of vectors and one broadcast number.

        >>> Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20).accumulator_rows(2)
        6
        """
        return max((self.vector_registers - vectors - 1) // vectors, 0)


def machine_of(target: Any = None) -> Machine:
    """The machine that schedules for ``target`` (None: this machine) are made for.

    >>> machine = machine_of("llvm -mcpu=x86-64-v3 -num-cores=4")
    >>> machine.cores, machine.vector_bits, machine.vector_registers
    (4, 256, 16)
    """
    return _machine(as_target("llvm" if target is None else target))


@functools.lru_cache(maxsize=64)
def _machine(target: Target) -> Machine:
    options = llvm_options(target)
    is_host = options.cpu == host_cpu()
    found = {**_CACHES, **(_host_caches() if is_host else {})}
    caches = [int(target.attrs.get(name, found[name])) for name in _CACHES]
    architecture, bits = architecture_of(options.triple), vector_bits(target)
    present = set(required_features(options))
    dots = architecture.dot_products.get(bits, ())
    return Machine(
        # Of the machine, not of this process: what is built does not depend on who may use what.
        target.num_cores or os.cpu_count() or 1, bits,
        next(count for least, count in architecture.registers if bits >= least),
        int(target.attrs.get("fma-ports", 2)), caches[0], caches[1], caches[2],
        tuple([name for name, needed in dots if offers(present, needed)]),
        first_offered(present, architecture.masked, None),
    )  # fmt: skip


@functools.cache
def _host_caches() -> dict[str, int]:
    """The sizes of this machine's caches, as Linux says them; empty where it says none."""
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
