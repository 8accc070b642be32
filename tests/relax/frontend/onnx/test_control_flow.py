"""If, Loop, Scan, sequences and optionals."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft import relax
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import ConstantNeededError
from weft.support.errors import AssertionFault, TVMError

pytestmark = pytest.mark.onnx


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", inputs, outputs)


def branches():
    return {
        "then_branch": graph([node("Add", "x x", "r")], [], [info("r")]),
        "else_branch": graph([node("Mul", "x x", "r")], [], [info("r")]),
    }


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_that_the_data_chooses(flag):
    proto = model([node("If", "c", "y", **branches())], [info("c", "bool", []),
                  info("x", shape=["n", 2])], ["y"])  # fmt: skip
    check(proto, np.array(flag), uniform(3, 2))


def with_a_layer_that_does_not_fit():
    """As in silero_vad: the branch for another rate takes another shape of x."""
    weights = {"W": uniform(1, 8, 3), "R": uniform(1, 8, 2)}
    layer = node("LSTM", "x W R", "r", hidden_size=2)
    chosen = {
        "then_branch": graph([node("Add", "x x", "r")], [], [info("r")]),
        "else_branch": graph([layer], [], [info("r")]),
    }
    return node("If", "c", "y", **chosen), info("x", shape=[4, 3]), weights


def test_a_branch_that_is_known_may_be_the_only_one_that_fits():
    choice, x, weights = with_a_layer_that_does_not_fit()
    constants = {**weights, "c": np.array(True)}
    check(model([choice], [x], ["y"], constants=constants), uniform(4, 3))


def test_a_branch_that_does_not_fit_may_stand_there_and_never_run():
    choice, x, weights = with_a_layer_that_does_not_fit()
    proto = model([choice], [info("c", "bool", []), x], ["y"], constants=weights)
    x = uniform(4, 3)
    mod = from_onnx(proto)
    np.testing.assert_array_equal(run(mod, np.array(True), x), x + x)
    with pytest.raises(AssertionFault, match="else_branch was left out .* LSTM node .* got 2"):
        run(mod, np.array(False), x)


def test_a_branch_that_is_known_leaves_no_choice():
    proto = model([node("If", "c", "y", **branches())], [info("x", shape=[2])], ["y"],
                  constants={"c": np.array(False)})  # fmt: skip
    mod = from_onnx(proto)
    assert "R.multiply" in str(mod)
    assert "if " not in str(mod)
    check(proto, uniform(2))


def test_branches_of_other_shapes():
    then = graph([node("Concat", "x x", "r", axis=0)], [], [info("r")])
    other = graph([node("Identity", "x", "r")], [], [info("r")])
    proto = model([node("If", "c", "z", then_branch=then, else_branch=other),
                   node("Relu", "z", "y")],
                  [info("c", "bool", []), info("x", shape=[2, 3])], ["y"])  # fmt: skip
    for flag in (True, False):
        check(proto, np.array(flag), uniform(2, 3))


def squeezed(nodes, outputs=("y",), x=("n", 2, "k"), **constants):
    """PyTorch's ``x.squeeze(-1)``, and what follows it."""
    chosen = {
        "then_branch": graph([node("Squeeze", "x last", "r")], [], [info("r")]),
        "else_branch": graph([node("Identity", "x", "r")], [], [info("r")]),
    }
    start = [node("Shape", "x", "s"), node("Gather", "s minus", "extent"),
             node("Equal", "extent plus", "c"), node("If", "c", "z", **chosen)]  # fmt: skip
    known = {"last": np.array([-1]), "minus": np.array(-1), "plus": np.array(1)}
    return model([*start, *nodes], [info("x", shape=x)], outputs, constants={**known, **constants})


def test_branches_of_other_ranks_of_which_the_rest_takes_one():
    weights = {"w": uniform(1, 8, 2), "u": uniform(1, 8, 2), "front": np.array([0])}
    proto = squeezed([node("Unsqueeze", "z front", "t"),
                      node("LSTM", "t w u", "o h", hidden_size=2), node("Relu", "h", "y")],
                     **weights)  # fmt: skip
    check(proto, uniform(3, 2, 1))
    with pytest.raises(TVMError, match=r"expected shape \(n, 2, 1\), n=3, got \(3, 2, 2\)"):
        run(from_onnx(proto), uniform(3, 2, 2))


