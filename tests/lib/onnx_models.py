"""Small ONNX models for tests of the importer; how they run, and what ONNX's reference gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pytest

from weft.driver.build import relax_build
from weft.ir.module import IRModule
from weft.relax.frontend.onnx.element_types import element_of
from weft.relax.frontend.onnx.errors import need_onnx
from weft.relax.frontend.onnx.importer import from_onnx
from weft.runtime.device import cpu
from weft.runtime.ndarray import NDArray
from weft.runtime.ndarray import array as make_ndarray
from weft.runtime.vm.virtual_machine import VirtualMachine

Array = np.ndarray[Any, Any]
LETTERS: Final = "abcdefgh"


def info(name: str, dtype: str = "float32", shape: Sequence[Any] | None = None) -> Any:
    """The ValueInfoProto of a tensor; shape None says nothing of it."""
    return need_onnx().helper.make_tensor_value_info(name, element_of(dtype), shape)


def node(name: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; inputs and outputs are names with blanks between, ``-`` for one left out."""
    read, written = (
        ["" if item == "-" else item for item in names.split()] for names in (inputs, outputs)
    )
    return need_onnx().helper.make_node(name, read, written, **attributes)


def model(
    nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[str], opset: int = 21,
    constants: Mapping[str, Array] | None = None, **options: Any,
) -> Any:  # fmt: skip
    """A ModelProto; ``constants`` are initializers by name."""
    onnx = need_onnx()
    tensors = [onnx.numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    results = [onnx.ValueInfoProto(name=item) for item in outputs]
    graph = onnx.helper.make_graph(nodes, "graph", inputs, results, tensors)
    imports = options.pop("imports", [onnx.helper.make_opsetid("", opset)])
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10, **options)


def run(mod: IRModule, *arrays: Any) -> Any:
    """What ``main`` of a module gives: an array, or a list of them."""
    machine = VirtualMachine(relax_build(mod, "llvm"), cpu())
    given = [make_ndarray(np.asarray(array, order="C")) for array in arrays]
    return _plain(machine["main"](*given))


def _plain(made: Any) -> Any:
    return made.numpy() if isinstance(made, NDArray) else [_plain(item) for item in made]


def expected(proto: Any, *arrays: Array) -> list[Array]:
    """What ONNX's reference gives."""
    need_onnx()
    from onnx.reference import ReferenceEvaluator

    names = [item.name for item in proto.graph.input]
    made = ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True)))
    return [np.asarray(item) for item in made]


def check(proto: Any, *arrays: Array, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Raise AssertionError unless the model gives the reference's values, shapes and types."""
    made = run(from_onnx(proto), *arrays)
    results = made if isinstance(made, list) else [made]
    for got, want in zip(results, expected(proto, *arrays), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def check_node(
    name: str, arrays: Sequence[Array], opset: int = 21, outputs: str = "y", *,
    constants: Mapping[str, Array] | None = None, symbolic: bool = False, rtol: float = 1e-5,
    **attributes: Any,
) -> None:  # fmt: skip
    """``check`` of one node on arrays; its constants follow as initializers."""
    infos = []
    for letter, array in zip(LETTERS, arrays, strict=False):
        dims: Sequence[Any] = array.shape
        if symbolic:
            dims = [f"{letter}{axis}" for axis in range(array.ndim)]
        infos.append(info(letter, str(array.dtype), dims))
    names = " ".join([*LETTERS[: len(arrays)], *(constants or {})])
    made = node(name, names, outputs, **attributes)
    check(model([made], infos, outputs.split(), opset, constants), *arrays, rtol=rtol)


def check_microsoft(
    name: str, inputs: str, outputs: str, values: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None, attributes: Mapping[str, Any] | None = None,
    symbols: Mapping[str, Sequence[Any]] | None = None, compared: Sequence[Any] | None = None,
) -> None:  # fmt: skip
    """Raise AssertionError unless a node of com.microsoft gives ONNX Runtime's results.

    ``symbols`` are the dimensions of inputs that are declared otherwise than they are given;
    ``compared`` is the part of each output that the operator defines, by default all.
    """
    onnxruntime = pytest.importorskip("onnxruntime", reason="its results are compared with")
    made = node(name, inputs, outputs, domain="com.microsoft", **(attributes or {}))
    infos = [
        info(key, str(value.dtype), (symbols or {}).get(key, value.shape))
        for key, value in values.items()
    ]
    used = {
        key: np.asarray(value, order="C")
        for key, value in (constants or {}).items()
        if key in inputs.split()
    }
    imports = [need_onnx().helper.make_opsetid(*item) for item in (("", 21), ("com.microsoft", 1))]
    wanted = [item for item in outputs.split() if item != "-"]
    proto = model([made], infos, wanted, constants=used, imports=imports)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, {key: np.ascontiguousarray(v) for key, v in values.items()})
    results = run(from_onnx(proto), *values.values())
    listed = results if isinstance(results, list) else [results]
    parts = compared or [...] * len(expected)
    for got, want, part in zip(listed, expected, parts, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got[part], want[part], rtol=1e-4, atol=2e-5)


def uniform(
    *shape: int, dtype: str = "float32", seed: int = 0, low: float = -1.0, high: float = 1.0
) -> Array:
    """Random numbers in an array."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)
