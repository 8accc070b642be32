"""What the virtual machine's shape functions do with one extent; the numbers are TVM's.

VMShapeLower writes them into calls of ``vm.builtin.make_shape`` and ``vm.builtin.match_shape``;
weft.runtime.vm.library acts on them.
"""

from __future__ import annotations

from enum import IntEnum


class MakeShapeCode(IntEnum):
    """Where ``make_shape`` takes an extent from."""

    USE_IMM = 0
    LOAD_SHAPE = 1


class MatchShapeCode(IntEnum):
    """What ``match_shape`` does with an extent."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3
