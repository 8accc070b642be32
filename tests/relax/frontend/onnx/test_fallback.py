"""Nodes that weft does not convert: all are named with converters to fill in, or run elsewhere."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import helper

import weft
from tests.lib.onnx_models import info, model, node, run, uniform
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxModelError, OnnxNodeError
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.onnx
IMPORTS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1),
           helper.make_opsetid("com.acme", 2)]  # fmt: skip


def acme(*nodes, outputs=("y",)):
    return model(list(nodes), [info("x", shape=["n", 4])], outputs, imports=IMPORTS)


def custom(name, inputs, outputs, **attributes):
    return node(name, inputs, outputs, domain="com.acme", **attributes)


TWO = (custom("ScaleBy", "x", "a", factor=3.0, mode="up"), custom("ScaleBy", "a a", "b"),
       custom("class", "b", "y z", table=np.ones(3).tolist()))  # fmt: skip


def test_the_skeleton_of_missing_converters_is_python_to_fill_in():
    proto = acme(*TWO, outputs=("y", "z"))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_onnx(proto)
    text = caught.value.skeleton
    assert "def scale_by(context, x0, x1=None, *, factor=3.0, mode='up'):" in text
    assert "def convert_class(context, x0, *, table=[1.0, 1.0, 1.0]):" in text
    assert text in caught.value.__notes__[0]
    with pytest.raises(NotImplementedError, match="com.acme::ScaleBy"):
        from_onnx(proto, custom_converters=filled(text))
    product = "relax.op.multiply(x0.expr, context.constant(factor, x0.dtype).expr)"
    text = text.replace("raise NotImplementedError('com.acme::ScaleBy')", f"return {product}")
    text = text.replace("raise NotImplementedError('com.acme::class')", "return [x0, x0]")
    x = uniform(5, 4)
    y, z = run(from_onnx(proto, custom_converters=filled(text)), x)
    np.testing.assert_allclose(y, x * 9, rtol=1e-6)
    np.testing.assert_array_equal(y, z)


def filled(text):
    names = {"__name__": "converters"}
    exec(text, names)
    return names["custom_converters"]


def test_a_long_list_of_missing_operators_is_short_to_read():
    nodes = [custom(f"Op{index}", "x", f"y{index}") for index in range(30)]
    with pytest.raises(UnsupportedOperatorsError, match="and 24 more") as caught:
        from_onnx(acme(*nodes, outputs=["y29"]))
    assert len(str(caught.value).splitlines()) <= 10
    assert caught.value.skeleton.count("def op") == 30
    assert caught.value.__notes__[0].endswith("# 27 more: the error's `skeleton`")


BENT = node("Tanh", "a", "b", curve="c")
BENT.name = "bent"


def test_all_nodes_with_attributes_that_no_converter_takes_are_told_at_once():
    nodes = [node("Relu", "x", "a", slope=2), BENT,
             node("Relu", "b", "y", slope=3)]  # fmt: skip
    with pytest.raises(OnnxNodeError) as caught:
        from_onnx(acme(*nodes))
    assert str(caught.value).splitlines()[:3] == [
        "Relu node (output 'a'): its attribute slope=2 is not supported",
        "  Tanh, node 'bent': its attribute curve='c' is not supported",
        "  Relu, output 'y': its attribute slope=3 is not supported",
    ]
    assert "def tanh(context, x0, *, curve='c'):" in caught.value.skeleton


def test_what_else_fallback_may_not_be():
    with pytest.raises(OnnxModelError, match="fallback: expected 'onnxruntime' or None, got 'ort'"):
        from_onnx(acme(node("Relu", "x", "y")), fallback="ort")


# In ONNX Runtime

onnxruntime = pytest.importorskip("onnxruntime", reason="runs the nodes")


def microsoft(name, inputs, outputs, **attributes):
    return node(name, inputs, outputs, domain="com.microsoft", **attributes)


def reference(proto, *arrays):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


ROWS = np.array([[1, 2, 3, 4], [2, 3, 4, 1], [7, 8, 9, 9]], "int32")
MATRICES = uniform(3, 2, 2, seed=4) + 3 * np.eye(2, dtype="float32")
CASES = {
    "known extents": (
        [microsoft("MurmurHash3", "h", "i", seed=7), node("Add", "i i", "y")],
        [info("h", "int32", ["n", 4])], [ROWS],
    ),
    "extents that the data decide": (
        [microsoft("DynamicTimeWarping", "x", "d"), node("Add", "d d", "y")],
        [info("x", shape=["n", "m"])], [uniform(3, 5)],
    ),
    "no rank": (
        [node("Reshape", "x s", "d"), node("Relu", "d", "y")],
        [info("x", shape=["n", 4]), info("s", "int64", ["k"])],
        [uniform(3, 4), np.array([2, 2, 3])],
    ),
    "after a shape": (
        [node("Shape", "h", "s"), node("Add", "s s", "t"), microsoft("MurmurHash3", "t", "y")],
        [info("h", "int32", ["n", 4])], [ROWS],
    ),
    "several results": (
        [node("Add", "x x", "d"), node("Sub", "d x", "e"),
         microsoft("BifurcationDetector", "s c g", "y u"), node("Neg", "e", "z")],
        [info("x", shape=["n"]), info("s", "int64", ["a"]), info("c", "int64", ["b"]),
         info("g", "int64", ["d"])],
        [uniform(3), *[np.arange(size) for size in (4, 2, 1)]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_nodes_without_a_converter_run_there(case):
    nodes, infos, arrays = CASES[case]
    outputs = ["y", "z"] if case == "several results" else ["y"]
    proto = model(nodes, infos, outputs, imports=IMPORTS)
    with pytest.raises(UnsupportedError):
        from_onnx(proto)
    wanted = reference(proto, *arrays)
    compiled = weft.compile(proto, fallback="onnxruntime")
    made = compiled(*arrays)
    for mine, its in zip(made if len(outputs) > 1 else [made], wanted, strict=True):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        np.testing.assert_allclose(mine, its, rtol=1e-5)


def test_a_node_in_a_branch_runs_there():
    branches = {
        name: helper.make_graph([microsoft("MurmurHash3", "h", "r", seed=seed)], "b", [],
                                [info("r", "uint32")])
        for name, seed in (("then_branch", 1), ("else_branch", 2))
    }  # fmt: skip
    infos = [info("c", "bool", []), info("h", "int32", ["n"])]
    proto = model([node("If", "c", "y", **branches)], infos, ["y"], imports=IMPORTS)
    compiled = weft.compile(proto, fallback="onnxruntime")
    for flag in (True, False):
        arrays = np.array(flag), ROWS[0]
        np.testing.assert_array_equal(compiled(*arrays), reference(proto, *arrays)[0])


def test_operators_that_are_unknown_there_too_are_told_at_once():
    with pytest.raises(UnsupportedOperatorsError, match="no converter for 2 operator"):
        from_onnx(acme(*TWO, outputs=("y", "z")), fallback="onnxruntime")


def test_a_node_that_neither_takes_says_why_both_refuse():
    proto = acme(node("Relu", "x", "y", slope=2))
    with pytest.raises(OnnxNodeError, match="slope=2 is not supported") as caught:
        from_onnx(proto, fallback="onnxruntime")
    assert any("ONNX Runtime cannot take it: " in note and "slope" in note
               for note in caught.value.__notes__)  # fmt: skip


def test_a_saved_model_says_what_is_missing_where_onnx_runtime_is_not(tmp_path):
    nodes, infos, arrays = CASES["known extents"]
    proto = model(nodes, infos, ["y"], imports=IMPORTS)
    weft.compile(proto, fallback="onnxruntime", cache=False).save(tmp_path / "m.weft")
    program = (
        "import sys, numpy, weft\n"
        "if sys.argv[2:]: sys.modules['onnxruntime'] = None\n"
        "rows = numpy.array([[1, 2, 3, 4]], 'int32')\n"
        "print(weft.load(sys.argv[1])(rows).tolist())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "m.weft")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(reference(proto, arrays[0][:1])[0].tolist()), done.stderr
    done = subprocess.run([*command, "none"], capture_output=True, text=True, check=False)
    assert "UnsupportedError: the model needs ONNX Runtime for com.microsoft::Mur" in done.stderr
    assert "found no module onnxruntime: pip install onnxruntime" in done.stderr
