"""Bad uses of ONNX models: wrong files, graphs that contradict themselves, wrong options."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.relax.frontend.onnx import from_onnx

F32 = TensorProto.FLOAT


def model(nodes, x=("n", 4), elem=F32, initializers=(), opset=17, outputs=("y",), **options):
    """A model with the input x and these nodes."""
    given = [helper.make_tensor_value_info("x", elem, x)]
    results = [helper.make_tensor_value_info(name, F32, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", given, results, list(initializers))
    opsets = [helper.make_opsetid("", opset), *options.pop("opsets", ())]
    return helper.make_model(graph, opset_imports=opsets, **options)


def node(kind, inputs=("x",), outputs=("y",), **attributes):
    return helper.make_node(kind, list(inputs), list(outputs), **attributes)


def relu(**options):
    return model([node("Relu")], **options)


def added():
    """x + w, where w is an initializer of one row."""
    return model([node("Add", ("x", "w"))], initializers=[tensor("w", np.ones(4, "float32"))])


def with_version(made, version):
    made.ir_version = version
    return made


def tensor(name, values):
    return numpy_helper.from_array(np.asarray(values), name)


def stored(folder, content, name="m.onnx"):
    """The path of a file of these bytes (or of a model)."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def external(folder, location, data=b"", length=16):
    """A model whose initializer lies in another file."""
    weight = TensorProto(name="w", data_type=F32, dims=[4])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(length))):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    if data:
        (folder / "w.bin").write_bytes(data)
    return stored(folder, model([node("Add", ("x", "w"))], initializers=[weight]))


def twisted(name, data_type, dims, raw):
    """An initializer whose data does not fit what it says of itself."""
    return TensorProto(name=name, data_type=data_type, dims=dims, raw_data=raw)


def no_folder(folder):
    (folder / "d.onnx").mkdir()
    return folder / "d.onnx"


def attribute_of_kind(kind, name, value):
    made = node(kind)
    made.attribute.append(helper.make_attribute(name, value))
    return model([made])


FILES = {
    "a text": lambda f: stored(f, b"hello, world\n"),
    "nothing": lambda f: stored(f, b""),
    "cut off": lambda f: stored(f, relu().SerializeToString()[:-9]),
    "a folder": no_folder,
    "no file": lambda f: f / "none.onnx",
    "no data file": lambda f: external(f, "w.bin"),
    "data cut off": lambda f: external(f, "w.bin", b"12345678"),
    "data outside": lambda f: external(f, "../w.bin", b"1" * 16),
    "data at the root": lambda f: external(f, "/etc/hostname"),
}  # fmt: skip
"""What makes a file that ``weft.compile`` and ``from_onnx`` refuse."""

MODELS = {
    "no nodes and no outputs": lambda: model([], outputs=()),
    "empty": lambda: onnx.ModelProto(),
    "an output of nobody": lambda: model([]),
    "a ring": lambda: model([node("Add", ("x", "b"), ("a",)), node("Relu", ("a",), ("b",)),
                              node("Relu", ("b",))]),
    "a name twice": lambda: model([node("Relu"), node("Sigmoid")]),
    "an input's name again": lambda: model([node("Relu", outputs=("x",)), node("Relu")]),
    "an input missing": lambda: model([node("Add", ("x", "w"))]),
    "an operand left out": lambda: model([node("Add", ("x",))]),
    "an operand too many": lambda: model([node("Relu", ("x", "x"))]),
    "no such domain": lambda: model([node("Relu", domain="who.knows")]),
    "no such operator": lambda: model([node("Rely")]),
    "an attribute's type": lambda: attribute_of_kind("Softmax", "axis", "last"),
    "an attribute's list": lambda: model([node("Transpose", perm=[0, 0])]),
    "an unknown attribute": lambda: model([node("Relu", colour=5)]),
    "an axis": lambda: model([node("Softmax", axis=7)]),
    "opset 0": lambda: relu(opset=0),
    "opset 999": lambda: relu(opset=999),
    "IR version 2": lambda: with_version(relu(), 2),
    "IR version 999": lambda: with_version(relu(), 999),
    "texts": lambda: relu(elem=TensorProto.STRING),
    "complex": lambda: relu(elem=TensorProto.COMPLEX64),
    "float8": lambda: relu(elem=TensorProto.FLOAT8E4M3FN),
    "no such type": lambda: relu(elem=77),
    "an initializer's data": lambda: model([node("Add", ("x", "w"))], initializers=[
        twisted("w", F32, [4], b"123")]),
    "an initializer's type": lambda: model([node("Add", ("x", "w"))], initializers=[
        twisted("w", 77, [1], b"1234")]),
    "an initializer's negative shape": lambda: model([node("Add", ("x", "w"))], initializers=[
        twisted("w", F32, [-4], b"")]),
    "an initializer's huge shape": lambda: model([node("Add", ("x", "w"))], initializers=[
        twisted("w", F32, [2**40], b"")]),
    "an initializer without a name": lambda: model([node("Relu")], initializers=[
        tensor("", [1.0])]),
    "text initializer": lambda: model([node("Add", ("x", "w"))], initializers=[
        helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])]),
    "two types": lambda: model([node("Add", ("x", "w"))], initializers=[
        tensor("w", np.ones(4, "int64"))]),
    "no broadcast": lambda: model([node("Add", ("x", "w"))], initializers=[
        tensor("w", np.ones(3, "float32"))]),
    "a product": lambda: model([node("MatMul", ("x", "w"))], initializers=[
        tensor("w", np.ones((3, 5), "float32"))]),
    "a reshape": lambda: model([node("Reshape", ("x", "s"))], x=(2, 4), initializers=[
        tensor("s", np.array([3, 5]))]),
    "a convolution": lambda: model([node("Conv", ("x", "w"))], x=(1, 3, 8, 8), initializers=[
        tensor("w", np.ones((2, 4, 3, 3), "float32"))]),
    "a rank": lambda: model([node("Conv", ("x", "w"))], initializers=[
        tensor("w", np.ones((2, 4, 3, 3), "float32"))]),
    "an If without a branch": lambda: model([node("If", ("x",))], x=(), elem=TensorProto.BOOL),
    "a Constant without a value": lambda: model([node("Constant", ()), ]),
    "two values in a Constant": lambda: model([node("Constant", (), value_int=3,
                                                     value_float=1.0)]),
    "a function that calls itself": lambda: recursive(),
    "three hundred missing": lambda: model([
        node(f"Who{i}", (f"a{i}" if i else "x",), (f"a{i + 1}",)) for i in range(300)],
        outputs=("a300",)),
}  # fmt: skip


