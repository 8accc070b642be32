"""from_onnx: parameters, shapes with symbols, initializers, functions, files."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft import relax
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.coverage import operator_coverage
from weft.relax.frontend.onnx.node_order import in_order

pytestmark = pytest.mark.onnx


def linear(opset=21):
    return model(
        [node("MatMul", "x w", "h"), node("Add", "h b", "y")], [info("x", shape=["n", 4])], ["y"],
        opset, {"w": uniform(4, 3), "b": uniform(3, seed=1)},
    )  # fmt: skip


def test_initializers_are_constants():
    mod = from_onnx(linear())
    assert [str(param.name_hint) for param in mod["main"].params] == ["x"]
    assert mod["main"].attrs["num_input"] == 1
    x = uniform(2, 4, seed=2)
    np.testing.assert_allclose(run(mod, x), x @ uniform(4, 3) + uniform(3, seed=1), rtol=1e-6)


def test_kept_params_follow_the_inputs_and_detach():
    mod = from_onnx(linear(), keep_params_in_input=True)
    assert [param.name_hint for param in mod["main"].params] == ["x", "w", "b"]
    detached, params = relax.frontend.detach_params(mod)
    assert "params" not in detached["main"].attrs
    assert [item.shape for item in params["main"]] == [(4, 3), (3,)]
    x = uniform(2, 4, seed=2)
    made = run(detached, x, *[item.numpy() for item in params["main"]])
    np.testing.assert_allclose(made, run(from_onnx(linear()), x), rtol=1e-6)


def test_detach_refuses_params_that_are_no_arrays():
    mod = from_onnx(linear())
    mod["main"] = mod["main"].with_attr("params", [1])
    with pytest.raises(weft.TVMError, match="detach_params: main: expected NDArrays .* got int"):
        relax.frontend.detach_params(mod)


def test_a_named_dimension_is_one_symbol():
    proto = model(
        [node("Add", "a b", "y")], [info("a", shape=["n", 3]), info("b", shape=["n", 3])], ["y"]
    )
    mod = from_onnx(proto)
    a, b = mod["main"].params
    assert a.struct_info.shape[0] is b.struct_info.shape[0]
    check(proto, uniform(5, 3), uniform(5, 3, seed=1))


def test_names_of_dimensions_may_be_expressions():
    proto = model(
        [node("Concat", "a b", "y", axis=0)],
        [info("a", shape=["n", 2]), info("b", shape=["2*n+1", 2])], ["y"],
    )  # fmt: skip
    check(proto, uniform(2, 2), uniform(5, 2))


def test_shape_dict_and_dtype_dict_replace_what_the_model_says():
    proto = model([node("Relu", "x", "y")], [info("x", shape=["n", "m"])], ["y"])
    mod = from_onnx(proto, shape_dict={"x": [2, "k"]}, dtype_dict={"x": "float64"})
    (x,) = mod["main"].params
    assert str(x.struct_info) == 'R.Tensor((2, k), dtype="float64")'


def test_a_given_symbol_stays_that_object():
    n = weft.tir.Var("n", "int64")
    proto = model([node("Relu", "x", "y")], [info("x", shape=["a"])], ["y"])
    mod = from_onnx(proto, shape_dict={"x": [n]})
    assert mod["main"].params[0].struct_info.shape[0] is n


@pytest.mark.parametrize(
    ("names", "wanted"),
    [([".", "123"], ["_", "input_123"]), ([".", "_"], ["_", "__1"]),
     (["123", "input_123"], ["input_123", "input_123_1"]), (["a.b", "c"], ["a_b", "c"])],
)  # fmt: skip
def test_names_of_parameters_are_made_identifiers(names, wanted):
    proto = model([node("Add", " ".join(names), "y")], [info(n, shape=[2]) for n in names], ["y"])
    assert [p.name_hint for p in from_onnx(proto)["main"].params] == wanted
    kept = from_onnx(proto, sanitize_input_names=False)
    assert [p.name_hint for p in kept["main"].params] == names


def test_several_outputs_are_a_tuple():
    proto = model([node("Split", "x", "a b", num_outputs=2)], [info("x", shape=[4, 2])], ["a", "b"])
    check(proto, uniform(4, 2))


def test_an_input_can_be_the_output():
    proto = model([node("Identity", "x", "y")], [info("x", shape=[2])], ["y"])
    check(proto, uniform(2))


def test_path_and_bytes(tmp_path):
    proto = linear()
    path = tmp_path / "linear.onnx"
    onnx.save(proto, path)
    x = uniform(2, 4)
    wanted = run(from_onnx(proto), x)
    for source in (path, str(path), proto.SerializeToString()):
        np.testing.assert_array_equal(run(from_onnx(source), x), wanted)


def test_external_data(tmp_path):
    path = tmp_path / "linear.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="weights", size_threshold=0)
    assert (tmp_path / "weights").exists()
    x = uniform(2, 4)
    np.testing.assert_array_equal(run(from_onnx(path), x), run(from_onnx(linear()), x))


def test_sparse_initializers_are_made_dense():
    values = numpy_helper.from_array(np.array([1.0, 2.0], "float32"), "s")
    indices = numpy_helper.from_array(np.array([1, 5], "int64"), "s_indices")
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    proto = model([node("Add", "x s", "y")], [info("x", shape=[2, 3])], ["y"])
    proto.graph.sparse_initializer.append(sparse)
    made = run(from_onnx(proto), np.zeros((2, 3), "float32"))
    np.testing.assert_array_equal(made, [[0, 1, 0], [0, 0, 2]])


def test_functions_of_the_model_are_inlined_with_their_attributes():
    body = helper.make_function(
        "my", "Scale", ["x"], ["y"],
        [helper.make_node("Constant", [], ["f"]), helper.make_node("Mul", ["x", "f"], ["y"])],
        [helper.make_opsetid("", 21)], ["factor"],
    )  # fmt: skip
    body.node[0].attribute.append(onnx.AttributeProto(
        name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor"
    ))  # fmt: skip
    call = helper.make_node("Scale", ["x"], ["y"], domain="my", factor=3.0)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
    proto = model([call], [info("x", shape=[2])], ["y"], functions=[body], imports=imports)
    check(proto, uniform(2))


def test_operators_that_onnx_defines_are_translated_as_their_definition():
    from weft.relax.frontend.onnx.registry import find_converter

    assert find_converter("", "SwiGLU", 26) is None
    infos = [info("a", shape=["n", 3]), info("b", shape=["n", 3])]
    proto = model([node("SwiGLU", "a b", "y")], infos, ["y"], opset=28)
    gate, value = uniform(2, 3), uniform(2, 3, seed=1)
    made = run(from_onnx(proto), gate, value)
    np.testing.assert_allclose(made, gate / (1 + np.exp(-gate)) * value, rtol=1e-5)


def test_a_custom_converter_comes_first():
    def twice(context, x, *, bias=0.0):
        doubled = context.emit(relax.op.add(x.expr, x.expr))
        return context.emit(relax.op.add(doubled, context.constant(bias, x.dtype).expr))

    call = helper.make_node("Twice", ["x"], ["y"], domain="my", bias=1.0)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
    proto = model([call], [info("x", shape=[2])], ["y"], imports=imports)
    mod = from_onnx(proto, custom_converters={"my::Twice": twice})
    np.testing.assert_allclose(run(mod, np.array([1, 2], "float32")), [3, 5])


@pytest.mark.parametrize(
    ("converter", "told"),
    [
        (lambda context, x, *, low: relax.op.clip(x, low, 1), r"got Value: .*; give its \.expr"),
        (
            lambda context, x, low: x,
            "low=0.5 is not supported .its converter takes low as an input",
        ),
        (lambda x, *, low: x, r"it is called with \(context, x, low=\)"),
        (lambda context, x, *, low, high: x, "'high'.*; it is called with"),
        (lambda context, x, *, low: None, "its converter returned None; expected an expression"),
    ],
)
def test_a_custom_converter_that_is_called_otherwise_is_told_how(converter, told):
    call = helper.make_node("Low", ["x"], ["y"], domain="my", low=0.5)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
    proto = model([call], [info("x", shape=[2])], ["y"], imports=imports)
    with pytest.raises(weft.TVMError, match=told):
        from_onnx(proto, custom_converters={"my::Low": converter})


@pytest.mark.parametrize(
    ("converter", "told"),
    [
        (lambda x: relax.op.permute_dims(x), r"expected shape \(2, 3\) of 'y', as the model decl"),
        (lambda x: relax.op.sum(x, axis=[0]), r"expected shape \(2, 3\) of 'y'.*, got \(3\)"),
        (lambda x: relax.op.astype(x, "float16"), "expected float of 'y', as .*, got float16"),
    ],
)
def test_a_custom_converter_must_make_what_the_model_declares(converter, told):
    nodes = [node("Relu", "x", "y"), node("Neg", "y", "z")]
    proto = model(nodes, [info("x", shape=[2, 3])], ["z"])
    proto.graph.value_info.append(info("y", shape=[2, 3]))
    custom = {"Relu": lambda context, x: converter(x.expr)}
    with pytest.raises(weft.TVMError, match=f"the converter given for Relu: {told}"):
        from_onnx(proto, custom_converters=custom)


def test_what_is_not_known_to_differ_is_no_fault_of_a_custom_converter():
    nodes = [node("Relu", "x", "y"), node("Neg", "y", "z")]
    proto = model(nodes, [info("x", shape=["n", 3])], ["z"])
    proto.graph.value_info.append(info("y", shape=["m", 3]))
    custom = {"Relu": lambda context, x: relax.op.nn.relu(x.expr)}
    assert from_onnx(proto, custom_converters=custom)


def test_the_opset_can_be_overridden():
    proto = model([node("Softmax", "x", "y")], [info("x", shape=[2, 3, 4])], ["y"], opset=13)
    x = uniform(2, 3, 4)
    last = run(from_onnx(proto), x)
    flat = run(from_onnx(proto, opset=11), x)
    np.testing.assert_allclose(last.sum(-1), np.ones((2, 3)), rtol=1e-5)
    np.testing.assert_allclose(flat.sum((1, 2)), np.ones(2), rtol=1e-5)


def test_elements_of_four_and_eight_bits_are_held_in_bytes():
    proto = model(
        [node("Cast", "x", "y", to=TensorProto.FLOAT)],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FN, [3])], ["y"],
    )  # fmt: skip
    import ml_dtypes

    mod = from_onnx(proto)
    assert mod["main"].params[0].struct_info.dtype == "uint8"
    values = np.array([0.5, -3, 448], ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(run(mod, values.view("uint8")), [0.5, -3, 448])


def test_names_of_dimensions_that_look_like_expressions_are_one_size():
    proto = model([node("Relu", "x", "y")], [info("x", shape=["batch-size", "n//2"])], ["y"])
    check(proto, uniform(2, 3))
    mod = from_onnx(proto)
    assert [str(dim) for dim in mod["main"].params[0].struct_info.shape] == ["batch_size", "n__2"]
    assert weft.ir.structural_equal(weft.script.from_source(mod.script()), mod)
    known = from_onnx(proto, {"x": ["n", "n//2"]})
    assert 'x: R.Tensor(("n", "n // 2")' in known.script()


def test_coverage_counts_a_model_s_function_once():
    body = [node("Relu", "a", "b"), node("Mul", "a b", "c")]
    function = helper.make_function("my", "Gate", ["a"], ["c"], body, [helper.make_opsetid("", 21)])
    branch = helper.make_graph([helper.make_node("Gate", ["x"], ["r"], domain="my")], "b", [],
                               [info("r")])  # fmt: skip
    calls = [node("If", "c", "y", then_branch=branch, else_branch=branch)]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
    proto = model(calls, [info("x", shape=[2]), info("c", "bool", [])], ["y"],
                  functions=[function], imports=imports)  # fmt: skip
    rows = {row.name: (row.count, row.status) for row in operator_coverage(proto)}
    assert rows == {"If": (1, "converter"), "my::Gate": (2, "decomposed"),
                    "Relu": (1, "converter"), "Mul": (1, "converter")}  # fmt: skip


def test_the_caller_s_converter_comes_before_arithmetic_at_import():
    def negated(context, x, y):
        return context.emit(relax.op.subtract(x.expr, y.expr))

    proto = model([node("Add", "a b", "y")], [], ["y"],
                  constants={"a": np.array([5]), "b": np.array([3])})  # fmt: skip
    np.testing.assert_array_equal(run(from_onnx(proto, custom_converters={"Add": negated})), [2])


def doubling_loop():
    """x doubled n times, and x itself; a state is kept by two Identity nodes."""
    body = helper.make_graph(
        [node("Identity", "step", "kept"), node("Identity", "same_in", "step"),
         node("Add", "now shared", "next"), node("Sub", "now zero", "shared"),
         node("Identity", "go_in", "go")],
        "body",
        [info("i", "int64", []), info("go_in", "bool", []), info("now", shape=[2]),
         info("same_in", shape=[2])],
        [info("go", "bool", []), info("next", shape=[2]), info("kept", shape=[2])],
    )  # fmt: skip
    nodes = [node("Add", "last same", "y"), node("Loop", "n yes x x", "last same", body=body),
             node("Sub", "x x", "zero")]  # fmt: skip
    inputs = [info("n", "int64", []), info("x", shape=[2])]
    return model(nodes, inputs, ["y"], 21, {"yes": np.array(True)})


def test_nodes_in_any_order_are_sorted():
    """As onnxruntime does: in the graph, in a graph inside, which reads what stands behind it."""
    x = np.array([1.0, -3.0], "float32")
    result = run(from_onnx(doubling_loop()), np.array(3), x)
    np.testing.assert_array_equal(result, 9 * x)


def test_sorted_nodes_keep_the_order_of_the_file_where_they_may():
    nodes = [node("Relu", "c", "d"), node("Relu", "x", "a"), node("Relu", "x", "b"),
             node("Relu", "a", "c")]  # fmt: skip
    assert [item.output[0] for item in in_order(nodes)] == ["a", "b", "c", "d"]
    assert in_order(nodes[1:]) == nodes[1:]
