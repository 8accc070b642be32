import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from weft import nd
from weft.runtime.ndarray import NDArray, fresh
from weft.support.dtype import DataType

torch = pytest.importorskip("torch")

NUMBERS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMBERS)
def test_array_and_numpy_keep_values_and_type(dtype):
    source = np.array([[0, 1, 1], [1, 0, 1]]).astype(DataType(dtype).numpy)
    made = nd.array(source)
    assert made.dtype == dtype
    assert made.shape == (2, 3)
    assert made.numpy().dtype == source.dtype
    np.testing.assert_array_equal(made.numpy(), source)


def test_array_prints_as_numpy_does():
    made = nd.array(np.array([[-16.534218, 2.25]], "float32"))
    assert str(made) == "[[-16.534218   2.25    ]]"
    assert repr(made) == (
        "<weft.nd.NDArray shape=(1, 2), cpu:0>\narray([[-16.534218,   2.25    ]], dtype=float32)"
    )
    assert f"{type(made)}" == "<class 'weft.runtime.ndarray.NDArray'>"


def test_array_copies_its_source_and_numpy_copies_out():
    source = np.zeros(3, "float32")
    made = nd.array(source)
    source[0] = 1
    out = made.numpy()
    out[1] = 2
    assert made.tolist() == [0, 0, 0]
    assert made.asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("value", "shape", "dtype"),
    [
        (3.5, (), "float64"), (True, (), "bool"), ([1, 2], (2,), "int64"), ([], (0,), "float64"),
        ([[1.0], [2.0]], (2, 1), "float64"), (np.float32(2), (), "float32"),
        (np.arange(6).reshape(2, 3).T, (3, 2), "int64"), (np.arange(3, dtype=">i4"), (3,), "int32"),
        (np.broadcast_to(np.float32(1), (2, 2)), (2, 2), "float32"),
        (np.zeros((0, 3), "int8"), (0, 3), "int8"),
    ],
)  # fmt: skip
def test_array_of_python_and_numpy_values(value, shape, dtype):
    made = nd.array(value)
    assert (made.shape, made.dtype, made.ndim) == (shape, dtype, len(shape))
    assert made.is_contiguous()
    np.testing.assert_array_equal(made.numpy(), np.asarray(value))


def test_array_of_torch_tensors():
    leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
    np.testing.assert_array_equal(nd.array(leaf).numpy(), leaf.detach().numpy())
    np.testing.assert_array_equal(nd.array(leaf.detach().T).numpy(), leaf.detach().T.numpy())
    half = nd.array(torch.ones(2, dtype=torch.bfloat16))
    assert half.dtype == "bfloat16"
    assert half.numpy().dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("value", [["a"], [[1], [1, 2]], object(), 1j, {"a": 1}])
def test_array_refuses_what_is_no_numbers(value):
    with pytest.raises(
        TypeError, match=r"expected numbers, nested lists of one shape, or an array"
    ):
        nd.array(value)


def test_array_on_another_device_is_refused():
    with pytest.raises(NotImplementedError, match=r"expected a CPU device, got cuda:0"):
        nd.array([1], nd.cuda())
    with pytest.raises(NotImplementedError, match=r"expected a CPU device, got metal:0"):
        nd.empty((1,), "float32", nd.metal())
    assert nd.array([1], nd.cpu()).device == nd.cpu(0)


def test_empty_is_aligned_fresh_memory():
    for extent in (0, 1, 3, 17, 1000):
        made = nd.empty((extent,), "int8")
        assert made._address % 64 == 0
        assert made.shape == (extent,)
        assert made.numpy().nbytes == extent
    assert nd.empty(5).shape == (5,)
    assert nd.empty([np.int64(2), 3], "bool").shape == (2, 3)
    assert nd.empty((), "float64").shape == ()


def test_empty_refuses_bad_shapes_and_types():
    with pytest.raises(ValueError, match=r"expected extents of 0 or more, got shape \(2, -1\)"):
        nd.empty((2, -1))
    with pytest.raises(TypeError, match=r"expected a shape of integers"):
        nd.empty((2.5,))
    with pytest.raises(ValueError, match=r"less than 2\*\*62 bytes"):
        nd.empty((2**40, 2**40))
    with pytest.raises(NotImplementedError, match=r"whole bytes for an array, got int4"):
        nd.empty((2,), "int4")
    with pytest.raises(TypeError, match=r"expected one of float16, .* got .float33"):
        nd.empty((2,), "float33")


def test_vector_types_have_one_more_axis_in_numpy():
    made = nd.empty((4,), "float32x4")
    assert (made.shape, made.dtype, made.strides) == ((4,), "float32x4", (1,))
    assert made.numpy().shape == (4, 4)
    assert nd.array(made).dtype == "float32x4"


def test_copyfrom_and_copyto():
    a, b = nd.array([1.0, 2.0]), nd.empty((2,), "float32")
    assert a.copyto(b) is b
    assert b.tolist() == [1, 2]
    assert b.copyfrom([3, 4]) is b
    c = b.copyto(nd.cpu())
    assert c.tolist() == [3, 4]
    assert c is not b
    with pytest.raises(ValueError, match=r"expected an array of shape \(2,\), got \(3,\)"):
        b.copyfrom([1, 2, 3])
    with pytest.raises(TypeError, match=r"expected an NDArray or a Device, got str"):
        b.copyto("cpu")


