"""Passes and rules that are put into the pipeline ``weft`` by name and place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

import weft
from weft import relax, te
from weft.dlight import ScheduleRule
from weft.dlight.nest import blocks_of
from weft.driver import insertions
from weft.driver.insertions import SCHEDULING
from weft.driver.pipeline import insert, remove
from weft.driver.step_keys import key_of_step
from weft.ir.transform import PassInfo, Sequential, module_pass
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRValueError, PassError
from weft.tir import Schedule


@pytest.fixture(autouse=True)
def as_before():
    """What a test inserts is taken out after it."""
    yield
    insertions._INSERTIONS.clear()


def same(name):
    @module_pass(opt_level=0, name=name)
    def step(mod, ctx):
        return mod

    return step


@dataclass
class Untouched(ScheduleRule):
    """Leaves functions as they are."""

    limit: int = 0

    def apply(self, func, target, tunable):
        return Schedule(func)


def names():
    return [step.info.name for step in relax.get_pipeline("weft").passes]


def rules():
    [step] = [s for s in relax.get_pipeline("weft").passes if s.info.name == SCHEDULING]
    inner = getattr(step.function, "__wrapped__", step.function)
    held = [cell.cell_contents for cell in inner.__closure__]
    return [type(rule).__name__ for rule in next(item for item in held if isinstance(item, tuple))]


def test_before_is_before_the_first_and_after_is_after_the_last_of_a_name():
    plain = names()
    insert(before="FoldConstant", pass_=same("first"))
    insert(after="FoldConstant", pass_=same("last"))
    changed = names()
    assert changed[changed.index("first") + 1] == "FoldConstant"
    assert changed[changed.index("last") - 1] == "FoldConstant"
    assert changed[: changed.index("last")].count("FoldConstant") == plain.count("FoldConstant")
    assert [name for name in changed if name not in ("first", "last")] == plain


def test_several_beside_one_stand_in_the_order_in_which_they_were_inserted():
    for name in ("a", "b"):
        insert(after="FuseTIR", pass_=same(name))
    for name in ("c", "d"):
        insert(before="FuseTIR", pass_=same(name))
    insert(after="a", pass_=same("e"))
    at = names().index("FuseTIR")
    assert names()[at - 2 : at + 4] == ["c", "d", "FuseTIR", "a", "e", "b"]


def test_a_rule_beside_a_rule_joins_the_rules():
    plain = rules()
    insert(before="Winograd", pass_=Untouched())
    assert rules() == ["Untouched", *plain]
    assert plain[0] == "Winograd"
    assert names().count(SCHEDULING) == 1


def test_a_rule_beside_a_pass_is_a_pass():
    insert(after="FuseTIR", pass_=Untouched())
    assert names()[names().index("FuseTIR") + 1] == SCHEDULING


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.nn.relu(x)


class Wrong(ScheduleRule):
    """A rule that gives something else than a schedule, or fails."""

    def __init__(self, answer):
        self.answer = answer

    def apply(self, func, target, tunable):
        return self.answer()


class TakesTwo(ScheduleRule):
    """A rule that does not take what a rule is called with."""

    def apply(self, func, target):
        """Never called."""


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (list, PassError, "Wrong.apply: expected a Schedule or None, got list"),
        (lambda: 1 // 0, ZeroDivisionError, "by zero"),
    ],
)
def test_a_wrong_rule_is_no_fault_of_weft(answer, error, message):
    insert(before="Winograd", pass_=Wrong(answer))
    with pytest.raises(error, match=message) as caught:
        weft.compile(Net, cache=False)
    if error is ZeroDivisionError:
        rule, function, *_ = caught.value.__notes__
        assert rule == "in rule Wrong"
        assert function.startswith("in function relu")


def test_what_was_inserted_is_removed_by_itself_or_by_name():
    plain = names()
    step = insert(after="FuseTIR", pass_=same("a"))
    rule = insert(before="Default", pass_=Untouched())
    remove("a")
    remove(rule)
    assert names() == plain
    with pytest.raises(PassError, match="remove: a is not in the pipeline; inserted: nothing"):
        remove(step)


def test_it_holds_for_every_target_whose_pipeline_has_the_neighbour():
    insert(after="FuseTIR", pass_=same("a"))
    with weft.target.Target("llvm -mcpu=x86-64-v2"):
        assert "a" in names()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pass_": same("a")}, "expected one of before= and after="),
        ({"pass_": same("a"), "before": "FuseTIR", "after": "FuseTIR"}, "expected one of before="),
        ({"pass_": 3, "after": "FuseTIR"}, "expected a pass or a ScheduleRule, got int"),
        (
            {"pass_": relax.transform.FoldConstant, "after": "FuseTIR"},
            r"got the function FoldConstant; call it if it gives a pass: FoldConstant\(\)",
        ),
        (
            {"pass_": Untouched, "before": "Default"},
            r"got the class .*make an object.*Untouched\(\)",
        ),
        (
            {"pass_": TakesTwo(), "before": "Default"},
            r"TakesTwo.apply: too many positional arguments; it is called with \(func, target, tun",
        ),
        ({"pass_": same("a"), "after": "FuseTR"}, "no step 'FuseTR'; did you mean 'FuseTIR'"),
        ({"pass_": same("a"), "after": "nowhere"}, "no step 'nowhere'; there are: Normalize, .*"),
        (
            {"pass_": same("a"), "after": "Winogrd"},
            "did you mean 'Winograd'.*; and the schedule rules Winograd, .*Default",
        ),
        (
            {"pass_": same("a"), "after": "Default"},
            "Default is a schedule rule: expected a ScheduleRule beside it, got the pass a; the pa",
        ),
        ({"pass_": "nobody.Pass", "after": "FuseTIR"}, "no installed package has a pass 'nobody"),
    ],
)
def test_a_wrong_insertion_is_refused_and_changes_nothing(arguments, message):
    plain = names()
    with pytest.raises(PassError, match=message):
        insert(**arguments)
    assert names() == plain


def test_the_key_tells_options_and_what_functions_close_over():
    def folding(factor):
        @module_pass(opt_level=0, name="fold")
        def step(mod, ctx):
            return mod.with_attr("factor", factor)

        return step

    keys = [key_of_step(step) for step in (
        folding(1), folding(1), folding(2), Untouched(), Untouched(), Untouched(3),
        Sequential([folding(1)], name="all"), Sequential([folding(2)], name="all"),
    )]  # fmt: skip
    assert None not in keys
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert len(set(keys)) == 6


def test_what_nothing_tells_has_no_key():
    held = object()

    @module_pass(opt_level=0, name="opaque")
    def step(mod, ctx):
        return mod.with_attr("held", held)

    assert key_of_step(step) is None
    insert(after="FuseTIR", pass_=step)
    assert insertions.key() is None
    remove(step)
    assert insertions.key() == b""


def test_a_class_of_passes_is_told_by_its_attributes():
    @module_pass(opt_level=0, name="classed")
    class Classed:
        def __init__(self, size):
            self.size = size

        def transform_module(self, mod, ctx):
            return mod

    assert key_of_step(Classed(1)) == key_of_step(Classed(1)) != key_of_step(Classed(2))
    assert isinstance(Classed(1).info, PassInfo)


@I.ir_module
class Softmax:
    @R.function
    def main(x: R.Tensor((32, 100), "float32")):
        return R.nn.softmax(x)


@dataclass
class Seen(ScheduleRule):
    """Notes the kernels that it is asked for, and schedules those that ``fits`` names."""

    fits: str
    asked: list[str] = field(default_factory=list)

    def apply(self, func, target, tunable):
        sch = Schedule(func)
        [first, *_] = [sch.get(block).name_hint for block in blocks_of(sch)]
        self.asked.append(first)
        return sch if self.fits in first else None


def test_rules_of_one_model_are_asked_before_all_others_in_their_order():
    rest, own = Seen("nothing"), Seen("softmax")
    inserted = insert(before="Winograd", pass_=Seen("softmax"))
    model = weft.compile(Softmax, rules=[rest, own])
    assert rest.asked == own.asked == ["T_softmax_maxelem"]
    assert inserted.asked == []
    x = np.random.default_rng(0).standard_normal((32, 100)).astype("float32")
    remove(inserted)
    np.testing.assert_allclose(model(x), weft.compile(Softmax)(x), atol=1e-6)
    assert own.asked == ["T_softmax_maxelem"]  # the second model has the defaults
    [kernel] = model.viz().data["kernels"]
    assert kernel["schedule"]["rule"] == "Seen"


@pytest.mark.parametrize(
    ("model", "given", "error", "message"),
    [
        (Softmax, {"rules": [Seen]}, PassError, "the class Seen; make an object of it: Seen()"),
        (Softmax, {"rules": 3}, PassError, "expected a list of ScheduleRules, got int"),
        (
            Softmax,
            {"rules": [Untouched()], "relax_pipeline": "unscheduled"},
            PassError,
            "stand before those of the pipeline 'weft', got 'unscheduled' as relax_pipeline",
        ),
        (
            te.create_prim_func([te.placeholder((4,), name="x")]),
            {"rules": [Untouched()]},
            IRValueError,
            "rules are for models; PrimFuncs are built as they are",
        ),
    ],
)  # fmt: skip
def test_rules_that_cannot_count_are_refused(model, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        weft.compile(model, **given)
