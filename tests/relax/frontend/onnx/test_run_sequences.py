"""Sequences whose length only the run tells: loops that append, and positions that are data."""

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft import relax
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError
from weft.support.errors import IRIndexError, IRValueError

pytestmark = pytest.mark.onnx
STEP = [info("i", "int64", []), info("c", "bool", [])]


def sequence(name, dtype=1):
    item = helper.make_tensor_type_proto(dtype, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(item))


def appending(*nodes, more=(), afters=()):
    """A body that appends ``item`` to its sequence, after the nodes."""
    return helper.make_graph(
        [*nodes, node("SequenceInsert", "s item", "s2"), node("Identity", "c", "c2")], "body",
        [*STEP, sequence("s"), *more], [info("c2", "bool", []), sequence("s2"), *afters],
    )  # fmt: skip


def looped(body, after, start=("SequenceEmpty", ""), states="", results="", constants=None):
    """A model that runs a body m times on a sequence, and then some nodes on the sequence p."""
    steps = node("Loop", f"m true q {states}", f"p {results}", body=body)
    constants = {"true": np.array(True), **(constants or {})}
    inputs = [info("m", "int64", []), info("x", shape=["n"])]
    nodes = [node(*start, "q"), steps, *after]
    return model(nodes, inputs, ["y", *results.split()], constants=constants)


def scaled_items():
    return appending(node("Cast", "i", "f", to=1), node("Mul", "x f", "item"))


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 0), (-1, 0), (0, 1), (1, 1), (-1, 1), (-2, 1)])
def test_items_that_a_loop_appends_are_joined(axis, new_axis):
    joined = node("ConcatFromSequence", "p", "y", axis=axis, new_axis=new_axis)
    proto = looped(scaled_items(), [joined])
    check(proto, np.array(1), uniform(3))
    check(proto, np.array(4), uniform(3))


def test_no_step():
    mod = from_onnx(looped(scaled_items(), [node("ConcatFromSequence", "p", "y", axis=0)]))
    with pytest.raises(IRValueError, match="let the loop that appends them make a step"):
        run(mod, np.array(0), uniform(2))
    mod = from_onnx(looped(scaled_items(), [node("SequenceLength", "p", "y")]))
    assert run(mod, np.array(0), uniform(2)) == 0


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_sequence_as_output_is_a_tuple(steps):
    mod = from_onnx(looped(scaled_items(), [node("Identity", "p", "y")]))
    x = uniform(2)
    got = run(mod, np.array(steps), x)
    np.testing.assert_allclose(got or np.zeros((0, 2)), np.arange(steps)[:, None] * x, rtol=1e-6)
    results = relax.reference.run(mod, "main", np.array(steps), x)
    assert [item.tolist() for item in results] == [item.tolist() for item in got]


def test_the_last_item_is_read_in_the_loop():
    body = appending(node("SequenceAt", "s minus", "last"), node("Add", "last x", "item"))
    after = [node("ConcatFromSequence", "p", "y", axis=1, new_axis=1)]
    start = ("SequenceConstruct", "x")
    proto = looped(body, after, start, constants={"minus": np.array(-1)})
    check(proto, np.array(0), uniform(3))
    check(proto, np.array(3), uniform(3))


def test_items_of_other_shapes_are_joined():
    body = appending(
        node("Unsqueeze", "i zero", "end"), node("Slice", "x zero end", "item"),
    )  # fmt: skip
    after = [node("ConcatFromSequence", "p", "y", axis=0)]
    proto = looped(body, after, constants={"zero": np.array([0])})
    check(proto, np.array(4), uniform(5))


def test_another_state_grows_beside_the_sequence():
    body = appending(
        node("Concat", "t x", "t2", axis=0), node("Identity", "t2", "item"),
        more=[info("t", shape=["k"])], afters=[info("t2", shape=["k2"])],
    )  # fmt: skip
    after = [node("ConcatFromSequence", "p", "y", axis=0)]
    check(looped(body, after, states="x", results="r"), np.array(3), uniform(2))