def test_indexing_reads_and_writes():
    a = nd.array(np.arange(6).reshape(2, 3))
    assert a[1, 2] == 5
    assert isinstance(a[0], NDArray)
    a[0][1] = 70
    a[1, :] = [7, 8, 9]
    a[:, 0] = nd.array([5, 6])
    assert a.tolist() == [[5, 70, 2], [6, 8, 9]]
    assert len(a) == 2
    assert [row.tolist() for row in a] == [[5, 70, 2], [6, 8, 9]]
    assert a.T.shape == (3, 2)
    assert a.T.strides == (1, 3)
    with pytest.raises(IndexError):
        a[2]


def test_equality_is_identity():
    a, b = nd.array([1]), nd.array([1])
    assert a == a
    assert a != b
    assert a.same_as(a)
    assert not a.same_as(b)
    assert len({a, b}) == 2


def test_one_element_is_a_number():
    one = nd.array([2.5])
    assert float(one[0]) == one.item() == 2.5
    assert int(nd.array(3)) == 3
    assert bool(nd.array(1))
    assert np.asarray(one, dtype="float32").dtype == np.float32


def test_pickle_and_deepcopy():
    a = nd.array(np.arange(3, dtype="int8"))
    for other in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert other.dtype == "int8"
        assert other.tolist() == [0, 1, 2]
        assert other._address != a._address


# DLPack: zero copy, write-through


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d not in ("uint16", "uint32", "uint64")])
def test_torch_shares_memory_both_ways(dtype):
    a = nd.array(np.zeros(4).astype(DataType(dtype).numpy))
    t = torch.from_dlpack(a)
    assert str(t.dtype) == f"torch.{dtype}"
    assert t.data_ptr() == a._address
    t[1] = 1
    assert a.numpy().astype("float32").tolist() == [0, 1, 0, 0]
    b = nd.from_dlpack(t)
    b[2] = 1
    assert b.dtype == dtype
    assert t.float().tolist() == [0, 1, 1, 0]


def test_the_memory_outlives_its_first_owner():
    t = torch.from_dlpack(nd.array(np.arange(100_000, dtype="float32")))
    a = nd.from_dlpack(torch.arange(100_000.0))
    junk = [np.ones(100_000, "float32") for _ in range(4)]
    assert t[-1].item() == a[99_999] == 99_999
    del junk


def test_numpy_shares_memory_through_dlpack():
    a = nd.array([1.0, 2.0])
    view = np.from_dlpack(a)
    a[0] = 9
    assert view[0] == 9
    source = np.zeros(2)
    nd.from_dlpack(source)[0] = 5
    nd.numpyasarray(source)[1] = 6
    assert source.tolist() == [5, 6]
    assert a.__dlpack_device__() == (1, 0)


def test_read_only_data_is_copied_on_entry():
    source = np.arange(3.0)
    source.flags.writeable = False
    for made in (nd.from_dlpack(source), nd.numpyasarray(source)):
        made[0] = 7
        assert source[0] == 0
    with pytest.raises(ValueError, match=r"expected a writable numpy array"):
        NDArray(source)


def test_capsules_pass_once():
    a = nd.array([1.0, 2.0])
    capsule = a.to_dlpack()
    b = nd.from_dlpack(capsule)
    assert b._address == a._address
    with pytest.raises(TypeError, match=r"expected a fresh DLPack capsule"):
        nd.from_dlpack(capsule)
    with pytest.raises(TypeError, match=r"expected an object with __dlpack__"):
        nd.from_dlpack([1, 2])
    half = nd.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2, dtype=torch.bfloat16)))
    assert half.dtype == "bfloat16"


def test_unused_capsules_free_their_memory():
    a = nd.array(np.ones(3, ml_dtypes.bfloat16))
    for _ in range(100):
        a.__dlpack__()
        a.__dlpack__(max_version=(1, 0))


def test_data_on_another_device_is_refused():
    class Elsewhere:
        def __dlpack__(self, **kwargs):
            raise AssertionError

        def __dlpack_device__(self):
            return (2, 1)

    with pytest.raises(NotImplementedError, match=r"got DLPack device \(2, 1\)"):
        nd.from_dlpack(Elsewhere())


def test_strided_views_are_not_compact():
    t = torch.arange(6.0).reshape(2, 3).T
    a = nd.from_dlpack(t)
    assert a.strides == (1, 3)
    assert not a.is_contiguous()
    assert nd.array(a).is_contiguous()
    np.testing.assert_array_equal(nd.array(a).numpy(), t.numpy())


def test_unaligned_memory_is_copied_by_array():
    raw = np.zeros(17, "uint8")[1:].view("float32")
    assert raw.ctypes.data % 4
    assert nd.array(raw)._address % 64 == 0
    assert not NDArray(raw)._compact


def test_create_view_reshapes_the_same_memory():
    a = fresh((2, 3), DataType("float32"))
    b = a._create_view((3, 2))
    assert (b.shape, b._address) == ((3, 2), a._address)
    with pytest.raises(ValueError, match=r"compact data of at least \(7,\) elements"):
        a._create_view((7,))
