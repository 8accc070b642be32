"""Loops of Paddle's exporter: a number there is a tensor () in one step, (1,) in another."""

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import check, info, model, node, run
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

pytestmark = pytest.mark.onnx
STEP = [info("i", "int64", []), info("c", "bool", [])]


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "inner", inputs, outputs)


def with_one_axis(name, result, **attributes):
    """A flag () as (1,), as an addition of [0] makes it."""
    return [node("Cast", name, f"{result}_number", to=7),
            node("Add", f"{result}_number zero", f"{result}_sum"),
            node("Cast", f"{result}_sum", result, to=9)]  # fmt: skip


def until_done(chosen):
    """Adds up x until the largest sum is above 5, or ten times."""
    nodes = [node("Add", "s x", "s2"), node("ReduceMax", "s2", "top", keepdims=0),
             node("Greater", "top five", "over"), *chosen, node("Not", "d2", "rest"),
             node("Less", "i nine", "few"), node("And", "few rest", "c2"),
             *with_one_axis("d2", "d3")]  # fmt: skip
    after = [info("c2", "bool", []), info("d3", "bool", []), info("s2", shape=[2])]
    body = graph(nodes, [*STEP, info("d", "bool", []), info("s", shape=[2])], after)
    constants = {"k": np.array(True), "d0": np.array(False), "five": np.float32(5),
                 "nine": np.array(9), "zero": np.array([0])}  # fmt: skip
    return model([node("Loop", "- k d0 x", "done y", body=body)], [info("x", shape=[2])],
                 ["done", "y"], constants=constants)  # fmt: skip


def choice():
    """The flag, or true: () or (1,)."""
    other = graph(with_one_axis("d", "kept"), [], [info("kept", "bool", [])])
    yes = helper.make_tensor("yes", 9, [], [True])
    then = graph([node("Constant", "", "set", value=yes)], [], [info("set", "bool", [])])
    return [node("If", "over", "d2", then_branch=then, else_branch=other)]


@pytest.mark.parametrize("chosen", [choice(), [node("Or", "over d", "d2")]])
@pytest.mark.parametrize("x", [[1, 2], [0.1, 0.2], [9, 1]])
def test_a_flag_gets_an_axis_in_the_first_step(chosen, x):
    check(until_done(chosen), np.array(x, "float32"), rtol=1e-4)


def test_a_state_that_gets_an_axis_of_more_elements_is_refused():
    nodes = [node("Add", "s x", "s2"), node("Identity", "c", "c2")]
    body = graph(nodes, [*STEP, info("s", shape=[])], [info("c2", "bool", []), info("s2")])
    proto = model([node("Loop", "m - s0", "y", body=body)],
                  [info("m", "int64", []), info("x", shape=[2])], ["y"],
                  constants={"s0": np.float32(1)})  # fmt: skip
    with pytest.raises(OnnxNodeError, match="changes the rank or the type of a carried value"):
        run(from_onnx(proto), np.array(3), np.ones(2, "float32"))


def last_of(condition, **constants):
    """The last step's sums, in the place of a number that no step reads."""
    nodes = [node("Add", "s x", "s2"), node("Mul", "s2 s2", "last"), condition]
    body = graph(nodes, [*STEP, info("unset", shape=[]), info("s", shape=["n"])],
                 [info("c2", "bool", []), info("last"), info("s2", shape=["n"])])  # fmt: skip
    known = {"nothing": np.float32(0), "k": np.array(True), "most": np.array(9), **constants}
    limit = "most" if "m" in constants else "m"
    return model([node("Loop", f"{limit} k nothing x", "y z", body=body)],
                 [info(*(("t",) if "m" in constants else ("m",)), "int64", []),
                  info("x", shape=["n"])], ["y"], constants=known)  # fmt: skip


def test_a_place_that_no_step_reads_gets_the_last_step_s_value():
    proto = last_of(node("Less", "i t", "c2"), m=np.array(0))
    for steps in (0, 3):
        check(proto, np.array(steps), np.array([1, 2, 3], "float32"))


def test_such_a_place_is_refused_where_there_may_be_no_step():
    with pytest.raises(OnnxNodeError, match="changes the rank or the type of a carried value"):
        from_onnx(last_of(node("Identity", "c", "c2")))
