"""Models whose inputs are sequences: a call gives a list of arrays, of any number."""

import numpy as np
import pytest
from onnx import helper

import weft
from tests.lib.onnx_models import expected, info, model, node, uniform
from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.support.errors import IRTypeError, IRValueError

pytestmark = pytest.mark.onnx


def listed(name, shape=None, dtype=1):
    """The description of an input that is a sequence of tensors."""
    item = helper.make_tensor_type_proto(dtype, shape)
    return helper.make_value_info(name, helper.make_sequence_type_proto(item))


def joined(shape=("n", 2), **attributes):
    nodes = [node("ConcatFromSequence", "xs", "y", axis=0, **attributes)]
    return model(nodes, [listed("xs", shape)], ["y"])


def check(proto, *arguments):
    compiled = weft.compile(proto, cache=False)
    results = compiled(*arguments)
    wanted = expected(proto, *arguments)
    results = results if isinstance(results, tuple) and len(wanted) > 1 else [results]
    for result, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-6)


def test_a_call_gives_a_list_of_any_length():
    proto = joined()
    compiled = weft.compile(proto, cache=False)
    for sizes in ([3], [1, 4, 2], [5, 5]):
        items = [uniform(size, 2) for size in sizes]
        np.testing.assert_array_equal(compiled(items), np.concatenate(items))
        np.testing.assert_array_equal(compiled(xs=tuple(items)), np.concatenate(items))


def test_tensors_of_torch_are_items():
    torch = pytest.importorskip("torch")
    items = [torch.ones(2, 2), torch.zeros(1, 2)]
    assert torch.equal(
        torch.as_tensor(weft.compile(joined(), cache=False)(items)), torch.cat(items)
    )


def test_items_beside_a_tensor():
    nodes = [
        node("SequenceLength", "xs", "count"), node("SequenceAt", "xs i", "item"),
        node("Cast", "count", "f", to=1), node("Mul", "item f", "scaled"),
        node("Add", "scaled w", "y"),
    ]  # fmt: skip
    proto = model(
        nodes, [listed("xs", (None, 3)), info("i", "int64", []), info("w", shape=["m", 3])], ["y"]
    )
    check(proto, [uniform(2, 3), uniform(1, 3)], np.array(-1), uniform(4, 3))
    check(proto, [uniform(2, 3)], np.array(0), uniform(2, 3))


def test_a_map_over_the_items():
    body = helper.make_graph(
        [node("Exp", "a", "b")], "body", [info("a", shape=[None])], [info("b", shape=[None])]
    )
    nodes = [
        node("SequenceMap", "xs", "ys", body=body),
        node("ConcatFromSequence", "ys", "y", axis=0),
    ]
    proto = model(nodes, [listed("xs", (None,))], ["y"])
    check(proto, [uniform(2), uniform(5), uniform(1)])


def test_a_sequence_that_a_model_changes():
    nodes = [node("SequenceErase", "xs i", "rest"), node("SequenceInsert", "rest x", "ys")]
    inputs = [listed("xs", ("n",)), info("i", "int64", []), info("x", shape=["k"])]
    compiled = weft.compile(model(nodes, inputs, ["ys"]), cache=False)
    items = [uniform(2), uniform(3)]
    results = compiled(items, np.array(0), uniform(4))
    assert [item.shape for item in results] == [(3,), (4,)]
    np.testing.assert_array_equal(results[0], items[1])


def test_an_example_tells_what_the_model_does_not():
    proto = joined(shape=None)
    with pytest.raises(OnnxModelError, match=r"give an example of one item, weft\.compile"):
        weft.compile(proto, cache=False)
    compiled = weft.compile(proto, {"xs": [uniform(2, 3), uniform(1, 3)]}, cache=False)
    items = [uniform(size, 3) for size in (4, 1, 1)]
    np.testing.assert_array_equal(compiled(items), np.concatenate(items))
    with pytest.raises(IRValueError, match="arrays of one rank and type, got float32"):
        weft.compile(proto, {"xs": [uniform(2, 3), uniform(3)]}, cache=False)


@pytest.mark.parametrize(("given", "error", "text"), [
    (uniform(2, 2), IRTypeError,
     r"input xs: expected a list of arrays of type float32 and shape \(\?, 2\), got ndarray"),
    ([uniform(2, 2), np.ones((1, 2))], IRTypeError, r"item 1 has the type float64"),
    ([uniform(2, 3)], IRValueError, r"item 0 has the shape \(2, 3\)"),
    ([], IRValueError, r"are to be joined, but it has none"),
])  # fmt: skip
def test_what_does_not_fit(given, error, text):
    with pytest.raises(error, match=text):
        weft.compile(joined(), cache=False)(given)


def test_texts_in_a_sequence_are_refused():
    proto = model([node("SequenceLength", "xs", "y")], [listed("xs", (None,), 8)], ["y"])
    with pytest.raises(OnnxModelError, match="'xs': expected a sequence of tensors of numbers"):
        weft.compile(proto, cache=False)
