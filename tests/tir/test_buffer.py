"""Buffers: how they are declared, indexed, flattened, and what is refused."""

from __future__ import annotations

import pytest

from weft import ir, tir
from weft.tir.buffer import BufferRegion


def test_the_defaults_are_those_of_0_20():
    made = tir.decl_buffer((4, 8))
    assert (made.dtype, made.name, made.scope(), made.ndim) == ("float32", "buffer", "global", 2)
    assert (made.data_alignment, made.offset_factor, made.buffer_type) == (64, 1, 1)
    assert made.elem_offset.value == 0
    assert made.strides == []
    assert made.data.type_annotation == ir.PointerType(ir.PrimType("float32"), "global")


def test_an_offset_factor_makes_a_symbolic_offset():
    made = tir.decl_buffer((4,), "int8", name="A", offset_factor=4, scope="shared")
    assert made.elem_offset.name == "A_elem_offset"
    assert made.scope() == "shared"


def test_a_shape_may_be_one_number():
    assert tir.decl_buffer(4, "bool").shape == [4]


def test_indices_give_loads_and_slices_regions():
    buffer = tir.decl_buffer((4, 8), name="A")
    i = tir.Var("i", "int32")
    load = buffer[i, 2]
    assert isinstance(load, tir.BufferLoad)
    region = buffer[i, 2:6]
    assert isinstance(region, BufferRegion)
    assert [(r.min, r.extent) for r in region.region][1] == (2, 4)
    assert [r.extent.value for r in buffer[:, i : i + 3].region] == [4, 3]
    assert buffer[0, 0:8:2].dtype == "float32x4"


def test_vectors_are_loaded_and_stored():
    buffer = tir.decl_buffer((16,), "float32")
    load = buffer.vload(4, "float32x4")
    assert load.dtype == "float32x4"
    assert isinstance(load.indices[0], tir.Ramp)
    store = buffer.vstore(4, tir.Broadcast(tir.FloatImm("float32", 1.0), 4))
    assert store.indices[0].dtype == "int32x4"


def test_offsets_follow_shape_or_strides():
    compact = tir.decl_buffer((4, 8))
    assert compact.offset_of([1, 2])[0].value == 10
    strided = tir.decl_buffer((4, 8), strides=[16, 2], elem_offset=3)
    assert strided.offset_of([1, 2])[0].value == 23


def test_flattened_buffers_share_their_data():
    buffer = tir.decl_buffer((4, 8))
    flat = buffer.get_flattened_buffer()
    assert flat.data is buffer.data
    assert flat.shape == [32]
    assert flat.get_flattened_buffer() is flat


def test_access_pointers_carry_their_mask():
    buffer = tir.decl_buffer((4, 8))
    assert buffer.access_ptr("rw").args[4].value == 3
    assert buffer.access_ptr(tir.Buffer.READ).args[4].value == 1
    with pytest.raises(ValueError, match="access_ptr: expected 'r', 'w' or 'rw', got 'x'"):
        buffer.access_ptr("x")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: tir.BufferStore(b, 1.0, [0]), "buffer A has 2 dimensions, got 1 index"),
        (lambda b: tir.decl_buffer((4,), data="p"), "expected data to be a Var, got str"),
        (lambda b: tir.decl_buffer((4,), "flot32"), "expected a data type"),
        (lambda b: tir.decl_buffer((4,), strides=("s",)), "expected strides .* got 's'"),
        (lambda b: b["a", 0], "buffer A: an index must be an integer .* got 'a'"),
        (lambda b: b[0.5, 0:3], "buffer A: an index must be an integer .* got 0.5"),
    ],
)
def test_errors(make, message):
    with pytest.raises((TypeError, IndexError), match=message):
        make(tir.decl_buffer((4, 8), name="A"))