def test_items_are_appended_in_a_branch():
    branches = {
        "then_branch": helper.make_graph(
            [node("SequenceInsert", "s x", "r")], "t", [], [sequence("r")]
        ),
        "else_branch": helper.make_graph([node("Identity", "s", "r")], "e", [], [sequence("r")]),
    }  # fmt: skip
    body = helper.make_graph(
        [node("Mod", "i two", "rest"), node("Equal", "rest zero", "even"),
         node("If", "even", "s2", **branches), node("Identity", "c", "c2")],
        "body", [*STEP, sequence("s")], [info("c2", "bool", []), sequence("s2")],
    )  # fmt: skip
    after = [node("ConcatFromSequence", "p", "y", axis=0)]
    proto = looped(body, after, constants={"two": np.array(2), "zero": np.array(0)})
    check(proto, np.array(5), uniform(2))


@pytest.mark.parametrize("flag", [True, False])
def test_branches_that_differ_in_the_number_of_items(flag):
    branches = {
        "then_branch": helper.make_graph(
            [node("SequenceConstruct", "x x", "r")], "t", [], [sequence("r")]
        ),
        "else_branch": helper.make_graph(
            [node("SequenceConstruct", "x", "r")], "e", [], [sequence("r")]
        ),
    }
    nodes = [node("If", "flag", "p", **branches), node("ConcatFromSequence", "p", "y", axis=0)]
    proto = model(nodes, [info("flag", "bool", []), info("x", shape=["n"])], ["y"])
    check(proto, np.array(flag), uniform(3))


def test_positions_that_are_data():
    nodes = [
        node("SequenceConstruct", "x z", "q"), node("SequenceInsert", "q x k", "q2"),
        node("SequenceErase", "q2 k", "q3"), node("SequenceAt", "q3 k", "y"),
        node("SequenceLength", "q2", "n"),
    ]  # fmt: skip
    proto = model(
        nodes, [info("x", shape=[3]), info("z", shape=[2]), info("k", "int64", [])], ["y", "n"]
    )
    mod = from_onnx(proto)
    for place, right in ((0, uniform(3)), (1, uniform(2)), (-1, uniform(3))):
        got = run(mod, uniform(3), uniform(2), np.array(place))
        np.testing.assert_array_equal(got[0], right)
        assert got[1] == 3
    with pytest.raises(IRIndexError, match="position 3 is outside of a sequence of 2 items"):
        run(mod, uniform(3), uniform(2), np.array(3))


@pytest.mark.parametrize("keepdims", [0, 1])
def test_slices_of_an_extent_that_the_run_tells(keepdims):
    body = appending(node("SequenceAt", "parts i", "part"), node("Neg", "part", "item"))
    nodes = [
        node("SplitToSequence", "x", "parts", axis=1, keepdims=keepdims),
        node("SequenceLength", "parts", "m"), node("SequenceEmpty", "", "q"),
        node("Loop", "m true q", "p", body=body), node("ConcatFromSequence", "p", "y", axis=-1),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=["k", "n"])], ["y"], constants={"true": np.array(True)})
    check(proto, uniform(2, 1))
    check(proto, uniform(2, 5))


@pytest.mark.parametrize("sizes", [2, [1, 2], [3]])
def test_parts_whose_sizes_are_data(sizes):
    nodes = [
        node("SplitToSequence", "x s", "p", axis=0), node("SequenceAt", "p last", "y"),
    ]  # fmt: skip
    infos = [info("x", shape=["n", 2]), info("s", "int64", list(np.shape(sizes)))]
    proto = model(nodes, infos, ["y"], constants={"last": np.array(-1)})
    check(proto, uniform(3, 2), np.array(sizes))


def test_pytorch_splits_into_slices_of_one_without_their_axis():
    constants = {"one": np.array(1), "place": np.array(-1)}
    nodes = [
        node("SplitToSequence", "x one", "p", axis=0, keepdims=0),
        node("SequenceAt", "p place", "y"),
    ]  # fmt: skip
    x = uniform(3, 2)
    for extent in ("n", 3):
        mod = from_onnx(model(nodes, [info("x", shape=[extent, 2])], ["y"], constants=constants))
        np.testing.assert_array_equal(run(mod, x), x[-1])


