"""Tensor cores: every intrinsic is made, printed and read; descriptions compute; groups exist."""

import numpy as np
import pytest

import weft
import weft.tensor_intrin
from weft import tir
from weft.script import tir as T
from weft.tensor_intrin import cuda, cuda_layout, dot_product_common
from weft.tir.interp import run


@pytest.mark.parametrize("name", [row.name for row in cuda.ROWS])
def test_each_is_made_and_its_text_is_read_again(name):
    intrinsic = tir.TensorIntrin.get(name)
    for func in (intrinsic.desc, intrinsic.impl):
        weft.ir.assert_structural_equal(func, weft.script.from_source(func.script()))


def test_constants_and_names_of_tvm():
    assert cuda.WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN == "wmma_sync_16x16x16_f16f16f32_trans"
    assert cuda.WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN == "wmma_load_16x16x16_f16_a_shared_dyn"
    assert cuda.WMMA_LOAD_8x8x32_S4_B_TRANS_INTRIN == "wmma_load_8x8x32_s4_b_trans_shared"
    assert cuda.WMMA_FILL_8x8x32_S32_INTRIN == "wmma_fill_8x8x32_s32"
    assert cuda.WMMA_STORE_16x16x16_S32_GLOBAL_INTRIN == "wmma_store_16x16x16_s32_global"
    assert cuda.LDMATRIX_f16_B_TRANS_DYN_INTRIN == "mma_ldmatrix_f16_b_trans_dyn"
    assert cuda.LDMATRIX_i8_A_INTRIN == "mma_ldmatrix_i8_a"
    assert cuda.MMA_f16f16f32_TRANS_A_TRANS_B_INTRIN == "mma_f16f16f32_trans_a_trans_b"
    assert cuda.MMA_fill_16x16_i32_INTRIN == "mma_fill_16x16_i32"
    assert cuda.MMA_store_16x16_f32_global_INTRIN == "mma_store_16x16_f32_global_"
    simple = cuda.MMA_store_16x16_f16_shared_dyn_INTRIN_SIMPLE
    assert simple == "mma_store_16x16_f16_shared_dyn_simple_"
    assert "MMA_i8i8i32_TRANS_B_INTRIN" in dir(cuda)
    with pytest.raises(AttributeError, match="has no attribute 'WMMA_OTHER'"):
        _ = cuda.WMMA_OTHER


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(
    ("dtype", "out"), [("float16", "float32"), ("float16", "float16"), ("int8", "int32")]
)
def test_groups_of_wmma(scope, trans_b, dtype, out):
    group = cuda.get_wmma_intrin_group(scope, scope, dtype, out, trans_b)
    assert list(group) == ["init", "load_a", "load_b", "compute", "store"]
    assert all(tir.TensorIntrin.get(name, allow_missing=True) for name in group.values())


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_groups_of_mma(trans_a, trans_b):
    group = cuda.get_mma_intrin_group(
        "shared.dyn", "shared.dyn", "float16", "float32", trans_a, trans_b
    )
    assert all(tir.TensorIntrin.get(name, allow_missing=True) for name in group.values())
    plain = cuda.get_mma_intrin_group(
        "shared", "global", "int8", "int32", False, trans_b, not_use_mma_store_intrinic=False
    )
    assert all(tir.TensorIntrin.get(name, allow_missing=True) for name in plain.values())


def test_wrong_choices():
    with pytest.raises(weft.TVMError, match="load_scope: expected one of shared, shared.dyn, got"):
        cuda.get_wmma_intrin_group("local", "shared", "float16", "float32", True)
    with pytest.raises(weft.TVMError, match="in_dtype: expected one of"):
        cuda.get_mma_intrin_group("shared", "shared", "float64", "float32", False, True)
    with pytest.raises(weft.TVMError, match="expected k_dim 16 of float16 or 32 of"):
        cuda.get_ldmatrix_intrin(16, "int8", "A", False)
    with pytest.raises(weft.TVMError, match="A of bytes cannot be transposed"):
        cuda.get_ldmatrix_intrin(32, "int8", "A", True)
    with pytest.raises(weft.TVMError, match="expected one of A, B, got 'C'"):
        cuda.get_ldmatrix_intrin(16, "float16", "C", False)
    with pytest.raises(weft.TVMError, match="k_dim: expected 16 or 32, got 8"):
        cuda.get_mma_intrin(8)
    with pytest.raises(weft.TVMError, match="b_dtype: expected one of float16, .*, got 'float64'"):
        cuda.get_mma_intrin(16, b_dtype="float64")
    with pytest.raises(weft.TVMError, match="store_to_smem_dtype: expected one of"):
        cuda.get_mma_intrin_group(
            "shared", "shared.dyn", "float16", "float32", False, True, store_to_smem_dtype="int4"
        )
    with pytest.raises(weft.TVMError, match="a uint32 sum is of uint8, got int8 and uint8"):
        dot_product_common.get_dp4a_intrin("int8", "uint8", "uint32")


