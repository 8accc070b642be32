# %% [markdown]
# # Chapter 8: hardware with instructions of its own
#
# Some processors multiply matrices by *outer products*: one instruction takes eight numbers of a
# column and eight of a row, and adds their 64 products to a tile. A *tensor intrinsic* says which
# loops such an instruction stands for; `tensorize` puts it in their place.

# %%
import numpy as np

import weft as tvm
from weft import tir
from weft.compat import toolchain
from weft.script import ir as I
from weft.script import tir as T

# %% [markdown]
# The product of the transposed first matrix and the second: for each `k`, the row `k` of both is
# what the instruction wants.


# %%
@I.ir_module
class Product:
    @T.prim_func
    def main(
        lefts: T.Buffer((40, 64), "float32"),
        rights: T.Buffer((40, 64), "float32"),
        out: T.Buffer((64, 64), "float32"),
    ):
        for y, x, step in T.grid(64, 64, 40):
            with T.block("product"):
                i, j, k = T.axis.remap("SSR", [y, x, step])
                with T.init():
                    out[i, j] = T.float32(0)
                out[i, j] += lefts[k, i] * rights[k, j]


# %% [markdown]
# ## The instruction
#
# The first function describes the loops that the instruction replaces, the second what runs
# instead. `offset_factor=1` lets the parts lie anywhere in larger arrays, and `pitch` is the
# distance of two rows of the tile there. A processor of our own would have its instruction in the
# second; on a CPU it is a function that we bring along.


# %%
@T.prim_func
def outer_described(
    column: T.Buffer((1, 8), "float32", offset_factor=1),
    row: T.Buffer((1, 8), "float32", offset_factor=1),
    tile: T.Buffer((8, 8), "float32", offset_factor=1, strides=["pitch", 1]),
):
    with T.block("root"):
        T.reads(tile[0:8, 0:8], column[0, 0:8], row[0, 0:8])
        T.writes(tile[0:8, 0:8])
        for y, x in T.grid(8, 8):
            with T.block("cell"):
                i, j = T.axis.remap("SS", [y, x])
                tile[i, j] = tile[i, j] + column[0, i] * row[0, j]


@T.prim_func
def outer_implemented(column_at: T.handle, row_at: T.handle, tile_at: T.handle):
    pitch = T.int32()
    column = T.match_buffer(column_at, (1, 8), "float32", offset_factor=1)
    row = T.match_buffer(row_at, (1, 8), "float32", offset_factor=1)
    tile = T.match_buffer(tile_at, (8, 8), "float32", offset_factor=1, strides=[pitch, 1])
    with T.block("root"):
        T.reads(tile[0:8, 0:8], column[0, 0:8], row[0, 0:8])
        T.writes(tile[0:8, 0:8])
        T.call_extern(
            "int32", "outer_8", column.access_ptr("r"), row.access_ptr("r"),
            tile.access_ptr("rw"), pitch,
        )  # fmt: skip


tir.TensorIntrin.register("outer_8", outer_described, outer_implemented, override=True)

# %% [markdown]
# The function in C, for clang (`toolchain.create_llvm`); where clang is not installed, the same
# in LLVM's language, which weft brings.

# %%
IN_C = """
extern "C" int outer_8(const float *column, const float *row, float *tile, int pitch) {
  for (int cell = 0; cell < 64; ++cell)
    tile[cell / 8 * pitch + cell % 8] += column[cell / 8] * row[cell % 8];
  return 0;
}
"""
IN_LLVM = """
define i32 @outer_8(ptr %column, ptr %row, ptr %tile, i32 %pitch) {
entry:
  br label %cells
cells:
  %cell = phi i32 [ 0, %entry ], [ %next, %cells ]
  %y = lshr i32 %cell, 3
  %x = and i32 %cell, 7
  %line = mul i32 %y, %pitch
  %at = add i32 %line, %x
  %place = getelementptr float, ptr %tile, i32 %at
  %of_column = getelementptr float, ptr %column, i32 %y
  %of_row = getelementptr float, ptr %row, i32 %x
  %a = load float, ptr %of_column
  %b = load float, ptr %of_row
  %ab = fmul float %a, %b
  %before = load float, ptr %place
  %after = fadd float %before, %ab
  store float %after, ptr %place
  %next = add i32 %cell, 1
  %is_done = icmp eq i32 %next, 64
  br i1 %is_done, label %end, label %cells
end:
  ret i32 0
}
"""
has_clang = bool(toolchain.find_clang(required=False))
outer_8 = toolchain.create_llvm(IN_C) if has_clang else IN_LLVM
print("compiled by clang" if has_clang else "clang is not installed: as LLVM has it")

# %% [markdown]
# ## Tensorize
#
# Tiles of 8 by 8 go inside, and the steps of the sum around them. `blockize` makes one block of a
# tile, and `tensorize` replaces it. The annotation brings the function along.


# %%
def in_tiles():
    sch = tir.Schedule(Product)
    y, x, step = sch.get_loops("product")
    (down, y), (across, x) = (sch.split(loop, factors=[None, 8]) for loop in (y, x))
    sch.reorder(down, across, step, y, x)
    return sch


in_tiles().mod.show()


# %%
def by_instruction():
    sch = in_tiles()
    down, _, step, y, _ = sch.get_loops("product")
    tile = sch.blockize(y)
    sch.decompose_reduction(tile, step)
    sch.tensorize(tile, "outer_8")
    sch.annotate(down, "pragma_import_llvm", outer_8)
    return sch


rng = np.random.default_rng(0)
lefts, rights = (rng.standard_normal((40, 64)).astype("float32") for _ in range(2))


def run(module):
    out = tvm.nd.empty((64, 64), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(lefts), tvm.nd.array(rights), out)
    return out.numpy()


np.allclose(run(by_instruction().mod), lefts.T @ rights, atol=1e-4)

# %% [markdown]
# ## Exercise
#
# Take `in_tiles()` and make one block of a whole strip of tiles, the loops below `across`, with
# `blockize`; keep it as `block`.

# %% exercise: blockize
sch = in_tiles()
block = None  # your code

# %% check: blockize
if block is None:
    print("not yet: block is None")
else:
    extents = [int(axis.dom.extent) for axis in sch.get(block).iter_vars]
    is_right = [extent for extent in extents if extent > 1] == [8, 8]
    print("right" if is_right else f"not yet: expected 8 x 8 iterations, found {extents}")
