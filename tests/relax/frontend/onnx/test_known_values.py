"""Arithmetic at import: shapes stay symbolic, and leave no kernels."""

import numpy as np
import pytest

import weft
from tests.lib.onnx_models import check, expected, info, model, node, run, uniform
from weft.ir.functor import collect
from weft.relax.expr import Call
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.known import fold
from weft.tir.expr import SizeVar

pytestmark = pytest.mark.onnx


def operators_of(mod):
    return [str(call.op.name) for call in collect(mod["main"], Call)]


def test_the_shape_chain_of_an_exporter_leaves_one_reshape():
    proto = model(
        [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n axis", "n1"),
         node("Concat", "n1 rest", "t", axis=0), node("Reshape", "x t", "y")],
        [info("x", shape=["n", 4, 6])], ["y"],
        constants={"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1, 3])},
    )  # fmt: skip
    mod = from_onnx(proto)
    assert operators_of(mod) == ["relax.reshape"]
    assert str(mod["main"].ret_struct_info) == 'R.Tensor((n, 8, 3), dtype="float32")'
    check(proto, uniform(2, 4, 6))


def test_symbolic_arithmetic_slices_and_comparisons():
    proto = model(
        [node("Shape", "x", "s"), node("Slice", "s one two", "m"), node("Mul", "m two", "m2"),
         node("Add", "m2 one", "m3"), node("Equal", "m3 m2", "e"), node("Where", "e one m3", "k"),
         node("Expand", "v k", "y")],
        [info("x", shape=["n", "m"]), info("v", shape=[1])], ["y"],
        constants={"one": np.array([1]), "two": np.array([2])},
    )  # fmt: skip
    mod = from_onnx(proto)
    assert operators_of(mod) == ["relax.broadcast_to"]
    check(proto, uniform(2, 3), uniform(1))


def test_the_parts_of_a_shape_are_known():
    proto = model(
        [node("Shape", "x", "s"), node("Split", "s sizes", "a b"),
         node("Concat", "b a", "t", axis=0), node("Reshape", "x t", "y")],
        [info("x", shape=["n", "m", 2])], ["y"], constants={"sizes": np.array([1, 2])},
    )  # fmt: skip
    assert operators_of(from_onnx(proto)) == ["relax.reshape"]
    check(proto, uniform(4, 3, 2))


def test_a_shape_that_is_a_result_becomes_a_tensor():
    proto = model([node("Shape", "x", "s"), node("Mul", "s s", "y")], [info("x", shape=["n", 3])],
                  ["y"])  # fmt: skip
    check(proto, uniform(5, 3))


def test_division_of_dimensions_rounds_down_and_of_numbers_towards_zero():
    proto = model(
        [node("Shape", "x", "s"), node("Div", "s two", "h"), node("Div", "minus two", "q"),
         node("Concat", "h q", "y", axis=0)],
        [info("x", shape=["n", 3])], ["y"],
        constants={"two": np.array([2]), "minus": np.array([-3])},
    )  # fmt: skip
    check(proto, uniform(5, 3))


def test_a_shape_that_only_the_data_gives():
    infos = [info("x", shape=["n", 4]), info("s", "int64", [2])]
    proto = model([node("Reshape", "x s", "y")], infos, ["y"])
    x = uniform(3, 4)
    mod = from_onnx(proto)
    for sizes in ([2, 6], [-1, 2], [0, -1], [12, 1]):
        made = run(mod, x, np.array(sizes))
        np.testing.assert_array_equal(made, expected(proto, x, np.array(sizes))[0])


def test_ranges_and_fills_that_only_the_data_gives():
    proto = model(
        [node("Range", "a b c", "r"), node("Shape", "r", "s"), node("ConstantOfShape", "s", "z"),
         node("Add", "r z", "y")],
        [info(name, shape=[]) for name in "abc"], ["y"],
    )  # fmt: skip
    check(proto, np.float32(1), np.float32(5.5), np.float32(0.75))
    check(proto, np.float32(3), np.float32(-4), np.float32(-2))


def test_fold_says_nothing_of_what_is_undecided():
    n = np.array([SizeVar("n", "int64")], object)
    assert fold("Equal", [n, np.array([3])], {}) is None
    assert fold("Less", [np.array([-1]), n], {}).tolist() == [True]
    assert fold("Softmax", [np.ones(2)], {}) is None
    assert fold("Add", [np.ones(5000), np.ones(5000)], {}) is None


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "wanted"),
    [
        ("Slice", [np.arange(5), np.array([4]), np.array([-9]), np.array([0]), np.array([-2])], {},
         [4, 2, 0]),
        ("Gather", [np.array([5, 6, 7]), np.array([-1, 0])], {}, [7, 5]),
        ("Squeeze", [np.array([[3]]), np.array([0])], {}, [3]),
        ("Reshape", [np.arange(6), np.array([2, -1])], {}, [[0, 1, 2], [3, 4, 5]]),
        ("ReduceProd", [np.array([2, 3])], {"keepdims": 0}, 6),
        ("Range", [np.array(1), np.array(6), np.array(2)], {}, [1, 3, 5]),
        ("Div", [np.array([7, -7]), np.array([2, 2])], {}, [3, -3]),
        ("Mod", [np.array([-7]), np.array([3])], {}, [2]),
        ("Mod", [np.array([-7]), np.array([3])], {"fmod": 1}, [-1]),
        ("Cast", [np.array([2.9, -2.9], "float32")], {"to": 7}, [2, -2]),
        ("ConstantOfShape", [np.array([2])], {"value": np.array([9])}, [9, 9]),
        ("Min", [np.array([3, 1]), np.array([2, 2])], {}, [2, 1]),
    ],
)  # fmt: skip
def test_fold_of_numbers(name, inputs, attributes, wanted):
    np.testing.assert_array_equal(fold(name, inputs, attributes), wanted)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("Cast", [np.array([1e10], "float32")], {"to": 6}),
        ("Cast", [np.array([np.nan], "float16")], {"to": 7}),
        ("ReduceMax", [np.zeros(0, "int64")], {}),
        ("Div", [np.array([-(2**63)]), np.array([-1])], {}),
    ],
)  # fmt: skip
def test_fold_leaves_to_the_program_what_numpy_does_otherwise(name, inputs, attributes):
    assert fold(name, inputs, attributes) is None


