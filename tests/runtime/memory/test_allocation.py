import gc
import platform
import subprocess
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft import relax
from weft.runtime.memory.allocation import (
    _fast_address,
    _slow_address,
    aligned_empty,
    data_address,
    reach,
    returned_empty,
    view_at,
)
from weft.runtime.memory.plan import plan_offsets
from weft.script import tir as T
from weft.support.errors import IRValueError


def test_the_address_is_read_fast_and_right():
    base = np.arange(24, dtype="int16").reshape(4, 6)
    for view in (base, base[1:, 2:], base[::-1], base.T, base[:0], np.array(3.0)):
        assert data_address(view) == _slow_address(view) == _fast_address(view)


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 4096])
def test_fresh_memory_starts_at_a_cache_line(nbytes):
    array, address = aligned_empty((nbytes,), np.dtype("uint8"), nbytes)
    assert address % 64 == 0
    assert address == data_address(array)
    array[:] = 1
    assert array.flags.carray


@pytest.mark.parametrize("nbytes", [0, 100, 1 << 20, (1 << 20) + 4])
def test_memory_of_weights_is_like_any_other(nbytes):
    array, address = returned_empty((nbytes // 4,), np.dtype("float32"), nbytes)
    assert address % 64 == 0
    assert address == data_address(array)
    assert array.flags.carray
    assert array.nbytes == nbytes
    array[:] = 1
    assert array.sum() == nbytes // 4


@pytest.mark.parametrize("nbytes", [1 << 46, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 80])
def test_memory_that_there_is_not_is_an_error(nbytes):
    with pytest.raises(IRValueError, match=rf"no memory for an array .*, {nbytes} bytes"):
        aligned_empty((3,), np.dtype("uint8"), nbytes)
    with pytest.raises(IRValueError, match=rf"no memory for an array .*, {nbytes} bytes"):
        returned_empty((3,), np.dtype("uint8"), nbytes)


def test_a_plan_of_sizes_beyond_memory_is_an_error():
    for sizes in ([1 << 56], [1 << 66, 4], [1 << 55, 1 << 55], [1 << 60, -(1 << 60)]):
        lives = [(0, 1)] * len(sizes)
        with pytest.raises(IRValueError, match=r"intermediate tensors of less than 2\*\*56 bytes"):
            plan_offsets(sizes, lives)
    assert plan_offsets([-8, 1 << 50], [(0, 1), (0, 1)])[1] >= 1 << 50


def test_a_view_keeps_its_owner():
    class Owner:
        pass

    owner, data = Owner(), np.arange(6, dtype="float32")
    alive = weakref.ref(owner)
    view = view_at(data_address(data), (2, 3), data.dtype, None, owner)
    part = view[1:]
    del owner, view
    gc.collect()
    assert alive() is not None
    part[0, 0] = 9
    assert data[3] == 9
    del part
    gc.collect()
    assert alive() is None
    assert view_at(0, (0, 3), data.dtype).shape == (0, 3)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), max_size=3), st.sampled_from([1, 4])
)
def test_reach_is_the_bytes_between_the_extreme_elements(axes, itemsize):
    shape = tuple(extent for extent, _ in axes)
    strides = tuple(stride for _, stride in axes)
    touched = [
        1000 + sum(i * s for i, s in zip(index, strides, strict=True)) * itemsize + byte
        for index in np.ndindex(*shape)
        for byte in range(itemsize)
    ]
    begin, size = reach(1000, shape, strides, itemsize)
    if touched:
        assert (begin, begin + size) == (min(touched), max(touched) + 1)
    else:
        assert size == 0


@pytest.mark.parametrize("shape", [(1, 3, -1), (-2, -3), (4, -100)])
def test_a_negative_extent_is_an_error_of_the_inputs(shape):
    """Extents such as ``n - 1`` of an input without elements."""
    with pytest.raises(IRValueError, match="expected extents of 0 or more; the inputs are too"):
        aligned_empty(shape, np.dtype("float32"), 4 * int(np.prod(shape)))


CALLS = """
import resource, sys
import numpy as np
import weft

kernel = weft.load(sys.argv[1])
x = np.ones((4, 300000), "float32")
def faults(calls):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        kernel(x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(10)
print(faults(20))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
def test_what_kernels_free_is_there_for_the_next_call(tmp_path):
    """Each of three buffers of 1.2 MB would be 300 new pages a call."""

    @T.prim_func
    def kernel(x: T.Buffer((4, 300000), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            a = T.decl_buffer((300000,))
            b = T.decl_buffer((300000,))
            for j in range(300000):
                a[j] = x[i, j] + T.float32(1)
            for j in range(300000):
                b[j] = a[299999 - j] * T.float32(2)
            y[i] = T.float32(0)
            for j in range(300000):
                y[i] = y[i] + a[j] * b[j]

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 300000), "float32"))
    with builder.function("main", [x]):
        call = relax.call_tir(
            builder.add_func(kernel, "kernel"), x, relax.TensorStructInfo((4,), "float32")
        )
        builder.emit_func_output(builder.emit(call))
    weft.compile(builder.get(), target="llvm -num-cores=1").save(tmp_path / "kernel.weft")
    command = [sys.executable, "-c", CALLS, str(tmp_path / "kernel.weft")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(answer.stdout) < 1000
