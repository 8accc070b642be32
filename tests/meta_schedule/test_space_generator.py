"""Generators of design spaces: rules at blocks, functions of users, unions."""

from __future__ import annotations

import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft.meta_schedule import space_generator


def split(sch):
    sch.split(sch.get_loops("S")[0], [2, None])


@pytest.mark.parametrize(
    ("function", "count"),
    [(split, 1), (lambda sch: sch, 1), (lambda sch: [sch, sch.copy()], 2)],
)
def test_a_function_spans_a_space(function, count):
    generator = space_generator.ScheduleFn(function, sch_rules=[], postprocs=[], mutator_probs={})
    assert len(generator.generate_design_space(design_spaces.row_sums(4, 4))) == count


def test_a_function_that_returns_something_else():
    generator = space_generator.create(lambda sch: 3)
    with pytest.raises(weft.TVMError, match="to return None, a Schedule or a list"):
        generator.generate_design_space(design_spaces.row_sums(4, 4))


def test_a_union_has_the_schedules_of_all():
    own: dict = {"sch_rules": [], "postprocs": [], "mutator_probs": {}}
    parts = [space_generator.ScheduleFn(split, **own) for _ in range(3)]
    union = space_generator.SpaceGeneratorUnion(parts, **own)
    assert len(union.clone().generate_design_space(design_spaces.row_sums(4, 4))) == 3


def test_a_filter_leaves_blocks_alone():
    mod = design_spaces.chain()
    rules = ms.ScheduleRule.create("llvm")[1:3]
    generator = space_generator.PostOrderApply(
        lambda block: block.name_hint == "C", sch_rules=rules, postprocs=[], mutator_probs={}
    )
    task = ms.TuneContext(mod, target=design_spaces.CPU, space_generator=generator)
    [sch] = task.generate_design_space()
    root = sch.get_block("root")
    assert [sch.get(block).name_hint for block in sch.get_child_blocks(root)] == ["B", "D"]


def test_rules_of_a_target_need_one():
    with pytest.raises(weft.TVMError, match="the rules are those of a target"):
        space_generator.PostOrderApply().generate_design_space(design_spaces.chain())


def test_equal_seeds_give_equal_spaces():
    spaces = [
        design_spaces.sketches(design_spaces.row_sums(4, 64), sch_rules="llvm") for _ in range(2)
    ]
    texts = [[str(sch.trace) for sch in space] for space in spaces]
    assert texts[0] == texts[1]
