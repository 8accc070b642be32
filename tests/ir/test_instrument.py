"""Instruments: what they see, what they write, and what happens when one raises."""

from __future__ import annotations

import re

import pytest

from weft import ir, tir
from weft.ir.instrument import (
    DumpIR,
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanged,
    VerifyInstrument,
    pass_instrument,
)
from weft.ir.transform import PassContext, Sequential
from weft.tir.transform import prim_func_pass


@prim_func_pass(opt_level=0, name="Increment")
def increment(func, mod, ctx):
    return func.with_(body=tir.Evaluate(func.body.value.value + 1))


@prim_func_pass(opt_level=0, name="Same")
def same(func, mod, ctx):
    return func


BOTH = Sequential([increment, same], name="Both")


@pytest.fixture
def module():
    return ir.IRModule({"f": tir.PrimFunc([], tir.Evaluate(1))})


@pass_instrument
class Recorder:
    """Writes down every call of its hooks."""

    def __init__(self, name="", log=None, skip=()):
        self.name, self.log, self.skip = name, [] if log is None else log, skip

    def enter_pass_ctx(self):
        self.log.append(f"{self.name}enter")

    def exit_pass_ctx(self):
        self.log.append(f"{self.name}exit")

    def should_run(self, mod, info):
        return info.name not in self.skip

    def run_before_pass(self, mod, info):
        self.log.append(f"{self.name}before {info.name}")

    def run_after_pass(self, mod, info):
        self.log.append(f"{self.name}after {info.name}")


def test_the_hooks_run_around_every_pass(module):
    recorder = Recorder()
    with PassContext(instruments=[recorder]):
        BOTH(module)
    assert recorder.log == [
        "enter", "before Both", "before Increment", "after Increment", "before Same", "after Same",
        "after Both", "exit",
    ]  # fmt: skip
    assert isinstance(recorder, PassInstrument)
    assert Recorder.__doc__.startswith("Writes down")


def test_several_instruments_run_in_order(module):
    log = []
    with PassContext(instruments=[Recorder("1 ", log), Recorder("2 ", log)]):
        same(module)
    assert log[:4] == ["1 enter", "2 enter", "1 before Same", "2 before Same"]


def test_an_instrument_may_skip_a_pass_unless_it_is_required(module):
    with PassContext(instruments=[Recorder(skip=["Increment"])]):
        assert BOTH(module) is module
    with PassContext(instruments=[Recorder(skip=["Increment"])], required_pass=["Increment"]):
        assert BOTH(module) is not module


def test_instruments_are_replaced_in_a_running_context(module):
    first, second = Recorder(), Recorder()
    with PassContext(instruments=[first]) as context:
        context.override_instruments([second])
        same(module)
    assert first.log == ["enter", "exit"]
    assert second.log == ["enter", "before Same", "after Same", "exit"]


@pytest.mark.parametrize("hook", ["enter_pass_ctx", "exit_pass_ctx"])
def test_a_hook_that_raises_does_not_leave_its_context_open(hook):
    def wrong(self):
        raise ValueError("text")

    made = type("Wrong", (PassInstrument,), {hook: wrong})()
    with pytest.raises(ValueError, match="text"), PassContext(opt_level=3, instruments=[made]):
        pass
    assert PassContext.current().opt_level == 2


def test_any_object_with_hooks_is_an_instrument(module):
    class Plain:
        count = 0

        def run_after_pass(self, mod, info):
            self.count += 1

    plain = Plain()
    with PassContext(instruments=[plain]):
        BOTH(module)
    assert plain.count == 3


def test_timing_nests_and_adds_up(module):
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        BOTH(module)
        text = timing.render()
    lines = text.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Both", "  Increment", "  Same"]
    assert re.fullmatch(r"Both: \d+us \(100\.00%\)", lines[0])


def test_print_changed_writes_the_difference_only(module):
    written = []
    with PassContext(instruments=[PrintChanged(written.append)]):
        BOTH(module)
    assert len(written) == 2  # the pass, and the sequence around it
    assert written[0].startswith("# Increment changed the module")
    assert "-        T.evaluate(1)" in written[0]
    assert "+        T.evaluate(2)" in written[0]


def test_dump_writes_numbered_files_that_parse(module, tmp_path):
    (tmp_path / "000_old.py").write_text("")
    with PassContext(instruments=[DumpIR(tmp_path, refresh=True)]):
        BOTH(module)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["000_Increment.py", "001_Same.py", "002_Both.py"]
    from weft.script import from_source

    ir.assert_structural_equal(
        from_source((tmp_path / "002_Both.py").read_text(), check_well_formed=False), BOTH(module)
    )


def test_printing_before_and_after(module):
    written = []
    instruments = [
        PrintBeforeAll(written.append),
        PrintAfterAll(written.append),
        PassPrintingInstrument(["Same"], ["Increment"], written.append),
    ]
    with PassContext(instruments=instruments):
        BOTH(module)
    heads = [text.splitlines()[0] for text in written]
    assert heads == [
        "# before Both", "# before Increment", "# after Increment", "# after Increment",
        "# before Same", "# before Same", "# after Same", "# after Both",
    ]  # fmt: skip
    assert "T.evaluate(2)" in written[2]


def test_verify_names_the_pass(module):
    def check(mod):
        if mod["f"].body.value.value != 1:
            raise ValueError("not 1")

    with (
        pytest.raises(ValueError, match="not 1") as caught,
        PassContext(instruments=[VerifyInstrument(check)]),
    ):
        Sequential([same, increment])(module)
    assert "the module is not well formed after pass Increment" in caught.value.__notes__
