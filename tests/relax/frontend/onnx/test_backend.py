"""The backend, ONNX's suite on it, and the table of cases that do not pass."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import info, model, node, uniform
from tests.lib.onnx_suite import LIGHT, slices, suite_cases, why_it_fails
from weft.relax.frontend.onnx.backend import WeftBackend
from weft.relax.frontend.onnx.errors import OnnxModelError

pytestmark = pytest.mark.onnx
PARTS = 8


def table():
    """Case -> the reason why it does not pass."""
    lines = (Path(__file__).parent / "not_passing.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert all(len(row) == 2 and row[1] for row in rows)
    return dict(rows)


def test_run_model_and_run_node():
    proto = model([node("Add", "x z", "y")], [info("x", shape=["n"]), info("z", shape=["n"])],
                  ["y"])  # fmt: skip
    made = WeftBackend.run_model(proto, [uniform(3), uniform(3)])
    np.testing.assert_allclose(made[0], 2 * uniform(3))
    assert made.y is made[0]
    alone = WeftBackend.run_node(helper.make_node("Relu", ["x"], ["y"]), [uniform(3)])
    np.testing.assert_array_equal(alone[0], np.maximum(uniform(3), 0))


def test_devices():
    assert WeftBackend.supports_device("CPU")
    assert WeftBackend.supports_device("CPU:0")
    assert not WeftBackend.supports_device("CUDA")
    with pytest.raises(OnnxModelError, match="prepare: expected the device CPU, got 'CUDA'"):
        WeftBackend.prepare(model([], [], []), "CUDA")


def test_inputs_that_must_be_known_are_bound_for_each_of_their_values():
    proto = model([node("ReduceSum", "x a", "y", keepdims=0)],
                  [info("x", shape=[2, 3]), info("a", "int64", [1])], ["y"])  # fmt: skip
    prepared, x = WeftBackend.prepare(proto), uniform(2, 3)
    for axis in (0, 1, 0):
        (made,) = prepared.run([x, np.array([axis])])
        np.testing.assert_allclose(made, x.sum(axis), rtol=1e-6)
    assert len(prepared.compiled) == 2


def test_integers_that_decide_an_extent_are_bound_after_the_shapes():
    proto = model([node("Reshape", "x s", "r"), node("MaxPool", "r", "y i", kernel_shape=[1])],
                  [info("x", shape=["n"]), info("s", "int64", [3])], ["y", "i"])  # fmt: skip
    prepared, x = WeftBackend.prepare(proto), uniform(12)
    for sizes in ([1, 4, 3], [1, 2, 6]):
        pooled, places = prepared.run([x, np.array(sizes)])
        np.testing.assert_array_equal(pooled, x.reshape(sizes))
        np.testing.assert_array_equal(places, np.arange(12).reshape(sizes))
    assert prepared.needed == {"s"}


def test_an_input_of_unknown_rank_is_compiled_for_each_shape():
    prepared = WeftBackend.prepare(model([node("Relu", "x", "y")], [info("x")], ["y"]))
    for shape in ((2,), (2, 3)):
        (made,) = prepared.run([uniform(*shape)])
        np.testing.assert_array_equal(made, np.maximum(uniform(*shape), 0))


def test_too_many_inputs():
    prepared = WeftBackend.prepare(model([node("Relu", "x", "y")], [info("x", shape=[2])], ["y"]))
    with pytest.raises(OnnxModelError, match=r"run: expected 1 inputs \(x\), got 2"):
        prepared.run([uniform(2), uniform(2)])


def test_a_sample_of_the_suite():
    cases = suite_cases(r"^test_(abs|and2d|cast_INT4_to_FLOAT|conv_with_strides_padding|gather_1|"
                        r"loop11|qlinearmatmul_2D_uint8_float32|reduce_sum_keepdims_random|"
                        r"softmax_axis_1|sequence_model1)$")  # fmt: skip
    assert len(cases) == 10
    assert {name: why_it_fails(case) for name, case in cases.items()} == dict.fromkeys(cases, "")


def test_the_table_names_cases_of_the_suite():
    names = set(suite_cases())
    assert len(names) == 2009
    assert not set(table()) - names


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_suite(part):
    cases = suite_cases()
    wanted, known = slices(list(cases), part, PARTS), table()
    wrong = {}
    for name in wanted:
        if LIGHT.match(name):
            continue
        reason = why_it_fails(cases[name])
        if bool(reason) != (name in known):
            wrong[name] = reason or "passes though the table names it"
    assert not wrong
