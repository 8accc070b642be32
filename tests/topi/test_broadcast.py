import numpy as np
import pytest

from weft import te, topi
from weft.ir.structural import structural_equal
from weft.support.errors import RuntimeFault
from weft.tir.interp import run

PAIRS = [((2, 3), (2, 3)), ((2, 1, 4), (3, 1)), ((), (3,)), ((1,), (3,)), ((0, 3), (3,)), ((), ())]


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize(
    "name",
    ["add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "greater_equal"],
)
def test_binary_when_shapes_broadcast(check, floats, name, left, right):
    a, b = floats(*left), floats(*right) + 2
    check(getattr(topi, name), [a, b], getattr(np, name)(a, b))


def test_integer_division_rounds_as_named(check, ints):
    a, b = ints(9, low=-9, high=9), np.array([2], "int32")
    check(topi.floor_divide, [a, b], a // 2)
    check(topi.floor_mod, [a, b], a % 2)
    check(topi.divide, [a, b], np.trunc(a / 2))
    check(topi.mod, [a, b], np.fmod(a, 2))


def test_float_remainder(check, floats):
    a, b = floats(6) * 5, np.array([1.5], "float32")
    check(topi.floor_mod, [a, b], np.mod(a, b))
    check(topi.mod, [a, b], np.fmod(a, b))
    check(topi.floor_divide, [a, b], np.floor_divide(a, b))


def test_bits_and_logic(check, ints):
    a, b = ints(5), ints(5)
    check(topi.bitwise_and, [a, b], a & b)
    check(topi.left_shift, [a, b], a << b)
    check(topi.logical_xor, [a > 2, b > 2], (a > 2) ^ (b > 2))
    check(topi.logical_not, [a > 2], ~(a > 2))


def test_number_takes_the_tensor_dtype():
    x = te.placeholder((3,), "float16", name="x")
    assert topi.add(x, 1).dtype == "float16"
    assert topi.subtract(1.5, x).dtype == "float16"
    assert topi.multiply(te.placeholder((3,), "int64"), 2).dtype == "int64"
    assert topi.multiply(te.placeholder((3,), "int32"), 0.5).dtype == "float32"


def test_tensor_operators(check, floats):
    x, y = floats(2, 3), floats(3)
    check(lambda a, b: (a + b * 2 - 1) / (b + 3), [x, y], (x + y * 2 - 1) / (y + 3))
    check(lambda a, b: -(a**2), [x, y], -(x**2))


def test_two_scalars_give_an_expression():
    assert int(topi.add(2, 3)) == 5


def test_broadcast_when_shapes_do_not_fit():
    a, b = te.placeholder((2, 3)), te.placeholder((4,))
    with pytest.raises(ValueError, match=r"add: the shapes \(2, 3\) and \(4,?\) do not broadcast"):
        topi.add(a, b)
    with pytest.raises(ValueError, match="broadcast_to"):
        topi.broadcast_to(a, (2, 4))


def test_broadcast_to(check, floats):
    x = floats(3, 1)
    check(topi.broadcast_to, [x], np.broadcast_to(x, (2, 3, 4)), (2, 3, 4))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (1, 3), (3, 1), (0, 1), (1, 0), (0, 0)])
def test_broadcast_when_extents_are_two_symbols(floats, rows, columns):
    n, m = te.var("n", "int64"), te.var("m", "int64")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    func = te.create_prim_func([a, b, topi.add(a, b)])
    x, y = floats(rows), floats(columns)
    out = np.zeros_like(x + y)
    run(func, x, y, out)
    np.testing.assert_allclose(out, x + y)


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2), (0, 2), (2, 0)])
def test_symbols_that_do_not_broadcast_are_an_error(floats, rows, columns):
    n, m = te.var("n", "int64"), te.var("m", "int64")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    func = te.create_prim_func([a, b, topi.add(a, b)])
    out = np.zeros(max(rows, columns), "float32")
    with pytest.raises(RuntimeFault, match="is outside"):
        run(func, floats(rows), floats(columns), out)


def test_block_names_when_printed():
    a, b = te.placeholder((1, 10), name="a"), te.placeholder((10,), name="b")
    text = te.create_prim_func([a, b, topi.add(a, b)]).script()
    assert 'T.block("T_add")' in text
    assert "T_add[v_ax0, v_ax1] = a[v_ax0, v_ax1] + b[v_ax1]" in text


@pytest.mark.parametrize("height", [1, 4, 5, 8, 9])
def test_an_extent_that_is_more_than_one_is_that_of_the_sum(floats, height):
    """As where a network adds what it scaled up to what it had before: the sum has its extent."""
    n = te.var("n", "int64")
    scaled, before = (n - 1) // 4 * 4 + 4, n
    a, b = te.placeholder((scaled,), name="a"), te.placeholder((before,), name="b")
    total = topi.add(a, b)
    rows = (height - 1) // 4 * 4 + 4
    x, y, out = floats(rows), floats(height), np.zeros(rows, "float32")
    func = te.create_prim_func([a, b, total, n])
    if height in (1, rows):
        run(func, x, y, out, height)
        np.testing.assert_array_equal(out, x + y)
    else:
        with pytest.raises(RuntimeFault, match="is outside"):
            run(func, x, y, out, height)


@pytest.mark.parametrize("order", [1, -1])
def test_the_sum_of_such_an_extent_is_no_choice_of_extents(order):
    n = te.size_var("n", "int64")
    shapes = [((n // 4 * 4 + 4,), (n,)), ((n + 2,), (n // 3,))]
    for shape, other in shapes:
        pair = [te.placeholder(item) for item in (shape, other)][::order]
        assert structural_equal(topi.add(*pair).shape[0], shape[0])
