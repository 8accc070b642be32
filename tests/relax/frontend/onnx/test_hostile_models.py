"""Models whose numbers ask for more than there is: an error, or code of ordinary size, soon."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.relax.frontend.onnx import from_onnx
from weft.support.errors import TVMError


def model(nodes, shape, opset=17, **constants):
    tensors = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)] if shape else []
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [result], tensors)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize("pads", [(0, 3, 0, 0), (7, 0, 0, 5), (1, 9, 2, 1), (100, 0, 0, 100)])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (5, 1)])
def test_reflection_beyond_the_extent(shape, pads):
    pad = helper.make_node("Pad", ["x", "s"], ["y"], mode="reflect")
    data = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    wanted = data
    for axis, size in enumerate(shape):
        places = np.arange(-pads[axis], size + pads[axis + 2])
        period = max(2 * (size - 1), 1)
        around = np.mod(places, period)
        wanted = np.take(wanted, np.minimum(around, period - around) % size, axis)
    got = weft.compile(model([pad], shape, s=pads), cache=False)(data)
    np.testing.assert_array_equal(np.asarray(got), wanted)


def test_reflection_of_nothing_is_refused():
    pad = helper.make_node("Pad", ["x", "s"], ["y"], mode="reflect")
    with pytest.raises(TVMError, match="axis 1 has no elements that could be reflected"):
        from_onnx(model([pad], (2, 0), s=(0, 3, 0, 0)))


def test_constants_that_take_hours_are_not_computed_at_build_time():
    nodes = [
        helper.make_node("Expand", ["c", "s"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["y"]),
    ]
    constant = np.ones(1, "float32")
    weft.compile(model(nodes, None, c=constant, s=(2**20, 2**20)), cache=False)


def test_repeats_beyond_int64_are_an_error():
    tile = helper.make_node("Tile", ["x", "s"], ["y"])
    with pytest.raises(TVMError, match="does not fit int64"):
        weft.compile(model([tile], (2, 2), s=(2**31, 2**32)), cache=False)


def test_a_set_of_operators_beyond_int32_is_an_error():
    onnx_model = model([helper.make_node("Relu", ["x"], ["y"])], (2,))
    onnx_model.opset_import.append(onnx.OperatorSetIdProto(domain="ai.onnx.ml", version=2**40))
    onnx_model.graph.node.append(
        helper.make_node("Scaler", ["x"], ["z"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0])
    )
    with pytest.raises(TVMError, match=r"opset 1099511627776 of ai\.onnx\.ml.*newer onnx"):
        weft.compile(onnx_model, cache=False)


def _named(onnx_model):
    """The model with a branch and a function beside: names stand in every kind of message."""
    inner = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["inner"])], "branch", [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, ["rows"])],
    )  # fmt: skip
    onnx_model.graph.node.append(
        helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    )
    onnx_model.functions.append(
        helper.make_function(
            "local", "twice", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
            [helper.make_opsetid("", 17)], ["alpha"],
        )
    )  # fmt: skip
    return onnx_model


@pytest.mark.parametrize(
    ("name", "where"),
    [("branch", r"\.g\.name of Graph"), ("inner", r"\.g\.output\[0\]\.name of ValueInfo"),
     ("rows", r"\.dim\[0\]\.dim_param of Dimension"),
     ("twice", r"functions\[0\]\.name of Function"),
     ("alpha", r"functions\[0\]\.attribute of Function 'twice'"), ("Relu", r"\.op_type of Node"),
     ("x", r"graph\.input\[0\]\.name of ValueInfo")],
)  # fmt: skip
def test_names_that_are_no_text_are_refused_wherever_they_stand(name, where):
    onnx_model = _named(model([helper.make_node("Relu", ["x"], ["y"])], (2,)))
    length = bytes([len(name)])
    data = onnx_model.SerializeToString()
    broken = data.replace(length + name.encode(), length + b"\xff" * len(name))
    assert broken != data
    for given in (broken, onnx.ModelProto.FromString(broken)):
        with pytest.raises(TVMError, match=f"expected UTF-8 text in .*{where}"):
            from_onnx(given)
    with pytest.raises(TVMError, match="expected UTF-8 text in"):
        weft.compile(onnx.ModelProto.FromString(broken))


def test_a_description_may_be_in_any_encoding():
    onnx_model = model([helper.make_node("Relu", ["x"], ["y"])], (2,))
    onnx_model.doc_string = "x" * 40
    data = onnx_model.SerializeToString().replace(b"x" * 40, b"\xfc" * 40)
    assert "main" in from_onnx(data)


def _calling(attribute, referring=1):
    """A model that calls a function whose body refers to the attribute of the call."""
    call = helper.make_node("Leaky", ["x"], ["y"], domain="local")
    call.attribute.append(attribute)
    inner = helper.make_node("LeakyRelu", ["a"], ["b"])
    inner.attribute.append(onnx.AttributeProto(name="alpha", type=referring, ref_attr_name="alpha"))
    opsets = [helper.make_opsetid("", 17)]
    onnx_model = model([call], (2,))
    onnx_model.functions.append(
        helper.make_function("local", "Leaky", ["a"], ["b"], [inner], opsets, ["alpha"])
    )
    onnx_model.opset_import.append(helper.make_opsetid("local", 1))
    return onnx_model


@pytest.mark.parametrize("referring", [0, 2, 3, 6])
def test_a_reference_to_an_attribute_of_another_type_is_an_error(referring):
    onnx_model = _calling(helper.make_attribute("alpha", 0.5), referring)
    with pytest.raises(TVMError, match=r"alpha.*(whose value it cannot have|float, got|found 0)"):
        from_onnx(onnx_model)


@pytest.mark.parametrize("in_function", [False, True])
def test_an_attribute_without_a_type_is_an_error(in_function):
    untyped = onnx.AttributeProto(name="alpha", f=0.5)
    if in_function:
        onnx_model = _calling(untyped)
    else:
        call = helper.make_node("LeakyRelu", ["x"], ["y"])
        call.attribute.append(untyped)
        onnx_model = model([call], (2,))
    with pytest.raises(TVMError, match=r"alpha.*(type of AttributeProto, found 0|float)"):
        from_onnx(onnx_model)


def _doubling(count):
    """A model whose function number ``count`` stands for 2**count nodes."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx_model = model([helper.make_node(f"F{count}", ["x"], ["y"], domain="local")], (2,))
    onnx_model.opset_import.append(opsets[1])
    for number in range(count + 1):
        body = [helper.make_node("Relu", ["a"], ["b"])]
        if number:
            called = f"F{number - 1}"
            body = [
                helper.make_node(called, ["a"], ["t"], domain="local"),
                helper.make_node(called, ["t"], ["b"], domain="local"),
            ]
        onnx_model.functions.append(
            helper.make_function("local", f"F{number}", ["a"], ["b"], body, opsets)
        )
    return onnx_model


