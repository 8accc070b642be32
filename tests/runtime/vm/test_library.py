"""``vm.builtin.*``: what each function gives, and what it refuses, in the words of the program."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.ndarray import array, empty
from weft.runtime.registry import get_global_func
from weft.runtime.vm import library
from weft.runtime.vm.shape_codes import MakeShapeCode as Make
from weft.runtime.vm.shape_codes import MatchShapeCode as Match
from weft.support.errors import (
    AssertionFault,
    IRIndexError,
    IRTypeError,
    IRValueError,
    RuntimeFault,
)

MATRIX = np.arange(6, dtype="float32").reshape(2, 3)


def call(name, *args):
    """A builtin, as programs and users call it: by name."""
    return get_global_func(f"vm.builtin.{name}")(*args)


def heap(*numbers):
    """A heap of extents."""
    return array(np.array(numbers, "int64"))


def test_every_builtin_is_registered():
    for name, function in library.LIBRARY.items():
        assert get_global_func(f"vm.builtin.{name}")._call is function


def test_storage_holds_tensors_beside_each_other():
    storage = call("alloc_storage", (4, 16), 0, "uint8", "global")
    assert storage.nbytes == 64
    first = call("alloc_tensor", storage, 0, (2, 3), "float32")
    second = call("alloc_tensor", storage, 32, (4,), "int64")
    first.copyfrom(MATRIX)
    second.copyfrom([9, 8, 7, 6])
    np.testing.assert_array_equal(first.numpy(), MATRIX)
    again = call("alloc_tensor", storage, 32, (2, 2), "int64")
    assert again.numpy().tolist() == [[9, 8], [7, 6]]
    vectors = call("alloc_tensor", storage, 0, (1,), "float32x4")
    assert (vectors.shape, vectors.dtype) == ((1,), "float32x4")
    assert vectors.numpy().tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("offset", "shape", "message"),
    [
        (0, (17,), r"a float32 tensor of shape \(17,\) takes 68 bytes at offset 0, but the storage "
                   "has 64: a symbol may be larger than its tir_var_upper_bound says"),
        (61, (1,), "takes 4 bytes at offset 61"), (-4, (1,), "at offset -4"),
        (0, (-1,), r"expected extents of 0 or more, got \(-1,\)"),
        (0, (2**40, 2**40), "takes 4835703278458516698824704 bytes"),
    ],
)  # fmt: skip
def test_tensors_that_do_not_fit_their_storage(offset, shape, message):
    storage = call("alloc_storage", (64,))
    with pytest.raises(IRValueError, match=message):
        call("alloc_tensor", storage, offset, shape, "float32")


def test_what_is_no_storage():
    with pytest.raises(IRTypeError, match="alloc_tensor: expected a storage, got NDArray"):
        call("alloc_tensor", array(MATRIX), 0, (1,), "float32")
    with pytest.raises(IRValueError, match="expected a size of 0 or more bytes, got -8"):
        call("alloc_storage", (-8,))


def test_shapes_are_made_of_numbers_and_of_slots():
    slots = heap(5, 7)
    made = call("make_shape", slots, 3, Make.USE_IMM, 4, Make.LOAD_SHAPE, 1, Make.LOAD_SHAPE, 0)
    assert made == (4, 7, 5)
    assert call("make_shape", slots, 0) == ()
    assert call("make_prim_value", slots, Make.LOAD_SHAPE, 1) == 7
    assert call("make_prim_value", slots, Make.USE_IMM, 1) == 1
    with pytest.raises(IRValueError, match="expected a code of MakeShapeCode, got 9"):
        call("make_prim_value", slots, 9, 1)


def test_shapes_are_compared_and_kept():
    slots = library.alloc_shape_heap(2)
    tensor = array(MATRIX)
    call("match_shape", tensor, slots, 2, Match.STORE_TO_HEAP, 0, Match.ASSERT_EQUAL_TO_IMM, 3, "")
    assert slots.numpy().tolist() == [2, 0]
    call("match_shape", (2, 9), slots, 2, Match.ASSERT_EQUAL_TO_LOAD, 0, Match.NO_OP, 0, "here")
    with pytest.raises(IRValueError, match=r"^here: expected shape \(2, 9\), got \(4, 9\)"):
        call("match_shape", (4, 9), slots, 2, Match.ASSERT_EQUAL_TO_LOAD, 0, Match.NO_OP, 0, "here")
    with pytest.raises(IRValueError, match=r"^here: expected 3 dimensions, got shape \(2, 3\)"):
        call("match_shape", tensor, slots, 3, *[Match.NO_OP, 0] * 3, "here ")
    with pytest.raises(IRValueError, match="expected a heap to keep extents in, got None"):
        call("match_shape", tensor, None, 2, Match.STORE_TO_HEAP, 0, Match.NO_OP, 0, "")


def test_a_symbol_that_stands_twice_has_one_value():
    slots = library.alloc_shape_heap(1)
    codes = Match.STORE_TO_HEAP, 0, Match.ASSERT_EQUAL_TO_LOAD, 0
    call("match_shape", (3, 3), slots, 2, *codes, "")
    with pytest.raises(IRValueError, match=r"expected shape \(3, 3\), got \(3, 4\)"):
        call("match_shape", (3, 4), slots, 2, *codes, "")


def test_numbers_are_compared_and_kept():
    slots = library.alloc_shape_heap(1)
    call("match_prim_value", 6, slots, Match.STORE_TO_HEAP, 0, "n")
    call("match_prim_value", 6, slots, Match.ASSERT_EQUAL_TO_LOAD, 0, "n")
    with pytest.raises(IRValueError, match="^n: expected 6, got 7"):
        call("match_prim_value", 7, slots, Match.ASSERT_EQUAL_TO_LOAD, 0, "n")


# Builtin, its arguments after the context, error and message; the others give no error.
CHECKS = [
    ("check_tensor_info", (array(MATRIX), 2, "float32"), None, ""),
    ("check_tensor_info", (array(MATRIX), -1, "void"), None, ""),
    ("check_tensor_info", (array(MATRIX), -1, ""), None, ""),
    ("check_tensor_info", (MATRIX, 2, "float32"), None, ""),
    ("check_tensor_info", (array(MATRIX), 3, "float32"), IRValueError, "expected 3 dimensions"),
    ("check_tensor_info", (array(MATRIX), 2, "int32"), IRTypeError, "expected dtype int32, got fl"),
    ("check_tensor_info", ((2, 3), 2, "int32"), IRTypeError, "expected a tensor, got tuple"),
    ("check_shape_info", ((2, 3), 2), None, ""),
    ("check_shape_info", ((2, 3), -1), None, ""),
    ("check_shape_info", ((), 0), None, ""),
    ("check_shape_info", ((2, 3), 1), IRValueError, "expected a shape of 1 dimensions, got (2, 3)"),
    ("check_shape_info", ((2, 3.0), 2), IRTypeError, "expected a shape, got tuple"),
    ("check_shape_info", (array(MATRIX), 2), IRTypeError, "expected a shape, got NDArray"),
    ("check_tuple_info", ((1, 2), 2), None, ""),
    ("check_tuple_info", ((1, 2), 3), IRValueError, "expected 3 fields, got 2"),
    ("check_tuple_info", (5, 1), IRTypeError, "expected a tuple, got int"),
    ("check_func_info", (len,), None, ""),
    ("check_func_info", (5,), IRTypeError, "expected a function, got int"),
    ("check_prim_value_info", (5, "int64"), None, ""),
    ("check_prim_value_info", (5.0, "float32"), None, ""),
    ("check_prim_value_info", (5, "float32"), IRTypeError, "expected a number of type float32"),
    ("check_prim_value_info", (5.5, "int64"), IRTypeError, "expected a number of type int64"),
    ("check_prim_value_info", ("5", "int64"), IRTypeError, "expected a number of type int64"),
]


@pytest.mark.parametrize(("name", "args", "error", "message"), CHECKS, ids=range(len(CHECKS)))
def test_values_are_what_the_program_says(name, args, error, message):
    if error is None:
        assert call(name, *args, "main, x") is None
        return
    with pytest.raises(error) as caught:
        call(name, *args, "main, x")
    assert str(caught.value).startswith(f"main, x: {message}")


def test_a_reshaped_tensor_has_the_same_memory():
    tensor = array(MATRIX)
    flat = call("reshape", tensor, (6,))
    flat[0] = 99
    assert tensor[0, 0] == 99
    turned = call("reshape", array(MATRIX).T, (2, 3))
    np.testing.assert_array_equal(turned.numpy(), MATRIX.T.reshape(2, 3))
    assert call("reshape", array(np.float32(3)), (1, 1)).shape == (1, 1)
    with pytest.raises(IRValueError, match=r"reshape: \(2, 3\) has 6 elements, \(4,\) has 4"):
        call("reshape", tensor, (4,))
    with pytest.raises(IRValueError, match=r"expected extents of 0 or more, got \(-2, -3\)"):
        call("reshape", tensor, (-2, -3))
    out = empty((3, 2), "float32")
    call("reshape_into", array(MATRIX), out)
    np.testing.assert_array_equal(out.numpy(), MATRIX.reshape(3, 2))


def test_views_of_another_shape_type_and_start():
    tensor = array(MATRIX)
    np.testing.assert_array_equal(call("view", tensor, (3, 2)).numpy(), MATRIX.reshape(3, 2))
    assert call("view", tensor).shape == (2, 3)
    assert call("view", tensor, (2,), (), 8).numpy().tolist() == [2, 3]
    bits = call("view", tensor, (6,), "int32")
    np.testing.assert_array_equal(bits.numpy(), MATRIX.reshape(6).view("int32"))
    vectors = call("view", tensor, (1,), "float32x4")
    assert (vectors.shape, vectors.dtype) == ((1,), "float32x4")
    for shape, offset, message in (
        ((7,), (), "28 bytes at offset 0 do not fit into 24"),
        ((6,), 4, "24 bytes at offset 4 do not fit into 24"),
        ((1,), -4, "4 bytes at offset -4 do not fit"),
        ((-1,), (), r"expected extents of 0 or more, got \(-1,\)"),
    ):
        with pytest.raises(IRValueError, match=message):
            call("view", tensor, shape, (), offset)


def test_the_rest():
    tensor = array(MATRIX)
    assert call("make_tuple", 1, tensor, ()) == (1, tensor, ())
    assert call("ensure_zero_offset", tensor) is tensor
    assert call("to_device", tensor, 1, 0) is tensor
    with pytest.raises(IRValueError, match=r"expected the CPU \(1, 0\), got device \(2, 0\)"):
        call("to_device", tensor, 2, 0)
    items = [tensor, 3]
    call("tuple_reset_item", items, 0)
    assert items == [None, 3]
    assert call("null_value") is None
    assert call("shape_of", tensor) == (2, 3)
    assert call("tensor_to_shape", array(np.array([4, 5]))) == (4, 5)
    assert call("shape_to_tensor", (4, 5)).numpy().tolist() == [4, 5]
    assert call("tuple_getitem", (7, 8), 1) == 8


def test_a_copy_has_memory_and_type_of_its_own():
    vectors = empty((2,), "float32x4")
    vectors.copyfrom(np.zeros((2, 4)))
    copied = call("copy", vectors)
    assert (copied.shape, copied.dtype) == ((2,), "float32x4")
    copied[0] = 5
    assert vectors.numpy().max() == 0


@pytest.mark.parametrize(
    ("name", "args", "error", "message"),
    [
        ("shape_of", (3,), IRTypeError, "shape_of: expected a tensor, got int"),
        ("tensor_to_shape", (array(MATRIX),), IRValueError, "expected one dimension, got (2, 3)"),
        ("tuple_getitem", ((1,), 1), IRIndexError, "field 1 of a tuple of 1"),
        ("tuple_getitem", ((1,), -1), IRIndexError, "field -1 of a tuple of 1"),
        ("tuple_getitem", (5, 0), IRTypeError, "expected a tuple to take field 0 of, got int"),
        ("read_if_cond", (array(MATRIX),), IRValueError, "a condition must be a scalar, got shape"),
        ("assert_op", (False, "x is {}", 3), AssertionFault, "Assertion Failed: x is 3"),
        ("assert_op", (array(False),), AssertionFault, "Assertion Failed"),
        ("invoke_debug_func", (None, "not there", "f.py:3"), RuntimeFault, "debug_func at f.py:3"),
    ],
    ids=range(9),
)
def test_what_builtins_refuse(name, args, error, message):
    with pytest.raises(error) as caught:
        call(name, *args)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "truth"), [(True, True), (0, False), (array(True), True), (array(np.int64(0)), False)]
)
def test_conditions(value, truth):
    assert call("read_if_cond", value) is truth
    if truth:
        assert call("assert_op", value, "never") == ()


def test_printed_values(capsys):
    call("print", array(np.array([1, 2])), (3, array(np.float32(0.5))))
    call("print", "{} and {:.1f}", 1, 2.25)
    call("debug_print", "f.py:3", array(np.array([7])))
    assert capsys.readouterr().out == "[1 2] (3, 0.5)\n1 and 2.2\n[f.py:3]:\n[7]\n"


def test_a_plan_of_memory_is_made_once_and_shares_what_is_dead():
    sizes, lives = (64, 64, 128), (0, 1, 2, 3, 0, 3)
    first, second, third, total = call("plan_offsets", sizes, lives)
    assert first == second
    assert total == 192
    assert {first, third} == {0, 128} or {first, third} == {0, 64}
    assert call("plan_offsets", list(sizes), list(lives)) == (first, second, third, total)
