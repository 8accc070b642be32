"""``PostOrderApply``: every rule in turn, at every block from the last to the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, Unpack

from weft.ir.module import IRModule
from weft.meta_schedule.annotations import SCHEDULE_RULE, annotation
from weft.meta_schedule.block_questions import is_there
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.apply_custom_rule import ApplyCustomRule
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.space_generator.base import SpaceGenerator, SpaceParts
from weft.support.errors import IRValueError
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block, BlockRealize

BlockFilter: TypeAlias = Callable[[Block], bool]


class PostOrderApply(SpaceGenerator):
    """Applies the rules one after the other, each to all blocks; each result goes on by itself.

    A block comes before those inside it, and before those whose results it reads, so that a
    consumer is rewritten before its producers.

    Args:
        f_block_filter: blocks for which it is false are left alone; it is given the block.
        parts: rules, postprocessors and mutators, as in ``SpaceGenerator``.
    """

    def __init__(
        self, f_block_filter: BlockFilter | None = None, **parts: Unpack[SpaceParts]
    ) -> None:
        super().__init__(**parts)
        self.f_block_filter = f_block_filter
        self._seed: int | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        self._seed = context.fork_seed()

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedules of the space, each with its trace.

        Raises:
            IRValueError: the rules are to come from a target, but the generator has no task yet.
        """
        if self.sch_rules is None:
            raise IRValueError(
                "PostOrderApply: the rules are those of a target; give the generator to a "
                "TuneContext with one, or give sch_rules"
            )
        schedules = [Schedule(mod, seed=self._seed)]
        blocks = _blocks(schedules[0], self.f_block_filter)
        for rule in self.sch_rules:
            schedules = [done for sch in schedules for done in _applied(rule, sch, blocks)]
        return schedules


def _applied(rule: ScheduleRule, sch: Schedule, blocks: Sequence[BlockRV]) -> list[Schedule]:
    """A rule at all blocks, in their order."""
    schedules = [sch]
    for block in blocks:
        schedules = [done for item in schedules for done in _applied_at(rule, item, block)]
    return schedules


def _applied_at(rule: ScheduleRule, sch: Schedule, block: BlockRV) -> list[Schedule]:
    if not is_there(sch, block):
        return [sch]
    is_custom = annotation(sch.get(block), SCHEDULE_RULE) is not None
    if is_custom and not isinstance(rule, ApplyCustomRule):
        return [sch]
    return rule.apply(sch, block)


def _blocks(sch: Schedule, wanted: BlockFilter | None) -> list[BlockRV]:
    """The blocks of the functions that are scheduled, from the last one to the first."""
    functions = (
        [sch.func_working_on]
        if sch.func_working_on is not None
        else [var for var, func in sch.mod.functions.items() if isinstance(func, PrimFunc)]
    )
    blocks = []
    for var in functions:
        func = sch.mod.functions[var]
        assert isinstance(func, PrimFunc)
        if not isinstance(func.body, BlockRealize):
            continue
        for block in _post_order(func.body.block):
            if wanted is None or wanted(block):
                blocks.append(sch.get_block(block.name_hint, var.name_hint))
    return blocks[::-1]


def _post_order(block: Block) -> list[Block]:
    inner = [item for realize in tree.child_realizes(block) for item in _post_order(realize.block)]
    return [*inner, block]