def test_branches_of_other_ranks_of_which_the_rest_takes_both():
    proto = squeezed([node("Shape", "z", "s2"), node("Size", "s2", "rank"),
                      node("Flatten", "z", "f", axis=0), node("Add", "f f", "y")],
                     ["y", "rank"])  # fmt: skip
    for shape in ((3, 2, 1), (3, 2, 4), (1, 2, 1)):
        check(proto, uniform(*shape))


@pytest.mark.parametrize("damaged", ["then_branch", "else_branch"])
def test_branches_of_other_ranks_of_which_one_gives_too_little(damaged):
    """Found by damaged files: what follows an If was translated behind such a branch, too."""
    proto = squeezed([node("Flatten", "z", "y", axis=0)])
    (choice,) = [item for item in proto.graph.node if item.op_type == "If"]
    choice.output.append("w")
    (whole,) = [item.g for item in choice.attribute if item.name != damaged]
    whole.output.append(whole.output[0])
    mod = from_onnx(proto)
    fits, other = ((3, 2, 4), (3, 2, 1)) if damaged == "then_branch" else ((3, 2, 1), (3, 2, 4))
    x = uniform(*fits)
    np.testing.assert_array_equal(run(mod, x), x.reshape(1, -1))
    refused = r"expected shape \(n, 2, 1\)|then_branch was left out .* expected 2 outputs, got 1"
    with pytest.raises(TVMError, match=refused):
        run(mod, uniform(*other))


def test_a_later_choice_by_the_rank_of_the_first():
    branches = {
        "then_branch": graph([node("Unsqueeze", "z last", "r2")], [], [info("r2")]),
        "else_branch": graph([node("Identity", "z", "r2")], [], [info("r2")]),
    }
    proto = squeezed(
        [node("Shape", "z", "s2"), node("Size", "s2", "rank"), node("Equal", "rank two", "is2"),
         node("If", "is2", "back", **branches), node("Mul", "back x", "y")],
        two=np.array(2),
    )  # fmt: skip
    for shape in ((3, 2, 1), (3, 2, 4)):
        check(proto, uniform(*shape))


def test_results_of_other_ranks_are_tensors_of_unknown_rank():
    proto = squeezed([node("Relu", "z", "y")])
    for shape in ((3, 2, 1), (3, 2, 4), (1, 2, 1)):
        check(proto, uniform(*shape))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("extents", [("n", 2, 1), ("n", 1, "m"), (1, 1, "m"), (1, 3, 1)])
def test_a_squeeze_without_axes_removes_what_has_one_element(extents, opset):
    nodes = [node("Squeeze", "x", "z"), node("Sigmoid", "z", "s"), node("Mul", "s s", "y")]
    proto = model(nodes, [info("x", shape=extents)], ["y"], opset=opset)
    for n, m in [(1, 1), (1, 3), (2, 1), (3, 4)]:
        check(proto, uniform(*[{"n": n, "m": m}.get(extent, extent) for extent in extents]))


def test_a_squeeze_whose_result_fits_one_rank_only():
    nodes = [node("Squeeze", "x", "z"), node("Transpose", "z", "y", perm=[1, 0])]
    proto = model(nodes, [info("x", shape=["n", 1, 3])], ["y"])
    check(proto, uniform(4, 1, 3))
    with pytest.raises(TVMError, match="Squeeze node .*the case that axis 0 has one element was"):
        run(from_onnx(proto), uniform(1, 1, 3))


def test_many_squeezes_of_one_extent_ask_once():
    nodes = [node("Squeeze", "x", "z0")]
    for step in range(12):
        nodes.append(node("Unsqueeze", f"z{step} last", f"u{step}"))
        nodes.append(node("Relu", f"u{step}", f"r{step}"))
        nodes.append(node("Squeeze", f"r{step}", f"z{step + 1}"))
    constants = {"last": np.array([-1])}
    proto = model(nodes, [info("x", shape=["n", 2, 1])], ["z12"], constants=constants)
    mod = from_onnx(proto)
    assert mod.script().count("R.nn.relu") == 24
    for n in (1, 3):
        assert run(mod, uniform(n, 2, 1)).shape == ((2,) if n == 1 else (3, 2))


