"""What from_onnx says of models that it cannot take."""

import numpy as np
import onnx
import pytest
from onnx import helper

import weft
from tests.lib.onnx_models import info, model, node, uniform
from weft import TVMError
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import ConstantNeededError, OnnxModelError, OnnxNodeError

pytestmark = pytest.mark.onnx


def relu(shape=(2,)):
    return model([node("Relu", "x", "y")], [info("x", shape=shape)], ["y"])


def test_all_unknown_operators_are_told_at_once():
    nodes = [
        helper.make_node("Foo", ["x"], ["a"], domain="my", name="first"),
        helper.make_node("Softmx", ["a"], ["b"]),
        helper.make_node("Foo", ["b"], ["y"], domain="my"),
    ]  # fmt: skip
    proto = model(nodes, [info("x", shape=[2])], ["y"])
    with pytest.raises(UnsupportedOperatorsError, match="no converter for 2 operator") as caught:
        from_onnx(proto)
    rows = {item.name: item for item in caught.value.operators}
    assert rows["my::Foo"].count == 2
    assert "first" in rows["my::Foo"].where
    assert rows["Softmx"].nearest == "Softmax"
    assert "custom_converters" in str(caught.value)


def test_unknown_operators_inside_of_a_branch_are_told_too():
    branch = helper.make_graph([helper.make_node("Foo", [], ["r"])], "b", [], [info("r")])
    proto = model([node("If", "c", "y", then_branch=branch, else_branch=branch)],
                  [info("c", "bool", [])], ["y"])  # fmt: skip
    with pytest.raises(UnsupportedOperatorsError, match="Foo, 2 times"):
        from_onnx(proto)


def test_an_opset_from_the_future():
    proto = relu()
    proto.opset_import[0].version = 999
    with pytest.raises(OnnxModelError, match="uses opset 999, .* install a newer"):
        from_onnx(proto)


def test_an_ir_version_from_the_past():
    proto = relu()
    proto.ir_version = 2
    with pytest.raises(OnnxModelError, match="expected a model of IR version 3 or later"):
        from_onnx(proto)


def test_a_corrupt_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(relu().SerializeToString()[:-7] + b"\xff\xff\xff")
    with pytest.raises(OnnxModelError, match="model.onnx: expected an ONNX model, found"):
        from_onnx(path)


def test_a_file_that_is_no_model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_text("")
    with pytest.raises(OnnxModelError, match="found no graph in it"):
        from_onnx(path)


def test_a_file_of_onnx_runtimes_own_format(tmp_path):
    path = tmp_path / "m.ort"
    path.write_bytes(b"\x18\0\0\0ORTM" + bytes(40))
    message = r"m\.ort: expected an ONNX model, found a file of ONNX Runtime's own format"
    for read in (from_onnx, weft.compile):
        with pytest.raises(OnnxModelError, match=message) as caught:
            read(path)
        assert 'options.optimized_model_filepath = "model.onnx"' in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 10


def test_no_such_file(tmp_path):
    with pytest.raises(OnnxModelError, match="found no such file"):
        from_onnx(tmp_path / "none.onnx")


def test_another_kind_of_argument():
    with pytest.raises(OnnxModelError, match="expected an onnx.ModelProto, a path .* got int"):
        from_onnx(3)


def test_missing_external_data(tmp_path):
    proto = model([node("Add", "x w", "y")], [info("x", shape=[2])], ["y"],
                  constants={"w": uniform(2)})  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    (tmp_path / "weights").unlink()
    with pytest.raises(OnnxModelError, match="its external data cannot be read"):
        from_onnx(path)
    alone = onnx.load(path, load_external_data=False)
    with pytest.raises(OnnxModelError, match="'w': its data lies in another file; give from_onnx"):
        from_onnx(alone)


def test_a_shape_that_contradicts_the_model():
    with pytest.raises(OnnxModelError, match=r"shape_dict says \(3\), the model \(2\)"):
        from_onnx(relu(), shape_dict={"x": [3]})
    with pytest.raises(OnnxModelError, match=r"shape_dict says \(2, 2\), the model \(2\)"):
        from_onnx(relu(), shape_dict={"x": [2, 2]})


def test_an_input_of_unknown_rank():
    with pytest.raises(OnnxModelError, match="how many dimensions it has; give its shape"):
        from_onnx(relu(None))
    assert from_onnx(relu(None), shape_dict={"x": [2]})["main"].params[0].struct_info.ndim == 1


def test_a_value_that_nothing_defines():
    proto = model([node("Add", "x z", "y")], [info("x", shape=[2])], ["y"])
    with pytest.raises(OnnxModelError, match="the value 'z' is used but nothing defines it"):
        from_onnx(proto)


def test_nodes_that_need_each_other():
    ring = [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Neg", "b", "y")]
    with pytest.raises(OnnxModelError, match=r"node '' \(output '[ab]'\) needs its own result"):
        from_onnx(model(ring, [info("x", shape=[2])], ["y"]))


def test_shapes_of_nodes_that_contradict_name_the_node():
    proto = model([helper.make_node("Add", ["x", "z"], ["y"], name="sum")],
                  [info("x", shape=[2]), info("z", shape=[3])], ["y"])  # fmt: skip
    with pytest.raises(TVMError) as caught:
        from_onnx(proto)
    assert any("ONNX node Add 'sum'" in note for note in caught.value.__notes__)


def test_what_must_be_known_at_import():
    infos = [info("x", shape=[2]), info("a", "int64", [1])]
    proto = model([node("ReduceSum", "x a", "y")], infos, ["y"])
    with pytest.raises(ConstantNeededError, match="ReduceSum .*axes must be known at") as caught:
        from_onnx(proto)
    assert caught.value.sources == {"a"}


def test_an_attribute_that_no_converter_knows():
    proto = model([node("Relu", "x", "y", slope=2)], [info("x", shape=[2])], ["y"])
    with pytest.raises(OnnxNodeError, match="Relu .*its attribute slope=2 is not supported"):
        from_onnx(proto)


def test_an_initializer_whose_data_does_not_fit():
    proto = model([node("Add", "x w", "y")], [info("x", shape=[2])], ["y"],
                  constants={"w": np.zeros(2, "float32")})  # fmt: skip
    proto.graph.initializer[0].dims[0] = 5
    with pytest.raises(OnnxModelError, match="initializer 'w': its data does not fit"):
        from_onnx(proto)


def test_without_the_package_onnx_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(TVMError, match=r"the package onnx is not installed; install it with"):
        from_onnx("model.onnx")