def recursive():
    body = helper.make_function(
        "mine", "f", ["a"], ["b"], [node("f", ("a",), ("b",), domain="mine")],
        [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    made = model([node("f", domain="mine")], opsets=[helper.make_opsetid("mine", 1)])
    made.functions.append(body)
    return made


OPTIONS = {
    "an unknown name": lambda: from_onnx(relu(), {"z": [3, 4]}),
    "a rank": lambda: from_onnx(relu(), {"x": [3, 4, 5]}),
    "an extent": lambda: from_onnx(relu(), {"x": [3, 5]}),
    "a negative extent": lambda: from_onnx(relu(), {"x": [-3, 4]}),
    "a float extent": lambda: from_onnx(relu(), {"x": [1.5, 4]}),
    "no list": lambda: from_onnx(relu(), {"x": 3}),
    "no dict": lambda: from_onnx(relu(), [3, 4]),
    "a type": lambda: from_onnx(relu(), None, {"x": "float99"}),
    "types of unknown": lambda: from_onnx(relu(), None, {"z": "int64"}),
    "types": lambda: from_onnx(relu(), None, 5),
    "an opset": lambda: from_onnx(relu(), opset=999),
    "an opset's type": lambda: from_onnx(relu(), opset="17"),
    "a negative opset": lambda: from_onnx(relu(), opset=-1),
    "a text as flag": lambda: from_onnx(relu(), keep_params_in_input="no"),
    "None as flag": lambda: from_onnx(relu(), sanitize_input_names=None),
    "an initializer's shape": lambda: from_onnx(added(), {"w": [4, 4]}),
    "an initializer's rank": lambda: from_onnx(added(), {"w": []}),
    "an initializer's type": lambda: from_onnx(added(), None, {"w": "float64"}),
    "a number as model": lambda: from_onnx(5),
    "no model": lambda: from_onnx(None),
    "converters": lambda: from_onnx(relu(), custom_converters=5),
    "a converter": lambda: from_onnx(relu(), custom_converters={"Relu": 5}),
    "a converter's result": (
        lambda: from_onnx(relu(), custom_converters={"Relu": lambda ctx, x: "text"})),
    "a converter's None": (
        lambda: from_onnx(relu(), custom_converters={"Relu": lambda ctx, x: None})),
    "a converter's parameters": (
        lambda: from_onnx(relu(), custom_converters={"Relu": lambda: None})),
    "compile's option": lambda: weft.compile(relu(), fallback="torch"),
    "compile's example": lambda: weft.compile(relu(), {"z": np.zeros((3, 4))}),
    "compile's examples": lambda: weft.compile(relu(), (np.zeros((3, 4)), 5)),
    "compile's example rank": lambda: weft.compile(relu(), np.zeros((3,), "float32")),
    "compile's dynamic": lambda: weft.compile(relu(), dynamic_shapes={"z": {0: "n"}}),
    "compile's dynamic axis": (
        lambda: weft.compile(relu(), {"x": [3, 4]}, dynamic_shapes={"x": {9: "n"}})),
}  # fmt: skip
