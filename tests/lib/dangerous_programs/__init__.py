"""Small programs that a careless scheduler miscompiles, for tests of schedules.

Each has one trap: memory read before it is written over, windows that overlap, two writers, two
names of one memory, indices from data, conditions around blocks, bindings that are no affine map.
``PROGRAMS`` has them all by name; ``SIZES`` gives symbols of their shapes values.
"""

from __future__ import annotations

from typing import Final

from tests.lib.dangerous_programs import access, domains, order, reductions, running, writers
from weft.tir.function import PrimFunc

PROGRAMS: Final[dict[str, PrimFunc]] = {
    name: value
    for family in (order, writers, access, domains, reductions, running)
    for name, value in vars(family).items()
    if isinstance(value, PrimFunc)
}
SIZES: Final = {"n": 7, "m": 9, "k": 4}
