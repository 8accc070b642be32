"""Arrays that weft cannot take: each is a short error of weft, none of numpy's or torch's."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.support.errors import IRIndexError, IRTypeError, IRValueError, TVMError, UnsupportedError

torch = pytest.importorskip("torch")


def unsharable():
    """Torch tensors whose memory is no plain memory of the CPU."""
    return {
        "sparse": torch.eye(4).to_sparse(),
        "quantised": torch.quantize_per_tensor(torch.zeros(4), 0.1, 0, torch.qint8),
        "conjugate": torch.zeros(4, dtype=torch.complex64).conj(),
        "meta": torch.zeros(4, device="meta"),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["sparse", "quantised", "conjugate", "meta"])
@pytest.mark.parametrize("take", [weft.nd.array, weft.nd.from_dlpack, relax.const])
def test_torch_tensors_without_plain_memory(take, kind):
    with pytest.raises(TVMError, match="expected") as caught:
        take(unsharable()[kind])
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_memory_is_no_argument():
    from torch._subclasses.fake_tensor import FakeTensorMode

    f = weft.build(weft.script.from_source(
        "@T.prim_func\ndef main(A: T.Buffer((8,), 'float32')):\n    A[0] = T.float32(1)"
    ))["main"]  # fmt: skip
    with FakeTensorMode():
        fake = torch.zeros(8)
    with pytest.raises(TVMError, match="expected a tensor with data, got FakeTensor"):
        f(fake)
    with pytest.raises(TVMError, match="expected"):
        weft.nd.array(fake)


def test_a_lazily_negated_tensor_is_not_read_as_it_lies_in_memory():
    values = torch._neg_view(torch.ones(4))
    assert weft.nd.array(values).numpy().tolist() == [-1.0] * 4
    f = weft.build(weft.script.from_source(
        "@T.prim_func\ndef main(A: T.Buffer((4,), 'float32')):\n    A[0] = T.float32(1)"
    ))["main"]  # fmt: skip
    with pytest.raises(IRTypeError, match=r"pass x\.resolve_neg\(\)"):
        f(values)


def test_bfloat16_torch_tensors_become_constants():
    constant = relax.const(torch.full((2,), 1.5, dtype=torch.bfloat16))
    assert constant.data.dtype == "bfloat16"
    assert constant.data.numpy().astype("float32").tolist() == [1.5, 1.5]


@pytest.mark.parametrize("value", ["text", None, object(), [[1, 2], [3]], {}, np.zeros(2, "M8[s]")])
def test_values_that_are_no_constants(value):
    with pytest.raises(IRTypeError, match="expected"):
        relax.const(value)


def test_a_constant_that_does_not_fit():
    with pytest.raises(IRValueError, match="integers that int32 can hold, got .* 1099511627776"):
        relax.const(2**40)
    assert relax.const(2**40, "int64").data.numpy() == 2**40


@pytest.mark.parametrize("index", ["a", 9, (0, 0, 0), None.__class__, 1.5])
def test_wrong_indices(index):
    array = weft.nd.array(np.zeros((2, 2), "float32"))
    with pytest.raises(IRIndexError, match=r"array of shape \(2, 2\): "):
        array[index]
    with pytest.raises(IRIndexError, match=r"array of shape \(2, 2\): "):
        array[index] = 1


def test_wrong_values():
    array = weft.nd.empty((2, 2))
    with pytest.raises(IRValueError, match=r"array of shape \(2, 2\): could not broadcast"):
        array[:] = np.zeros(3)
    with pytest.raises(IRTypeError, match="expected an array of real numbers"):
        array[:] = np.array([["a", "b"], ["c", "d"]])
    with pytest.raises(IRTypeError, match="expected an array of real numbers"):
        array.copyfrom(np.zeros((2, 2), "complex64"))


@pytest.mark.parametrize("read", [float, int, bool, lambda array: array.item()])
def test_arrays_of_many_elements_are_no_number(read):
    with pytest.raises(IRValueError, match=r"an array of one element, got shape \(2,\)"):
        read(weft.nd.array([1.0, 2.0]))


def test_a_scalar_has_no_length():
    with pytest.raises(IRTypeError, match=r"shape \(\) has no length"):
        len(weft.nd.array(1.0))
    assert float(weft.nd.array(1.5)) == 1.5


@pytest.mark.parametrize("shape", ["ab", (1.5,), None, np.zeros(2), object()])
def test_wrong_shapes(shape):
    with pytest.raises(IRTypeError, match="empty: expected a shape of integers"):
        weft.nd.empty(shape)


def test_too_large():
    with pytest.raises(IRValueError, match="no memory for an array of shape"):
        weft.nd.empty((1 << 46,))
    with pytest.raises(IRValueError, match=r"less than 2\*\*62 bytes"):
        weft.nd.empty((1 << 40, 1 << 40))


def test_devices():
    with pytest.raises(UnsupportedError, match="expected a CPU device, got cuda:0"):
        weft.nd.array([1], "cuda")
    for text in ("", "nope", "cpu:x"):
        with pytest.raises(IRValueError, match="expected a device such as"):
            weft.device(text)