def counting_loop(condition):
    """Sums its input up, and scans the sums out."""
    body = graph(
        [node("Add", "s x", "s2"), node("Identity", "s2", "o"), condition],
        [info("i", "int64", []), info("c", "bool", []), info("s", shape=[2])],
        [info("c2", "bool", []), info("s2", shape=[2]), info("o", shape=[2])],
    )  # fmt: skip
    return body


def test_a_loop_of_known_length_is_written_out():
    body = counting_loop(node("Identity", "c", "c2"))
    proto = model([node("Loop", "m k x", "y o", body=body)], [info("x", shape=[2])], ["y", "o"],
                  constants={"m": np.array(3), "k": np.array(True)})  # fmt: skip
    check(proto, uniform(2))


def long_loop(condition):
    """1,500 steps of four nodes at the most: sums, and the sums so far, halved."""
    body = graph(
        [node("Mul", "x hundredth", "part"), node("Add", "s part", "s2"),
         node("Mul", "s2 half", "o"), condition],
        [info("i", "int64", []), info("c", "bool", []), info("s", shape=["k"])],
        [info("c2", "bool", []), info("s2", shape=["k"]), info("o", shape=["k"])],
    )  # fmt: skip
    constants = {"m": np.array(1500), "k": np.array(True), "half": np.array(0.5, "float32"),
                 "hundredth": np.array(0.01, "float32"), "last": np.array(999)}  # fmt: skip
    return model([node("Loop", "m k x", "y o", body=body)], [info("x", shape=["n"])],
                 ["y", "o"], constants=constants)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "steps"),
    [(node("Identity", "c", "c2"), 1500), (node("Less", "i last", "c2"), 1000)],
)
def test_a_long_loop_is_a_function(condition, steps):
    mod = from_onnx(long_loop(condition))
    assert len(mod.script().splitlines()) < 100
    x = np.array([1, -2], "float32")
    end, scanned = run(mod, x)
    sums = x + 0.01 * x * np.arange(1, steps + 1)[:, None]
    np.testing.assert_allclose(end, sums[-1], rtol=1e-4)
    np.testing.assert_allclose(scanned, sums / 2, rtol=1e-4)


def test_a_long_loop_of_a_known_number_of_steps_gives_so_many_rows():
    mod = from_onnx(long_loop(node("Identity", "c", "c2")))
    assert mod["main"].ret_struct_info.fields[1].shape[0].value == 1500


def test_a_long_loop_over_constants_is_computed_at_import():
    calls = [node("Add", "s one", "s1"), node("Mul", "s1 one", "s2"), node("Identity", "c", "c2")]
    body = graph(calls, [info("i", "int64", []), info("c", "bool", []), info("s", "int64", [])],
                 [info("c2", "bool", []), info("s2", "int64", [])])  # fmt: skip
    constants = {"m": np.array(900), "zero": np.array([0]), "one": np.array([1])}
    proto = model([node("Loop", "m - zero", "y", body=body), node("Expand", "x y", "z")],
                  [info("x", shape=[1])], ["z"], constants=constants)  # fmt: skip
    assert from_onnx(proto)["main"].ret_struct_info.shape[0].value == 900


def test_a_long_loop_that_changes_the_rank_is_written_out(monkeypatch):
    monkeypatch.setattr("weft.relax.frontend.onnx.operators.control.WRITTEN", 4)
    calls = [node("Unsqueeze", "s zero", "s2"), node("Identity", "c", "c2")]
    body = graph(calls, [info("i", "int64", []), info("c", "bool", []), info("s")],
                 [info("c2", "bool", []), info("s2")])  # fmt: skip
    proto = model([node("Loop", "m - x", "y", body=body)], [info("x", shape=[2])], ["y"],
                  constants={"m": np.array(3), "zero": np.array([0])})  # fmt: skip
    assert run(from_onnx(proto), uniform(2)).shape == (1, 1, 1, 2)


