"""Models from ONNX through weft.compile: names, shapes, files, errors."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.support.errors import IRTypeError, IRValueError, TVMError

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

WEIGHT = np.arange(12, dtype="float32").reshape(4, 3) / 10
X = np.arange(8, dtype="float32").reshape(2, 4) - 3


def model(shape=("n", 4), outputs=1):
    from onnx import TensorProto, helper, numpy_helper

    x = helper.make_tensor_value_info("data.1", TensorProto.FLOAT, shape)
    names = ("y", "z")[:outputs]
    found = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    nodes = [
        helper.make_node("MatMul", ["data.1", "weight"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
        helper.make_node("Neg", ["p"], ["z"]),
    ]
    weight = numpy_helper.from_array(WEIGHT, "weight")
    graph = helper.make_graph(nodes[: outputs + 1], "net", [x], found, [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_model_is_called_by_position_or_by_the_names_of_its_file():
    made = weft.compile(model())
    np.testing.assert_allclose(made(X), np.maximum(X @ WEIGHT, 0), rtol=1e-6)
    np.testing.assert_allclose(made(**{"data.1": X[:1]}), np.maximum(X[:1] @ WEIGHT, 0), rtol=1e-6)
    with pytest.raises(IRValueError, match=r"net: argument data\.1: expected shape \(n, 4\), n=4"):
        made(X.T.copy())


def test_several_outputs_are_a_tuple():
    y, z = weft.compile(model(outputs=2))(X)
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHT, 0), rtol=1e-6)
    np.testing.assert_allclose(z, -(X @ WEIGHT), rtol=1e-6)


@pytest.mark.parametrize("external", [False, True])
def test_a_file(tmp_path, external):
    path = tmp_path / "net.onnx"
    onnx.save(model(), path, save_as_external_data=external, size_threshold=0, location="weights")
    for source in (path, str(path)):
        made = weft.compile(source)
        np.testing.assert_allclose(made(X), np.maximum(X @ WEIGHT, 0), rtol=1e-6)
    made.save(tmp_path / "net.weft")
    np.testing.assert_array_equal(weft.load(tmp_path / "net.weft")(X), made(X))


@pytest.mark.parametrize(
    ("examples", "dynamic"),
    [
        ({"data.1": X}, None), (X, None), ((X,), None), ({"data.1": [2, 4]}, None),
        ({"data.1": X}, {"data.1": {0: "batch"}}), ({"data.1": ["batch", 4]}, None),
    ],
)  # fmt: skip
def test_shapes_from_examples(examples, dynamic):
    made = weft.compile(model((None, None)), examples, dynamic_shapes=dynamic)
    np.testing.assert_allclose(made(X), np.maximum(X @ WEIGHT, 0), rtol=1e-6)
    (pattern,) = [pattern for _, pattern in made.program.functions["main"].params]
    assert pattern[2][1] == 4
    if dynamic or "batch" in str(examples):
        np.testing.assert_allclose(made(X[:1]), np.maximum(X[:1] @ WEIGHT, 0), rtol=1e-6)
    else:
        assert pattern[2] == (2, 4)


def test_dynamic_shapes_need_no_example_where_the_model_tells_the_rank():
    compiled = weft.compile(model((2, 4)), dynamic_shapes={"data.1": {0: "batch"}})
    assert compiled.program.functions["main"].params[0][1][2] == ("batch", 4)
    for rows in (1, 5):
        x = np.ones((rows, 4), "float32")
        np.testing.assert_allclose(compiled(x), np.maximum(x @ WEIGHT, 0), rtol=1e-6)


def test_a_number_in_dynamic_shapes_fixes_the_axis():
    compiled = weft.compile(model(("n", "m")), dynamic_shapes={"data.1": {0: "rows", -1: 4}})
    assert compiled.program.functions["main"].params[0][1][2] == ("rows", 4)
    compiled = weft.compile(model(), X, dynamic_shapes={"data.1": {0: np.int64(2)}})
    assert compiled.program.functions["main"].params[0][1][2] == (2, 4)


def model_of_one_name_for_two_extents(name="width"):
    """y beside x, in a file that names the extents of both ``width``."""
    from onnx import TensorProto, helper

    given = [
        helper.make_tensor_value_info(item, TensorProto.FLOAT, ["batch", name]) for item in "xy"
    ]
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Concat", ["x", "y"], ["z"], axis=1)]
    graph = helper.make_graph(nodes, "pair", given, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("is_saved", [False, True])
def test_two_extents_of_one_name_are_refused_with_what_to_do(tmp_path, is_saved):
    compiled = weft.compile(model_of_one_name_for_two_extents())
    if is_saved:
        compiled.save(tmp_path / "pair.weft")
        compiled = weft.load(tmp_path / "pair.weft")
    x, y = np.ones((2, 3), "float32"), np.zeros((2, 0), "float32")
    assert compiled(x, x).shape == (2, 6)
    with pytest.raises(IRValueError) as raised:
        compiled(x, y)
    assert str(raised.value) == (
        "pair: argument y: expected shape (batch, width), batch=2, width=3, got (2, 0); "
        "axis 1 of x (3) and axis 1 of y (0) have one name, 'width', so they are one extent. If "
        "they are two, name one anew: weft.compile(..., dynamic_shapes={'y': {1: 'width_2'}})"
    )


def model_of_texts_and_numbers():
    """Classes of texts, and numbers of as many as it says: an extent has one name in both."""
    helper, kinds = onnx.helper, onnx.TensorProto
    given = [
        helper.make_tensor_value_info("words", kinds.STRING, ["N"]),
        helper.make_tensor_value_info("x", kinds.FLOAT, ["N"]),
    ]
    results = [
        helper.make_tensor_value_info(item, kind, None)
        for item, kind in (("classes", kinds.INT64), ("y", kinds.FLOAT))
    ]
    nodes = [
        helper.make_node(
            "LabelEncoder",
            ["words"],
            ["classes"],
            domain="ai.onnx.ml",
            keys_strings=["a", "b"],
            values_int64s=[1, 2],
        ),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "pair", given, results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets)  # fmt: skip


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("kind", [list, np.array])
def test_an_extent_of_texts_with_the_name_of_another_is_refused_too(tmp_path, is_saved, kind):
    compiled = weft.compile(model_of_texts_and_numbers())
    if is_saved:
        compiled.save(tmp_path / "pair.weft")
        compiled = weft.load(tmp_path / "pair.weft")
    classes, _ = compiled(kind(["b", "a"]), np.ones(2, "float32"))
    np.testing.assert_array_equal(classes, [2, 1])
    with pytest.raises(IRValueError) as raised:
        compiled(kind(["b", "a"]), np.ones(3, "float32"))
    assert str(raised.value) == (
        "pair: the extents of inputs contradict each other; axis 0 of words (2) and axis 0 of x "
        "(3) have one name, 'N', so they are one extent. If they are two, name one anew: "
        "weft.compile(..., dynamic_shapes={'x': {0: 'N_2'}})"
    )
    apart = weft.compile(model_of_texts_and_numbers(), dynamic_shapes={"x": {0: "N_2"}})
    classes, y = apart(kind(["b"]), np.ones(3, "float32"))
    assert (classes.shape, y.shape) == ((1,), (3,))


@pytest.mark.parametrize(
    ("examples", "options"),
    [
        (None, {"dynamic_shapes": {"y": {1: "width_2"}}}),
        (None, {"shape_dict": {"y": ["batch", "width_2"]}}),
        (None, {"shape_dict": {"y": ["batch", "width"]}, "dynamic_shapes": {"y": {1: "width_2"}}}),
        ({"x": ["batch", "width"]}, {"dynamic_shapes": {"y": {1: "width_2"}}}),
    ],
)
def test_a_second_name_makes_two_extents_of_one(examples, options):
    compiled = weft.compile(model_of_one_name_for_two_extents(), examples, **options)
    for batch, width, other in ((2, 3, 5), (1, 0, 1), (4, 7, 7)):
        x, y = np.ones((batch, width), "float32"), np.zeros((batch, other), "float32")
        np.testing.assert_array_equal(compiled(x, y), np.concatenate([x, y], 1))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones((2, 3), "float32"), np.ones((2, 3), "int64")),
        (np.ones((2, 3), "float32"), np.ones((2, 3, 1), "float32")),
        (np.ones((2, 3), "float32"), 5),
    ],
)
def test_other_mistakes_get_no_hint_of_names(x, y):
    with pytest.raises(TVMError) as raised:
        weft.compile(model_of_one_name_for_two_extents())(x, y)
    assert "argument y" in str(raised.value)
    assert "one name" not in str(raised.value)


class Rows:
    """As ``torch.export.Dim``."""

    def __init__(self, low, high):
        self.__name__, self.min, self.max = "rows", low, high


class _DimHint:
    """As ``torch.export.Dim.AUTO``, whose class has this name."""

    class type:  # noqa: N801 - torch's name
        name = "AUTO"


def test_the_range_of_a_dim_is_checked():
    compiled = weft.compile(model(), dynamic_shapes={"data.1": {0: Rows(2, 5)}})
    assert compiled(np.ones((5, 4), "float32")).shape == (5, 3)
    with pytest.raises(IRValueError, match="is 6, and the model was compiled for 2 to 5"):
        compiled(np.ones((6, 4), "float32"))


def test_an_axis_that_is_dynamic_without_a_name_gets_one():
    compiled = weft.compile(model(), X, dynamic_shapes={"data.1": {0: _DimHint()}})
    assert compiled(X[:1]).shape == (1, 3)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({0: 3}, IRValueError, "the axis has the extent 2 in the example, got 3; give a name"),
        ({1: 5}, IRValueError, "has the extent 4 in the example, got 5"),
        ({0: -1}, IRValueError, "extent 2 in the example, got -1"),
        ({0: 1.5}, IRTypeError, r"dynamic_shapes\['data.1'\]\[0\]: expected the name .* got 1.5"),
        ({0: True}, IRTypeError, "expected the name of an extent, .* got True"),
        ({0: ""}, IRTypeError, "expected the name of an extent, .* got ''"),
        ({0: "3"}, IRTypeError, "expected the name of an extent, .* got '3'"),
        ({0: ["n"]}, IRTypeError, r"expected the name of an extent, .* got \['n'\]"),
        ({True: "n"}, IRValueError, "there is no axis True"),
        ({0: Rows(2, 5), 1: Rows(2, 6)}, IRValueError, "the range of 'rows' is .2, 6. here and"),
    ],
)
def test_sizes_in_dynamic_shapes_that_do_not_fit(sizes, error, message):
    with pytest.raises(error, match=message):
        weft.compile(model(), X, dynamic_shapes={"data.1": sizes})


def test_numbers_in_dynamic_shapes_that_the_model_contradicts():
    with pytest.raises(IRValueError, match=r"\[1\]: the axis has the extent 4 in the .* got 5"):
        weft.compile(model(), dynamic_shapes={"data.1": {1: 5}})
    with pytest.raises(IRValueError, match="expected an extent of at least 0, got -1"):
        weft.compile(model(), dynamic_shapes={"data.1": {0: -1}})


def test_inputs_that_the_caller_fixes():
    compiled = weft.compile(model_of_two_rates(), constants={"rate": 16000})
    np.testing.assert_array_equal(compiled(X), X * 2)
    other = weft.compile(model_of_two_rates(), X, constants={"rate": np.int64(8000)})
    np.testing.assert_array_equal(other(X), -X)


def model_of_two_rates():
    """x * 2 at a rate of 16000, else -x."""
    from onnx import TensorProto, helper, numpy_helper

    result = helper.make_tensor_value_info("r", TensorProto.FLOAT, None)
    branches = [
        helper.make_graph([helper.make_node(name, inputs, ["r"])], "branch", [], [result])
        for name, inputs in (("Add", ["x", "x"]), ("Neg", ["x"]))
    ]
    nodes = [
        helper.make_node("Equal", ["rate", "wanted"], ["is"]),
        helper.make_node("If", ["is"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
              helper.make_tensor_value_info("rate", TensorProto.INT64, [])]  # fmt: skip
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    wanted = numpy_helper.from_array(np.array(16000), "wanted")
    graph = helper.make_graph(nodes, "rates", inputs, [result], [wanted])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def model_of_an_optional():
    """The sum with a tensor that may be absent."""
    there = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n", 3])
    more = onnx.helper.make_value_info("more", onnx.helper.make_optional_type_proto(there))
    result = [onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)]
    nodes = [onnx.helper.make_node("OptionalGetElement", ["more"], ["m"]),
             onnx.helper.make_node("Add", ["m", "x"], ["r"])]  # fmt: skip
    same = onnx.helper.make_node("Identity", ["x"], ["r"])
    graphs = {"then_branch": onnx.helper.make_graph(nodes, "then", [], result),
              "else_branch": onnx.helper.make_graph([same], "else", [], result)}  # fmt: skip
    chosen = [onnx.helper.make_node("OptionalHasElement", ["more"], ["there"]),
              onnx.helper.make_node("If", ["there"], ["y"], **graphs)]  # fmt: skip
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3]), more]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 3])]
    opset = [onnx.helper.make_opsetid("", 18)]
    return onnx.helper.make_model(
        onnx.helper.make_graph(chosen, "main", inputs, outputs), opset_imports=opset
    )


def test_an_optional_input_is_there_or_fixed_to_be_absent():
    x = np.ones((2, 3), "float32")
    there = weft.compile(model_of_an_optional(), cache=False)
    np.testing.assert_array_equal(there(x, 2 * x), 3 * x)
    absent = weft.compile(model_of_an_optional(), constants={"more": None}, cache=False)
    np.testing.assert_array_equal(absent(x), x)


@pytest.mark.parametrize(
    ("constants", "error", "message"),
    [
        ({"sr": 1}, IRValueError, "constants: the model has no input 'sr'; its inputs are x, rate"),
        ({"rate": 0.5}, IRTypeError, "input 'rate' has the type int64, got float64"),
        ({"rate": [1]}, IRValueError, r"input 'rate' has the shape \(\), got \(1,\)"),
        ({"x": np.ones((2, 3))}, IRValueError, r"input 'x' has the shape \(n, 4\), got \(2, 3\)"),
        (16000, IRTypeError, r"expected a dict \{input: value\}, got int"),
    ],
)
def test_constants_that_do_not_fit(constants, error, message):
    with pytest.raises(error, match=message):
        weft.compile(model_of_two_rates(), constants=constants)


def test_an_axis_of_no_name_is_not_dynamic():
    made = weft.compile(model((None, None)), X, dynamic_shapes={"data.1": {0: None, 1: None}})
    assert made.program.functions["main"].params[0][1][2] == (2, 4)


def test_a_model_that_protobuf_cannot_serialize_has_no_key(monkeypatch):
    from weft.driver import onnx_models
    from weft.driver.sources import Request

    class Large:
        graph = model().graph

        def SerializeToString(self, deterministic):  # noqa: N802 - protobuf's name
            raise ValueError("Message onnx.ModelProto exceeds maximum protobuf size of 2GB")

    monkeypatch.setattr(onnx_models, "load_model", lambda given: Large())
    assert onnx_models.key_of_onnx(Request("large.onnx")) is None


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (({"x": X},), {}, IRValueError, r"the model has no input 'x'; its inputs are data\.1"),
        (((X, X),), {}, IRValueError, r"has the inputs data\.1; got 2 example inputs"),
        (("x",), {"target": "llvm"}, IRTypeError, "the target is given twice"),
        (({"data.1": "text"},), {}, IRTypeError, "expected an array or a shape, got str"),
        ((X,), {"dynamic_shapes": {"y": {}}}, IRValueError, r"is \{input: \{axis: name\}\}"),
        ((X,), {"dynamic_shapes": {"data.1": 5}}, IRValueError, r"expected \{axis: name\} .*int"),
        ((X,), {"dynamic_shapes": {"data.1": {9: "n"}}}, IRValueError, "there is no axis 9"),
        ((), {"fallback": "torch"}, IRValueError, "fallback: expected 'onnxruntime' or None"),
        ((), {"optset": 3}, IRTypeError, "takes no option 'optset'; there are constants"),
    ],
)
def test_what_cannot_be_compiled(arguments, options, error, message):
    with pytest.raises(error, match=message):
        weft.compile(model(), *arguments, **options)


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "text.onnx").write_text("hello", encoding="utf-8")
    with pytest.raises(TVMError, match=r"text\.onnx: expected an ONNX model"):
        weft.compile(tmp_path / "text.onnx")
