import numpy as np
import pytest

from weft import te, tir, topi
from weft.tir.interp import run


@pytest.mark.parametrize(
    ("shape", "target"),
    [((2, 3, 4), (4, -1)), ((1, 1), ()), ((), (1, 1)), ((0, 3), (3, 0)), ((6,), (1, 6, 1))],
)
def test_reshape(check, floats, shape, target):
    x = floats(*shape)
    check(topi.reshape, [x], x.reshape(target), target)


def test_reshape_when_sizes_differ():
    x = te.placeholder((2, 3))
    with pytest.raises(ValueError, match=r"\(2, 3\) has 6 elements, \(4\) has 4"):
        topi.reshape(x, (4,))
    with pytest.raises(ValueError, match="not a multiple"):
        topi.reshape(x, (4, -1))
    with pytest.raises(ValueError, match="more than one extent"):
        topi.reshape(x, (-1, -1))


def test_reshape_when_symbolic(floats):
    n = te.var("n", "int64")
    x = te.placeholder((n, 4), name="x")
    func = te.create_prim_func([x, topi.reshape(x, (n * 4,))])
    data, out = floats(3, 4), np.zeros(12, "float32")
    run(func, data, out)
    np.testing.assert_array_equal(out, data.reshape(-1))


def test_transpose_expand_squeeze_flatten(check, floats):
    x = floats(2, 3, 4)
    check(topi.transpose, [x], x.transpose())
    check(topi.transpose, [x], x.transpose(1, 2, 0), (1, -1, 0))
    check(topi.expand_dims, [x], x[:, None], 1)
    check(topi.expand_dims, [x], x[..., None], -1)
    check(topi.flatten, [x], x.reshape(2, -1))
    y = floats(1, 3, 1)
    check(topi.squeeze, [y], y.squeeze())
    check(topi.squeeze, [y], y.squeeze(-1), -1)


def conditions_around(value):
    """The largest number of conditions that any read in the value stands under."""
    if isinstance(value, tir.Call) and value.op.name == "tir.if_then_else":
        return 1 + max(conditions_around(arg) for arg in value.args[1:])
    return 0


@pytest.mark.parametrize("join", [topi.concatenate, topi.stack])
def test_many_tensors_are_joined_by_few_nested_conditions(join, floats):
    """25 of them, as DenseNet has: a condition for each took most of the compile time."""
    extents = [3, 0, *range(1, 24)] if join is topi.concatenate else [3] * 25
    parts = [te.placeholder((2, extent), name=f"p{i}") for i, extent in enumerate(extents)]
    func = te.create_prim_func([*parts, join(parts, axis=1)])
    stores = []
    tir.stmt_functor.post_order_visit(func.body, stores.append)
    values = [node.value for node in stores if isinstance(node, tir.BufferStore)]
    assert 5 <= conditions_around(values[0]) <= 6
    arrays = [floats(2, extent) for extent in extents]
    expected = (np.concatenate if join is topi.concatenate else np.stack)(arrays, 1)
    found = np.zeros_like(expected)
    run(func, *arrays, found)
    np.testing.assert_array_equal(found, expected)


def test_concatenate_stack_split(check, floats):
    parts = [floats(2, 1), floats(2, 3), floats(2, 0)]
    check(lambda *a: topi.concatenate(a, axis=1), parts, np.concatenate(parts, 1))
    x = floats(2, 3, 4)
    check(lambda *a: topi.stack(a, axis=-1), [x, x + 1], np.stack([x, x + 1], -1))
    check(lambda a: topi.split(a, 2, -1), [x], np.split(x, 2, -1))
    check(lambda a: topi.split(a, [1, 3], 2), [x], np.split(x, [1, 3], 2))


@pytest.mark.parametrize(
    "part",
    [
        (slice(0, 2), slice(1, 3), slice(None, None, 2)),
        (slice(None), slice(None, None, -1)),
        (slice(None), slice(None), slice(-2, 100)),
        (slice(None), slice(2, 1)),
    ],
)
def test_strided_slice(check, floats, part):
    x = floats(2, 3, 4)
    check(
        topi.strided_slice, [x], x[part], [s.start for s in part], [s.stop for s in part],
        [1 if s.step is None else s.step for s in part],
    )  # fmt: skip


def test_strided_slice_when_symbolic(floats):
    n = te.var("n", "int64")
    x = te.placeholder((n,), name="x")
    func = te.create_prim_func([x, topi.strided_slice(x, [1], [n])])
    data, out = floats(5), np.zeros(4, "float32")
    run(func, data, out)
    np.testing.assert_array_equal(out, data[1:])


def test_strided_slice_when_sizes_are_given(check, floats):
    x = floats(5, 4)
    check(topi.strided_slice, [x], x[1:3, 2:], [1, 2], [2, -1], slice_mode="size")


def test_repeat_tile_flip(check, floats):
    x = floats(2, 3)
    check(topi.repeat, [x], x.repeat(2, 1), 2, 1)
    check(topi.tile, [x], np.tile(x, (2, 1, 2)), (2, 1, 2))
    check(topi.tile, [x], np.tile(x, 2), 2)
    check(topi.flip, [x], x[:, ::-1], 1)


def test_reverse_sequence(check, floats):
    x, lengths = floats(2, 4), np.array([2, 4], "int32")
    expected = np.stack([np.r_[x[0, 1::-1], x[0, 2:]], x[1, ::-1]])
    check(topi.reverse_sequence, [x, lengths], expected)


def test_meshgrid_shape_size(check, floats):
    a, b = floats(2), floats(3)
    check(lambda *t: topi.meshgrid(t), [a, b], list(np.meshgrid(a, b, indexing="ij")))
    check(lambda *t: topi.meshgrid(t, "xy"), [a, b], list(np.meshgrid(a, b)))
    check(topi.shape, [floats(2, 3)], np.array([2, 3]))
    check(topi.ndarray_size, [floats(2, 3)], 6)


def test_errors_name_the_numbers():
    x = te.placeholder((2, 3))
    with pytest.raises(ValueError, match="squeeze: axis 1 has extent 3"):
        topi.squeeze(x, 1)
    with pytest.raises(ValueError, match="no permutation"):
        topi.transpose(x, (0, 0))
    with pytest.raises(ValueError, match=r"concatenate: the shapes \(2, 3\) and \(4, 4\) differ"):
        topi.concatenate([x, te.placeholder((4, 4))], 0)
    with pytest.raises(IndexError, match="expand_dims: axis 4"):
        topi.expand_dims(x, 4)
    with pytest.raises(ValueError, match="must not be 0"):
        topi.strided_slice(x, [0], [1], [0])