def test_a_constant_number_of_steps_that_is_not_written_out(monkeypatch):
    monkeypatch.setattr("weft.relax.frontend.onnx.operators.control.STEPS", 4)
    nodes = [
        node("SequenceEmpty", "", "q"), node("Loop", "m true q", "p", body=scaled_items()),
        node("ConcatFromSequence", "p", "y", axis=0),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=["n"])], ["y"],
                  constants={"m": np.array(7), "true": np.array(True)})  # fmt: skip
    check(proto, uniform(2))


def test_items_of_other_ranks_are_refused():
    body = appending(node("Identity", "x", "item"))
    after = [node("ConcatFromSequence", "p", "y", axis=0)]
    proto = looped(body, after, ("SequenceConstruct", "m2"), constants={"m2": np.float32(1)})
    with pytest.raises(OnnxNodeError, match="got items of 0 and of 1 dimensions; reshape them"):
        from_onnx(proto)


def test_reading_a_sequence_of_no_known_item_is_refused():
    body = appending(node("SequenceAt", "s minus", "last"), node("Add", "last x", "item"))
    proto = looped(body, [node("SequenceLength", "p", "y")], constants={"minus": np.array(-1)})
    with pytest.raises(OnnxNodeError, match="the rank of its items is not known; construct"):
        from_onnx(proto)


def mapped(other, *more):
    """A map over the rows of x and over another input: their sum with a value from outside."""
    body = helper.make_graph(
        [node("Add", "row it", "r"), node("Add", "r outside", "r2"),
         node("Concat", "r2 r2", "d", axis=0)],
        "map", [info("row"), info("it")], [info("r2"), info("d")],
    )  # fmt: skip
    nodes = [
        node("SplitToSequence", "x", "p", axis=0, keepdims=0), *more,
        node("SequenceMap", f"p {other}", "r d", body=body),
        node("ConcatFromSequence", "r", "y", axis=0, new_axis=1),
        node("ConcatFromSequence", "d", "z", axis=0),
    ]  # fmt: skip
    constants = {"outside": np.array([10, 20], "float32")}
    return model(nodes, [info("x", shape=["n", 2])], ["y", "z"], constants=constants)


MAPPED = {
    "p": lambda x: x,
    "other": lambda x: x * 2,
    "outside": lambda x: np.array([10, 20]),
}  # fmt: skip
"""What is mapped over beside the rows: them again, another sequence, a tensor."""


@pytest.mark.parametrize("other", MAPPED)
def test_a_map_over_as_many_items_as_the_run_tells(other):
    doubled = [node("Add", "x x", "x2"), node("SplitToSequence", "x2", "other", keepdims=0)]
    mod = from_onnx(mapped(other, *doubled))
    for rows in (1, 4):
        x = uniform(rows, 2)
        sums = x + MAPPED[other](x) + [10, 20]
        y, z = run(mod, x)
        np.testing.assert_allclose(y, sums, rtol=1e-6)
        np.testing.assert_allclose(z.reshape(rows, 4), np.concatenate([sums, sums], 1), rtol=1e-6)


def test_a_map_inside_of_a_map():
    inner = helper.make_graph([node("Mul", "e row", "f")], "map", [info("e")], [info("f")])
    outer = helper.make_graph(
        [node("SequenceMap", "p", "m", body=inner), node("ConcatFromSequence", "m", "c", axis=0)],
        "map", [info("row")], [info("c")],
    )  # fmt: skip
    nodes = [node("SplitToSequence", "x", "p", axis=0, keepdims=0),
             node("SequenceMap", "p", "q", body=outer),
             node("ConcatFromSequence", "q", "y", axis=0, new_axis=1)]  # fmt: skip
    x = uniform(3, 2)
    result = run(from_onnx(model(nodes, [info("x", shape=["n", 2])], ["y"])), x)
    np.testing.assert_allclose(result, [(x * row).ravel() for row in x], rtol=1e-6)
