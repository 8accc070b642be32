"""What a rule of a design space is: from one schedule, the schedules that a block may have."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_MODULE: Final = "weft.meta_schedule.schedule_rule.defaults"
_KINDS: Final = {
    "llvm": f"{_MODULE}:for_llvm",
    "avx512": f"{_MODULE}:for_avx512",
    "vnni": f"{_MODULE}:for_vnni",
    "asimd": f"{_MODULE}:for_neon",
    "dotprod": f"{_MODULE}:for_dot_product",
    "c": f"{_MODULE}:for_llvm",
    "cuda": f"{_MODULE}:for_cuda",
    "cuda-tensorcore": f"{_MODULE}:for_tensor_cores",
    "hexagon": f"{_MODULE}:for_hexagon",
}


class ScheduleRule(Part):
    """Rewrites one block in one or more ways; sampling in them makes each a family."""

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that follow ``sch``; ``[sch]`` if the rule does not fit the block.

        ``sch`` itself may be changed and returned; where there are several, all but one are copies.
        """

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules that TVM uses for a kind of target, in their order.

        Args:
            kind: "llvm", "avx512", "vnni", "asimd", "dotprod", "c", "cuda", "cuda-tensorcore" or
                "hexagon".

        >>> [type(rule).__name__ for rule in ScheduleRule.create("llvm")][:3]
        ['ApplyCustomRule', 'InlineConstantScalars', 'AutoInline']
        """
        rules: list[ScheduleRule] = class_of_kind(_KINDS, kind, "ScheduleRule.create")()
        return rules


PyScheduleRule = ScheduleRule
"""TVM's name of the class that users derive from."""
