"""DLPack both ways: every type, layout and owner, and what cannot be shared."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from weft import nd
from weft.runtime.memory.dlpack import capsule_pointer, export_capsule, import_array
from weft.runtime.ndarray import NDArray
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, UnsupportedError

torch = pytest.importorskip("torch")

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]  # fmt: skip
SHAPES = [(), (0,), (3,), (2, 3), (1, 1, 4), (2, 0, 3)]


def numbers(shape, dtype):
    return (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(DataType(dtype).numpy)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_come_back_as_they_went(shape, dtype):
    source = numbers(shape, dtype)
    given = nd.array(source)
    again = nd.from_dlpack(given.to_dlpack())
    assert (again.shape, again.dtype) == (shape, dtype)
    np.testing.assert_array_equal(again.numpy().astype("float32"), source.astype("float32"))
    if given.size:
        assert again._address == given._address


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_both_forms_of_capsules(dtype):
    given = nd.array(numbers((4,), dtype))
    old, new = given.__dlpack__(), given.__dlpack__(max_version=(1, 0))
    assert capsule_pointer(old, b"dltensor")
    assert capsule_pointer(new, b"dltensor_versioned")
    for capsule in (old, new):
        assert nd.from_dlpack(capsule).dtype == dtype


LAYOUTS = [
    ("whole", lambda a: a), ("transposed", lambda a: a.T), ("rows", lambda a: a[1:3]),
    ("columns", lambda a: a[:, 1:3]), ("steps", lambda a: a[::2, ::3]), ("one row", lambda a: a[2]),
    ("one column", lambda a: a[:, 2]), ("one element", lambda a: a[2, 2]),
]  # fmt: skip


@pytest.mark.parametrize("take", [row[1] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS])
def test_views_keep_their_layout_and_their_memory(take):
    whole = np.arange(20.0).reshape(4, 5)
    part = take(whole) if take(whole).ndim else take(whole[..., None])
    shared = nd.from_dlpack(part)
    assert shared.shape == part.shape
    np.testing.assert_array_equal(shared.numpy(), part)
    assert shared._address == part.ctypes.data
    tensor = torch.from_dlpack(shared)
    np.testing.assert_array_equal(tensor.numpy(), part)
    tensor.fill_(-1)
    assert (part == -1).all()
    assert (whole == -1).sum() == part.size


def test_strides_are_told_in_elements():
    a = nd.from_dlpack(torch.zeros(4, 6)[:, ::2])
    assert (a.shape, a.strides) == ((4, 3), (6, 2))
    assert not a.is_contiguous()
    b = nd.from_dlpack(torch.zeros(1, dtype=torch.float64).expand(3, 4))
    assert b.shape == (3, 4)
    assert b.strides == (0, 0)


def test_negative_steps_are_shared_where_numpy_can():
    whole = np.arange(5.0)
    shared = nd.from_dlpack(whole[::-1])
    assert shared.strides == (-1,)
    assert shared.tolist() == [4, 3, 2, 1, 0]
    whole[0] = 9
    assert shared[4] == 9


@pytest.mark.parametrize("make", [
    lambda: np.arange(4.0), lambda: torch.arange(4.0), lambda: nd.array([0.0, 1, 2, 3]),
], ids=["numpy", "torch", "weft"])  # fmt: skip
def test_an_owner_lives_as_long_as_what_shares_its_memory(make):
    owner = make()
    gone = weakref.ref(owner)
    shared = nd.from_dlpack(owner)
    del owner
    junk = [np.full(4, 7.0) for _ in range(64)]
    assert shared.tolist() == [0, 1, 2, 3]
    del shared, junk
    assert gone() is None


def test_a_capsule_that_nobody_takes_frees_its_owner():
    owner = nd.array(np.zeros(3))
    gone = weakref.ref(owner._array.base if owner._array.base is not None else owner._array)
    capsule = owner.to_dlpack()
    del owner
    assert gone() is not None
    del capsule
    assert gone() is None


def test_what_is_written_on_one_side_is_read_on_the_other():
    for dtype in ("float32", "bfloat16", "float16"):
        array = nd.array(numbers((3,), dtype))
        tensor = torch.from_dlpack(array)
        tensor[0] = 2
        assert float(array.numpy()[0]) == 2
        array[1] = 3
        assert float(tensor[1]) == 3


def test_lazy_tensors_are_resolved():
    tensor = torch.arange(3.0)
    negated = torch._neg_view(tensor)
    assert nd.from_dlpack(negated).tolist() == [0, -1, -2]
    leaf = torch.ones(2, requires_grad=True)
    assert nd.from_dlpack(leaf).tolist() == [1, 1]


def test_read_only_arrays_are_copied_and_stay_as_they_are():
    source = np.zeros(3)
    source.flags.writeable = False
    shared = nd.from_dlpack(source)
    shared[0] = 5
    assert source[0] == 0


class Producer:
    """An object that hands out what it is given."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


def test_any_producer_is_taken():
    given = nd.array([1.0, 2.0])
    assert nd.from_dlpack(Producer(given.to_dlpack())).tolist() == [1, 2]


class OldProducer(Producer):
    """A producer from before DLPack 1.0: it takes no version."""

    def __dlpack__(self):
        return self.capsule


def test_producers_of_another_age_are_asked_again():
    given = nd.array([1.0, 2.0])
    assert nd.from_dlpack(OldProducer(given.to_dlpack())).tolist() == [1, 2]


REFUSED = [
    (Producer(None, (2, 0)), UnsupportedError, r"on the CPU, got DLPack device \(2, 0\)"),
    (Producer(3), IRTypeError, "expected a fresh DLPack capsule"),
    (Producer(BufferError("sparse")), IRTypeError, "shared through DLPack, got Producer: sparse"),
    (Producer(RuntimeError("no\nmore")), IRTypeError, "got Producer: no$"),
    (3, IRTypeError, "expected an object with __dlpack__ or a DLPack capsule, got int"),
    (None, IRTypeError, "got NoneType"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "kind", "text"), REFUSED)
def test_what_cannot_be_shared(source, kind, text):
    with pytest.raises(kind, match=text):
        import_array(source)


def test_tensors_without_dense_memory_are_refused():
    with pytest.raises(IRTypeError, match="expected an array on the CPU whose memory"):
        nd.from_dlpack(torch.ones(3).to_sparse())
    with pytest.raises((IRTypeError, UnsupportedError), match="expected"):
        nd.from_dlpack(torch.ones(3, device="meta"))


def test_a_capsule_is_taken_once():
    capsule = nd.array([1.0]).to_dlpack()
    nd.from_dlpack(capsule)
    with pytest.raises(IRTypeError, match="fresh DLPack capsule, got one that was consumed"):
        nd.from_dlpack(capsule)
    with pytest.raises(IRTypeError, match="consumed"):
        import_array(capsule)


def test_a_stream_is_passed_on():
    assert capsule_pointer(nd.array([1.0]).__dlpack__(stream=None), b"dltensor")
    with pytest.raises(Exception, match="stream"):
        nd.array([1.0]).__dlpack__(stream=5)


def test_exports_of_views_begin_where_the_view_does():
    given = nd.array(numbers((6,), "bfloat16"))
    part = given[3:]
    assert nd.from_dlpack(export_capsule(part._array, part.dtype))._address == part._address
    assert isinstance(part, NDArray)