def test_a_loop_stops_by_its_condition():
    body = counting_loop(node("Less", "i two", "c2"))
    proto = model([node("Loop", "- k x", "y o", body=body)], [info("x", shape=[2])], ["y", "o"],
                  constants={"k": np.array(True), "two": np.array(2)})  # fmt: skip
    made = run(from_onnx(proto), np.ones(2, "float32"))
    np.testing.assert_array_equal(made[0], [4, 4])
    assert made[1].shape == (3, 2)


def test_a_scan():
    body = graph(
        [node("Add", "s x", "s2"), node("Mul", "s2 two", "o")],
        [info("s", shape=[2]), info("x", shape=[2])], [info("s2", shape=[2]), info("o", shape=[2])],
    )  # fmt: skip
    proto = model([node("Scan", "s0 xs", "s o", body=body, num_scan_inputs=1)],
                  [info("s0", shape=[2]), info("xs", shape=[4, 2])], ["s", "o"],
                  constants={"two": np.array(2, "float32")})  # fmt: skip
    check(proto, uniform(2), uniform(4, 2, seed=1))


@pytest.mark.parametrize("backwards", [0, 1])
def test_a_scan_of_as_many_steps_as_the_run_tells(backwards):
    body = graph(
        [node("Add", "s x", "s2"), node("Mul", "s2 two", "o")],
        [info("s", shape=[2]), info("x", shape=[2])], [info("s2", shape=[2]), info("o", shape=[2])],
    )  # fmt: skip
    scan = node("Scan", "s0 xs", "s o", body=body, num_scan_inputs=1, scan_input_axes=[1],
                scan_input_directions=[backwards], scan_output_axes=[1],
                scan_output_directions=[backwards])  # fmt: skip
    proto = model([scan], [info("s0", shape=[2]), info("xs", shape=[2, "t"])], ["s", "o"],
                  constants={"two": np.array(2, "float32")})  # fmt: skip
    mod = from_onnx(proto)
    for steps in (1, 5):
        start, rows = uniform(2), uniform(2, steps, seed=1)
        way = -1 if backwards else 1
        sums = start[:, None] + np.cumsum(rows[:, ::way], 1)
        end, scanned = run(mod, start, rows)
        np.testing.assert_allclose(end, sums[:, -1], rtol=1e-5)
        np.testing.assert_allclose(scanned, 2 * sums[:, ::way], rtol=1e-5)


def test_sequences_are_known_at_import():
    nodes = [
        node("SequenceConstruct", "x z", "q"), node("SequenceInsert", "q z one", "q2"),
        node("SequenceErase", "q2 zero", "q3"), node("SequenceLength", "q3", "n"),
        node("SequenceAt", "q3 minus", "last"), node("ConcatFromSequence", "q3", "all", axis=0),
    ]  # fmt: skip
    constants = {"one": np.array(1), "zero": np.array(0), "minus": np.array(-1)}
    infos = [info("x", shape=[1]), info("z", shape=[2])]
    proto = model(nodes, infos, ["n", "last", "all"], constants=constants)
    check(proto, uniform(1), uniform(2, seed=1))


def test_a_sequence_as_output_is_a_tuple():
    proto = model([node("SplitToSequence", "x s", "y", axis=0)], [info("x", shape=[5, 2])], ["y"],
                  constants={"s": np.array(2)})  # fmt: skip
    x = uniform(5, 2)
    made = run(from_onnx(proto), x)
    assert [item.shape for item in made] == [(2, 2), (2, 2), (1, 2)]
    np.testing.assert_array_equal(np.concatenate(made), x)


def test_a_map_over_a_sequence():
    body = graph([node("Add", "e w", "r")], [info("e"), info("w")], [info("r")])
    proto = model([node("SequenceConstruct", "x z", "q"),
                   node("SequenceMap", "q x", "p", body=body),
                   node("ConcatFromSequence", "p", "y", axis=0, new_axis=1)],
                  [info("x", shape=[2]), info("z", shape=[2])], ["y"])  # fmt: skip
    check(proto, uniform(2), uniform(2, seed=1))


def test_optionals():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    nodes = [
        node("Optional", "x", "full"), node("Optional", "", "empty", type=kind),
        node("OptionalHasElement", "full", "a"), node("OptionalHasElement", "empty", "b"),
        node("OptionalGetElement", "full", "c"),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=[2])], ["a", "b", "c"])
    made = run(from_onnx(proto), uniform(2))
    assert (bool(made[0]), bool(made[1])) == (True, False)
    np.testing.assert_array_equal(made[2], uniform(2))