LAYOUTS = [
    (cuda_layout.shared_16x16_to_ldmatrix_32x8_layout, 16, 16),
    (cuda_layout.shared_16x32_to_ldmatrix_32x16_layout, 16, 32),
    (cuda_layout.shared_32x16_to_ldmatrix_32x16_layout, 32, 16),
]


@pytest.mark.parametrize(("layout", "rows", "columns"), LAYOUTS)
def test_layouts_hold_each_element_once(layout, rows, columns):
    places = {layout(i, j) for i in range(rows) for j in range(columns)}
    assert places == {(t, e) for t in range(32) for e in range(rows * columns // 32)}


def test_the_layout_back():
    for i in range(16):
        for j in range(16):
            place = cuda_layout.shared_16x16_to_ldmatrix_32x8_layout(i, j)
            assert cuda_layout.ldmatrix_32x8_to_shared_16x16_layout(*place) == (i, j)


@pytest.mark.parametrize("transposed", [False, True])
def test_descriptions_compute_a_product(transposed):
    """load, load, fill, compute and store, one after the other, are a product of tiles."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (2, 16, 16)).astype("float16")
    group = cuda.get_mma_intrin_group(
        "shared", "global", "float16", "float32", False, transposed,
        not_use_mma_store_intrinic=False,
    )  # fmt: skip
    descs = {part: tir.TensorIntrin.get(name).desc for part, name in group.items()}
    in_a, in_b = np.zeros((2, 32, 8), "float16")
    total, found = np.ones((32, 8), "float32"), np.zeros((16, 16), "float32")
    run(descs["load_a"], in_a, a)
    run(descs["load_b"], in_b, b)
    run(descs["init"], total)
    run(descs["compute"], in_a, in_b, total)
    run(descs["store"], total, found)
    wide = b.T if transposed else b
    np.testing.assert_array_equal(found, a.astype("float32") @ wide.astype("float32"))


def test_a_tile_of_wmma_is_tensorized():
    @T.prim_func
    def product(
        A: T.Buffer((32, 32), "float16"),
        B: T.Buffer((32, 32), "float16"),
        C: T.Buffer((32, 32), "float32"),
    ):
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "float32") * T.cast(B[vj, vk], "float32")

    group = cuda.get_wmma_intrin_group("shared", "global", "float16", "float32", True)
    sch = tir.Schedule(product)
    block = sch.get_block("C")
    pairs = [sch.split(loop, [None, 16]) for loop in sch.get_loops(block)]
    sch.reorder(*[outer for outer, _ in pairs], *[inner for _, inner in pairs])
    whole = sch.blockize(pairs[0][1])
    store = sch.cache_write(whole, 0, "wmma.accumulator")
    sch.reverse_compute_at(store, pairs[1][0])
    loads = []
    for position, name in enumerate("ab"):
        sch.cache_read(whole, position, "shared")
        loads.append(sch.cache_read(whole, position, f"wmma.matrix_{name}"))
    init = sch.decompose_reduction(whole, pairs[2][0])
    sch.tensorize(init, group["init"])
    sch.tensorize(whole, group["compute"])
    for load, name in zip(loads, ("load_a", "load_b"), strict=True):
        tiles = [sch.split(loop, [None, 16]) for loop in sch.get_loops(load)[-2:]]
        sch.reorder(tiles[0][0], tiles[1][0], tiles[0][1], tiles[1][1])
        sch.tensorize(tiles[0][1], group[name])
    sch.tensorize(sch.get_loops(store)[-2], group["store"])
    text = sch.mod.script()
    for call in ("load_matrix_sync", "mma_sync", "fill_fragment", "store_matrix_sync"):
        assert f"T.tvm_{call}(" in text