@pytest.mark.parametrize("count", [24, 2000])
def test_functions_whose_bodies_double_are_an_error(count):
    message = rf"at most 1,000,000 nodes with the bodies .* got 2\*\*{count} or more"
    with pytest.raises(TVMError, match=message):
        from_onnx(_doubling(count))
    assert "main" in from_onnx(_doubling(3))


def _with_functions(**callees):
    """A model of functions that each call one of the others, or Relu; it calls the first."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    first = next(iter(callees))
    onnx_model = model([helper.make_node(first, ["x"], ["y"], domain="local")], (2,))
    onnx_model.opset_import.append(opsets[1])
    for name, callee in callees.items():
        domain = "local" if callee in callees else ""
        body = [helper.make_node(callee, ["a"], ["b"], domain=domain)]
        onnx_model.functions.append(helper.make_function("local", name, ["a"], ["b"], body, opsets))
    return onnx_model


@pytest.mark.parametrize(
    "callees",
    [{"F": "F"}, {"F": "G", "G": "F"}, {"Outside": "F", "F": "G", "G": "H", "H": "F"}],
    ids=["one", "two", "three and a caller"],
)
def test_functions_that_call_themselves_are_an_error(callees):
    with pytest.raises(TVMError, match="function 'F' of the model calls itself, so its body"):
        from_onnx(_with_functions(**callees))


def test_functions_may_stand_before_those_that_they_call():
    for callees in ({"F": "G", "G": "Relu"}, {"F": "G", "H": "F", "G": "Relu"}):
        mod = weft.compile(_with_functions(**callees), cache=False)
        got = mod(np.array([-1, 2], "float32"))
        np.testing.assert_array_equal(np.asarray(got), np.array([0, 2], "float32"))


def test_a_number_of_parts_that_is_not_that_of_the_outputs_is_an_error():
    split = helper.make_node("Split", ["x"], ["y"], num_outputs=2**31 - 1)
    with pytest.raises(TVMError, match="num_outputs: expected 1, as the node has so many, got 2"):
        from_onnx(model([split], (2,), opset=18))


@pytest.mark.parametrize("length", [2**40, 2**60, 2**62])
def test_ranges_beyond_memory_are_an_error_and_no_constant(length):
    nodes = [
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("Cast", ["r"], ["y"], to=TensorProto.FLOAT),
    ]
    numbers = {name: np.int64(value) for name, value in zip("abc", (0, length, 1), strict=True)}
    with pytest.raises(TVMError, match="no memory for an array|does not fit int64"):
        weft.compile(model(nodes, None, **numbers), cache=False)()