def test_a_loop_whose_length_the_data_gives():
    body = counting_loop(node("Identity", "c", "c2"))
    proto = model([node("Loop", "m k x", "y o", body=body)],
                  [info("m", "int64", []), info("x", shape=["n"])], ["y", "o"],
                  constants={"k": np.array(True)})  # fmt: skip
    for steps in (1, 3):
        check(proto, np.array(steps), uniform(2))
    made = run(from_onnx(proto), np.array(0), uniform(2))
    assert [item.shape for item in made] == [(2,), (0, 2)]


def test_a_loop_whose_state_grows_until_the_data_says_stop():
    body = graph([node("Concat", "s x", "s2", axis=0), node("Less", "i m", "c2")],
                 [info("i", "int64", []), info("c", "bool", []), info("s")],
                 [info("c2", "bool", []), info("s2")])  # fmt: skip
    proto = model([node("Loop", "- k x", "y", body=body)],
                  [info("m", "int64", []), info("x", shape=["n"])], ["y"],
                  constants={"k": np.array(True)})  # fmt: skip
    made = run(from_onnx(proto), np.array(2), uniform(3))
    np.testing.assert_array_equal(made, np.tile(uniform(3), 4))


def test_a_loop_of_many_steps():
    body = graph([node("Add", "s one", "s2"), node("Identity", "c", "c2")],
                 [info("i", "int64", []), info("c", "bool", []), info("s", shape=[2])],
                 [info("c2", "bool", []), info("s2", shape=[2])])  # fmt: skip
    proto = model([node("Loop", "m k x", "y", body=body)],
                  [info("m", "int64", []), info("x", shape=[2])], ["y"],
                  constants={"k": np.array(True), "one": np.array(1, "float32")})  # fmt: skip
    made = run(from_onnx(proto), np.array(2000), np.zeros(2, "float32"))
    np.testing.assert_array_equal(made, [2000, 2000])


def loop_with_kept_states():
    """A loop that carries weights between its own states and hands them on through Identity."""
    carried = [info("w", shape=[2, 2]), info("h", shape=["n", 2]), info("unused", shape=[3])]
    body = graph(
        [node("Identity", "c", "c2"), node("Identity", "w", "w1"), node("Identity", "w1", "w2"),
         node("Transpose", "w", "wt", perm=[1, 0]), node("MatMul", "h wt", "h2"),
         node("Mul", "h2 h2", "o")],
        [info("i", "int64", []), info("c", "bool", []), *carried],
        [info("c2", "bool", []), info("w2", shape=[2, 2]), info("h2", shape=["n", 2]),
         info("unused", shape=[3]), info("o", shape=["n", 2])],
    )  # fmt: skip
    return node("Loop", "m - weight x z", "w_out h_out z_out o", body=body)


@pytest.mark.parametrize("is_constant", [True, False])
def test_states_that_the_body_hands_on_as_they_are(is_constant):
    weight = np.array([[1, 2], [-1, 0.5]], "float32")
    inputs = [info("m", "int64", []), info("x", shape=["n", 2]), info("z", shape=[3])]
    if not is_constant:
        inputs.append(info("weight", shape=[2, 2]))
    proto = model([loop_with_kept_states()], inputs, ["w_out", "h_out", "z_out", "o"],
                  constants={"weight": weight} if is_constant else {})  # fmt: skip
    mod = from_onnx(proto)
    arrays = [np.array(3), uniform(2, 2), uniform(3, seed=1), *([] if is_constant else [weight])]
    kept, h, unused, rows = run(mod, *arrays)
    expected = [arrays[1]]
    for _ in range(3):
        expected.append(expected[-1] @ weight.T)
    np.testing.assert_array_equal(kept, weight)
    np.testing.assert_array_equal(unused, arrays[2])
    np.testing.assert_allclose(h, expected[-1], rtol=1e-5)
    np.testing.assert_allclose(rows, np.square(expected[1:]), rtol=1e-5)


