"""Devices other than the CPU: arrays live in their memory, and reach it by the DeviceAPI alone."""

from __future__ import annotations

import ctypes
import itertools
import pickle

import numpy as np
import pytest

import weft
from weft import te
from weft.runtime import device_api
from weft.runtime.device import Device
from weft.runtime.device_api import CPU_TYPE, Memory, host_api, register_device_api
from weft.support.errors import IRValueError, UnsupportedError

EXT = 12


class Apart:
    """Two devices whose memory this process cannot address: an address is the number of a block."""

    def __init__(self):
        self.blocks, self.numbers, self.waits = {}, itertools.count(1), []

    def count(self):
        return 2

    def alloc(self, device_id, nbytes, alignment):
        if nbytes > 1 << 20:
            raise IRValueError("full")
        number = next(self.numbers)
        self.blocks[number] = bytearray(nbytes)
        return Memory(EXT, device_id, number, nbytes)

    def copy(self, target, source, nbytes):
        data = (
            ctypes.string_at(source.address, nbytes) if source.device_type == CPU_TYPE
            else bytes(self.blocks[source.address][:nbytes])
        )  # fmt: skip
        if target.device_type == CPU_TYPE:
            ctypes.memmove(target.address, data, nbytes)
        else:
            self.blocks[target.address][:nbytes] = data

    def load(self, code):
        raise UnsupportedError("no code runs there")

    def sync(self, device_id):
        self.waits.append(device_id)


@pytest.fixture
def apart(monkeypatch):
    """The interface of devices ``ext_dev``, for one test."""
    monkeypatch.setattr(device_api, "_APIS", dict(device_api._APIS))
    api = Apart()
    register_device_api(EXT, api)
    return api


def ext(number=0):
    return Device(EXT, number)


VALUES = np.arange(12, dtype="float32").reshape(3, 4)


def test_an_array_goes_there_and_back(apart):
    there = weft.nd.array(VALUES, ext(1))
    assert (there.shape, there.dtype, there.device, there.size) == ((3, 4), "float32", ext(1), 12)
    assert there.strides == (4, 1)
    assert there.is_contiguous()
    assert there.memory.nbytes == 48
    np.testing.assert_array_equal(there.numpy(), VALUES)
    np.testing.assert_array_equal(np.asarray(there), VALUES)
    here = there.copyto(weft.cpu())
    assert here.device == weft.cpu()
    np.testing.assert_array_equal(here.numpy(), VALUES)
    assert set(apart.waits) == {1}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float64", "float32x4"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,)])
def test_every_type_and_shape(apart, dtype, shape):
    here = weft.nd.empty(shape, dtype)
    here._array[...] = 1
    there = here.copyto(ext())
    assert (there.shape, there.dtype) == (shape, dtype)
    np.testing.assert_array_equal(there.numpy(), here.numpy())


def test_between_arrays_of_two_devices_and_with_another_type(apart):
    first, second = weft.nd.array(VALUES, ext(0)), weft.nd.empty((3, 4), "float32", ext(1))
    first.copyto(second)
    np.testing.assert_array_equal(second.numpy(), VALUES)
    wide = weft.nd.empty((3, 4), "float64", ext(1)).copyfrom(first)
    np.testing.assert_array_equal(wide.numpy(), VALUES.astype("float64"))
    here = weft.nd.array(VALUES.T)
    here[...] = 0
    here.T.copyfrom(second)  # strided memory takes elements, not bytes
    np.testing.assert_array_equal(here.numpy(), VALUES.T)
    with pytest.raises(IRValueError, match=r"expected an array of shape \(3, 4\), got \(4, 3\)"):
        second.copyfrom(VALUES.T)


def test_what_needs_elements_says_to_copy_it(apart):
    there = weft.nd.array(VALUES, ext())
    message = r"expected an array on the CPU, got one of shape \(3, 4\) on ext_dev:0; copy it first"
    x = te.placeholder((3, 4), name="x")
    function = weft.build(te.create_prim_func([x, te.compute((3, 4), lambda i, j: x[i, j] + 1)]))
    out = weft.nd.empty((3, 4))
    for use in (
        lambda: there[0], lambda: there.T, lambda: there.tolist(), lambda: np.from_dlpack(there),
        lambda: function(there, out), lambda: function(out, there),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match=message):
            use()


def test_texts_and_pickles_have_the_elements(apart):
    there = weft.nd.array(VALUES, ext())
    assert str(there) == str(VALUES)
    assert "ext_dev:0" in repr(there)
    back = pickle.loads(pickle.dumps(there))
    np.testing.assert_array_equal(back.numpy(), VALUES)
    assert there.structural_bytes() == weft.nd.array(VALUES).structural_bytes()


def test_devices_exist_where_something_serves_them(apart):
    assert ext(0).exist
    assert ext(1).exist
    assert not ext(2).exist
    ext(1).sync()
    assert apart.waits == [1]
    with pytest.raises(UnsupportedError, match="got ext_dev:2"):
        weft.nd.empty((2,), device=ext(2))
    with pytest.raises(IRValueError, match=r"no memory for an array of shape \(2097152,\)"):
        weft.nd.empty((1 << 21,), device=ext())


def test_without_an_interface_a_device_can_only_be_named():
    assert not ext().exist
    with pytest.raises(UnsupportedError, match="expected a CPU device, got ext_dev:0"):
        weft.nd.array(VALUES, ext())


def test_a_type_has_one_interface(apart):
    register_device_api(EXT, apart)
    with pytest.raises(IRValueError, match="interface of the device type 12 is already registered"):
        register_device_api(EXT, Apart())
    with pytest.raises(IRValueError, match="interface of the device type 1 is already registered"):
        register_device_api(CPU_TYPE, Apart())


def test_memory_of_the_cpu():
    api = host_api()
    memory = api.alloc(0, 100, 64)
    assert memory.address % 64 == 0
    source = weft.nd.array(np.arange(100, dtype="uint8"))
    api.copy(memory, source.memory, 100)
    assert bytes(memory.owner) == source.numpy().tobytes()
    with pytest.raises(IRValueError, match="an alignment that divides 64, got 48"):
        api.alloc(0, 1, 48)
