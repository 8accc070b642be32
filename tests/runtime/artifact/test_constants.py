"""Weights as safetensors has them: every type and shape both ways, and damage of each part."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weft.runtime.artifact.constants import constants_to_bytes, read_constants
from weft.runtime.memory.allocation import OWN_PAGES
from weft.runtime.ndarray import array, empty
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

TYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]  # fmt: skip


def read(data, dtypes, share=False):
    return read_constants(memoryview(data), dtypes, share=share)


def numbers(shape, dtype):
    count = int(np.prod(shape))
    return array((np.arange(count) % 2).reshape(shape).astype(DataType(dtype).numpy))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (1, 2, 0)], ids=str)
def test_every_type_and_shape_comes_back(shape, dtype):
    given = numbers(shape, dtype)
    (again,) = read(constants_to_bytes([given]), [dtype])
    assert (again.shape, again.dtype) == (shape, dtype)
    assert again.structural_bytes() == given.structural_bytes()
    assert again._address != given._address or not given.size


def test_many_constants_keep_their_order():
    given = [numbers((n % 5, 3), TYPES[n % len(TYPES)]) for n in range(40)]
    again = read(constants_to_bytes(given), [str(item.dtype) for item in given])
    assert [item.structural_bytes() for item in again] == [
        item.structural_bytes() for item in given
    ]  # fmt: skip


def test_views_are_stored_in_order():
    whole = array(np.arange(12.0).reshape(3, 4))
    (again,) = read(constants_to_bytes([whole.T]), ["float64"])
    assert again.tolist() == whole.T.tolist()
    assert again.is_contiguous()


def test_large_constants_have_pages_of_their_own_and_can_be_written():
    given = numbers((OWN_PAGES // 4 + 3,), "float32")
    (again,) = read(constants_to_bytes([given]), ["float32"])
    assert again._address % 4096 == 0
    again[0] = 5
    assert again[0] == 5
    np.testing.assert_array_equal(again.numpy()[1:], given.numpy()[1:])


def test_whole_cache_lines_come_first_and_stay_where_they_are():
    """What is not aligned is copied; what is shared can be written, in this process's memory."""
    given = [numbers((3,), "int8"), numbers((32,), "float32"), numbers((16, 8), "bfloat16")]
    given.append(numbers((5,), "int16"))
    memory = empty((4096,), "uint8")
    data = constants_to_bytes(given)
    memory._array[: len(data)] = np.frombuffer(data, np.uint8)
    view = memoryview(memory._array[: len(data)])
    again = read_constants(view, [str(item.dtype) for item in given], share=True)
    assert [item.structural_bytes() for item in again] == [
        item.structural_bytes() for item in given
    ]  # fmt: skip
    places = [item._address - memory._address for item in again]
    assert [0 <= place < len(data) for place in places] == [True, True, True, False]
    again[1][0] = 5
    assert read_constants(view, [str(item.dtype) for item in given], share=False)[1][0] == 5


def test_the_library_of_the_format_reads_the_same():
    safetensors = pytest.importorskip("safetensors.numpy")
    given = [numbers((n % 4, 5), dtype) for n, dtype in enumerate(TYPES[:12])]
    tensors = safetensors.load(constants_to_bytes(given))
    for index, item in enumerate(given):
        np.testing.assert_array_equal(tensors[f"{index:06}"], item.numpy())


def test_no_constants():
    assert read(constants_to_bytes([]), []) == []


def test_constants_of_vectors_have_no_form():
    with pytest.raises(UnsupportedError, match="a constant of type float32x4 cannot be saved"):
        constants_to_bytes([empty((2,), "float32x4")])


def edited(change, data=None):
    """The bytes of two constants, their header changed."""
    whole = constants_to_bytes([numbers((2, 3), "float32"), numbers((4,), "int8")])
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    body = whole[8 + length :] if data is None else data
    return len(text).to_bytes(8, "little") + text + body


def put(name, **fields):
    return lambda header: header[name].update(fields)


DAMAGE = [
    ("a name is missing", lambda header: header.pop("000001"), "expected 2 constants, found 1"),
    ("a name too many", lambda header: header.update({"000002": header["000001"]}), "found 3"),
    ("another name", lambda header: header.update({"x": header.pop("000001")}), "found 2"),
    ("a shape that is too large", put("000000", shape=[2, 4]), "is not of its shape"),
    ("a shape that is negative", put("000000", shape=[-2, -3]), "is not of its shape"),
    ("a shape of text", put("000000", shape=["6"]), "is not of its shape"),
    ("a shape of fractions", put("000000", shape=[1.5, 4]), "is not of its shape"),
    ("a gap", put("000001", data_offsets=[25, 29]), "constant 000001 is not of its shape"),
    ("an overlap", put("000001", data_offsets=[23, 27]), "constant 000001 is not of its shape"),
    ("beyond the end", put("000001", shape=[10**6], data_offsets=[24, 24 + 10**6]),
     "its constants are cut off"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "text"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE]
)
def test_headers_that_were_changed(change, text):
    with pytest.raises(ValueError, match=text):
        read(edited(change), ["float32", "int8"])


def test_types_of_another_size():
    data = edited(lambda header: None)
    assert len(read(data, ["float32", "int8"])) == 2
    with pytest.raises(ValueError, match="constant 000000 is not of its shape"):
        read(data, ["float64", "int8"])
    with pytest.raises(ValueError, match="expected 1 constants, found 2"):
        read(data, ["float32"])


def test_every_cut_is_noticed():
    data = constants_to_bytes([numbers((2, 3), "float32"), numbers((4,), "int8")])
    for length in range(len(data)):
        with pytest.raises(ValueError, match="cut off|no header|Expecting|Unterminated"):
            read(data[:length], ["float32", "int8"])


def test_bytes_behind_the_last_constant_are_noticed():
    data = constants_to_bytes([numbers((4,), "int8")])
    with pytest.raises(ValueError, match="there is more than its constants"):
        read(data + b"\0", ["int8"])


@pytest.mark.parametrize("length", [0, 1, 1 << 40, (1 << 64) - 1])
def test_a_length_of_the_header_that_cannot_be(length):
    data = length.to_bytes(8, "little") + b"{}" + bytes(64)
    with pytest.raises(ValueError, match="its constants have no header"):
        read(data, [])