def test_what_a_body_computes_of_kept_constants_is_computed_when_the_model_is_built():
    weight = np.array([[1, 2], [-1, 0.5]], "float32")
    proto = model([loop_with_kept_states()],
                  [info("m", "int64", []), info("x", shape=["n", 2]), info("z", shape=[3])],
                  ["h_out"], constants={"weight": weight})  # fmt: skip
    lowered = relax.get_pipeline("weft")(from_onnx(proto))
    assert not [name for name in map(str, lowered.get_global_vars()) if "transpose" in name]


def test_a_loop_hands_on_an_optional_that_its_body_does_not_change():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    optional = helper.make_optional_type_proto(kind)
    body = graph([node("Identity", "c", "c2")],
                 [info("i", "int64", []), info("c", "bool", []),
                  helper.make_value_info("s", optional)],
                 [info("c2", "bool", []), helper.make_value_info("s", optional)])  # fmt: skip
    proto = model([node("Optional", "x", "q"), node("Loop", "m - q", "p", body=body),
                   node("OptionalGetElement", "p", "y")],
                  [info("m", "int64", []), info("x", shape=[2])], ["y"])  # fmt: skip
    np.testing.assert_array_equal(run(from_onnx(proto), np.array(2), uniform(2)), uniform(2))


def test_a_loop_over_an_optional_whose_length_the_data_gives_names_its_input():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    optional = helper.make_optional_type_proto(kind)
    body = graph([node("OptionalGetElement", "s", "e"), node("Add", "e e", "e2"),
                  node("Optional", "e2", "s2"), node("Identity", "c", "c2")],
                 [info("i", "int64", []), info("c", "bool", []),
                  helper.make_value_info("s", optional)],
                 [info("c2", "bool", []), helper.make_value_info("s2", optional)])  # fmt: skip
    proto = model([node("Optional", "x", "q"), node("Loop", "m - q", "p", body=body),
                   node("OptionalGetElement", "p", "y")],
                  [info("m", "int64", []), info("x", shape=[2])], ["y"])  # fmt: skip
    with pytest.raises(ConstantNeededError, match="its input M or cond, as it carries") as caught:
        from_onnx(proto)
    assert caught.value.sources == {"m"}


@pytest.mark.parametrize("limit", [3, 20])
def test_a_loop_that_only_its_condition_ends(limit, monkeypatch):
    monkeypatch.setattr("weft.relax.frontend.onnx.operators.control.STEPS", 8)
    calls = [node("Add", "i one", "i2"), node("Less", "i2 limit", "c2")]
    body = helper.make_graph(
        calls, "body", [info("step", "int64", []), info("c", "bool", []), info("i", "int64", [])],
        [info("c2", "bool", []), info("i2", "int64", [])],
    )  # fmt: skip
    constants = {"t": np.array(True), "zero": np.array(0), "one": np.array(1),
                 "limit": np.array(limit)}  # fmt: skip
    proto = model([node("Loop", "- t zero", "y", body=body)], [], ["y"], constants=constants)
    assert run(from_onnx(proto)) == limit


def drawing_body():
    return graph(
        [node("RandomUniform", "", "r", shape=[4], seed=2.0), node("Add", "s r", "s2"),
         node("Identity", "c", "c2")],
        [info("i", "int64", []), info("c", "bool", []), info("s")],
        [info("c2", "bool", []), info("s2"), info("r")],
    )  # fmt: skip


@pytest.mark.parametrize("is_known", [True, False])
def test_the_steps_of_a_loop_draw_numbers_of_their_own(is_known):
    steps = np.array(3)
    inputs = [info("x", shape=[4])] if is_known else [info("m", "int64", []), info("x", shape=[4])]
    constants = {"k": np.array(True), **({"m": steps} if is_known else {})}
    proto = model([node("Loop", "m k x", "y o", body=drawing_body())], inputs, ["y", "o"],
                  constants=constants)  # fmt: skip
    start = np.zeros(4, "float32")
    total, drawn = run(from_onnx(proto), *([start] if is_known else [steps, start]))
    assert drawn.shape == (3, 4)
    assert len(np.unique(drawn)) == 12
    np.testing.assert_allclose(total, drawn.sum(0), rtol=1e-6)
