# %% [markdown]
# # Chapter 8: hardware with instructions of its own
#
# Some processors multiply whole tiles in one instruction. A *tensor intrinsic* says which loops
# such an instruction stands for; `tensorize` puts it in their place.

# %%
import numpy as np

import weft as tvm
from weft import tir
from weft.script import ir as I
from weft.script import tir as T


# %%
@I.ir_module
class Matmul:
    @T.prim_func
    def main(
        A: T.Buffer((64, 64), "float32"),
        B: T.Buffer((64, 64), "float32"),
        C: T.Buffer((64, 64), "float32"),
    ):
        for i, j, k in T.grid(64, 64, 64):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


# %% [markdown]
# ## The instruction
#
# The *description* are the loops that it replaces, the *implementation* is what runs. A processor
# of our own would have an instruction here; on a CPU it is a function that we give in LLVM IR, or
# in C where clang is installed (`weft.compat.toolchain.create_llvm`).


# %%
@T.prim_func
def tile_described(
    A: T.Buffer((16, 16), "float32", offset_factor=1, strides=["sa", 1]),
    B: T.Buffer((16, 16), "float32", offset_factor=1, strides=["sb", 1]),
    C: T.Buffer((16, 16), "float32", offset_factor=1, strides=["sc", 1]),
):
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.block("tile"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def tile_implemented(a: T.handle, b: T.handle, c: T.handle):
    sa, sb, sc = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=1, strides=[sb, 1])
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1, strides=[sc, 1])
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.call_extern(
            "int32", "tile_16", A.access_ptr("r"), B.access_ptr("r"), C.access_ptr("rw"), sa, sb, sc
        )


tir.TensorIntrin.register("tile_16", tile_described, tile_implemented, override=True)

# %% [markdown]
# The function in C, and what clang makes of it where there is one. LLVM IR of the same loops serves
# where there is none.

# %%
IN_C = """
extern "C" int tile_16(float *a, float *b, float *c, int sa, int sb, int sc) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      for (int k = 0; k < 16; ++k) c[i * sc + j] += a[i * sa + k] * b[j * sb + k];
  return 0;
}
"""
IN_LLVM = """
define i32 @tile_16(ptr %a, ptr %b, ptr %c, i32 %sa, i32 %sb, i32 %sc) {
entry:
  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %next, %loop ]
  %i = lshr i32 %n, 8
  %shifted = lshr i32 %n, 4
  %j = and i32 %shifted, 15
  %k = and i32 %n, 15
  %ia = mul i32 %i, %sa
  %pa = add i32 %ia, %k
  %jb = mul i32 %j, %sb
  %pb = add i32 %jb, %k
  %ic = mul i32 %i, %sc
  %pc = add i32 %ic, %j
  %from_a = getelementptr float, ptr %a, i32 %pa
  %from_b = getelementptr float, ptr %b, i32 %pb
  %to_c = getelementptr float, ptr %c, i32 %pc
  %x = load float, ptr %from_a
  %y = load float, ptr %from_b
  %z = load float, ptr %to_c
  %product = fmul float %x, %y
  %sum = fadd float %z, %product
  store float %sum, ptr %to_c
  %next = add i32 %n, 1
  %more = icmp slt i32 %next, 4096
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}
"""
from weft.compat import toolchain

has_clang = bool(toolchain.find_clang(required=False))
kernel = toolchain.create_llvm(IN_C) if has_clang else IN_LLVM
print("compiled by clang" if has_clang else "clang is not installed: LLVM IR of ours")


# %% [markdown]
# ## Tensorize
#
# The loops are split so that a tile of 16 by 16 by 16 stands inside. `blockize` makes a block of
# it, and `tensorize` replaces it. The annotation brings the function along.


# %%
def split_loops():
    sch = tir.Schedule(Matmul)
    parts = [sch.split(loop, factors=[None, 16]) for loop in sch.get_loops("C")]
    sch.reorder(*[outer for outer, _ in parts], *[inner for _, inner in parts])
    return sch


def tensorized():
    sch = split_loops()
    i, j, k, inner = sch.get_loops("C")[:4]
    block = sch.blockize(inner)
    sch.decompose_reduction(block, k)
    sch.tensorize(block, "tile_16")
    sch.annotate(i, "pragma_import_llvm", kernel)
    return sch


rng = np.random.default_rng(0)
left, right = (rng.standard_normal((64, 64)).astype("float32") for _ in range(2))


def run(module):
    out = tvm.nd.empty((64, 64), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(left), tvm.nd.array(right), out)
    return out.numpy()


np.allclose(run(tensorized().mod), left @ right.T, atol=1e-4)

# %% [markdown]
# ## Exercise
#
# Take `split_loops()` and make a block of the inner three loops with `blockize`; keep it as
# `block`.

# %% exercise: blockize
sch = split_loops()
block = None  # your code

# %% check: blockize
if block is None:
    print("not yet: block is None")
else:
    iterators = [int(axis.dom.extent) for axis in sch.get(block).iter_vars]
    is_right = iterators == [4, 4, 4]
    print("right" if is_right else f"not yet: expected 4 x 4 x 4 iterations, found {iterators}")