def test_the_remainders_of_dimensions_have_the_sign_that_fmod_says():
    """(1 - n) mod 3 of n = 3: 1 with the divisor's sign, -2 with the dividend's."""
    for fmod, length in ((0, 1), (1, -2)):
        proto = model(
            [node("Shape", "x", "s"), node("Sub", "one s", "d"),
             node("Mod", "d three", "r", fmod=fmod), node("Abs", "r", "a"),
             node("Expand", "v a", "y")],
            [info("x", shape=["n"]), info("v", shape=[1])], ["y"],
            constants={"one": np.array([1]), "three": np.array([3])},
        )  # fmt: skip
        check(proto, uniform(3), uniform(1))
        assert run(from_onnx(proto), uniform(3), uniform(1)).shape == (abs(length),)


@pytest.mark.parametrize(
    ("start", "end", "step", "rows"),
    [(-1, -(2**63), -1, "n"), (-1, -(2**31), -2, "(n + 1) // 2"), (5, -(2**62), -1, "T.min(n, 6)")],
)
def test_a_slice_that_goes_back_to_the_beginning_has_a_plain_extent(start, end, step, rows):
    bounds = {"s": start, "e": end, "a": 0, "t": step}
    constants = {name: np.array([value], "int64") for name, value in bounds.items()}
    proto = model(
        [node("Slice", "x s e a t", "y")], [info("x", shape=["n", 3])], ["y"], constants=constants
    )
    compiled = weft.compile(proto)
    assert f"(({rows}, 3)" in str(from_onnx(proto)["main"].ret_struct_info)
    for count in (0, 1, 2, 5, 9):
        x = np.arange(3 * count, dtype="float32").reshape(count, 3)
        np.testing.assert_array_equal(compiled(x), x[start:None:step])
