# %% [markdown]
# # Chapter 3: TensorIR
#
# A product of matrices followed by a ReLU, first as loops of Python, then in TensorIR; then its
# loops are tiled, and the ReLU moves into the tile.

# %%
import numpy as np

import weft as tvm
from weft import tir
from weft.script import ir as I
from weft.script import tir as T

N = 128
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((N, N)).astype("float32") for _ in range(2))
expected = np.maximum(a @ b, 0)

# %% [markdown]
# Blocks say more than loops do. `T.axis.remap("SSR", [i, j, k])`: `vi` and `vj` are spatial, each
# pair of them is an element of the result; along `vk` the block reduces. `T.init` gives the first
# value of an element.


# %%
@I.ir_module
class MatmulRelu:
    @T.prim_func
    def main(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        Y = T.alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


# %%
def result_of(module):
    out = tvm.nd.empty((N, N), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(a), tvm.nd.array(b), out)
    return out.numpy()


def milliseconds(module):
    built, out = tvm.build(module, target="llvm"), tvm.nd.empty((N, N), "float32")
    timer = built.time_evaluator("main", tvm.cpu(), number=5)
    return 1e3 * timer(tvm.nd.array(a), tvm.nd.array(b), out).mean


np.allclose(result_of(MatmulRelu), expected, atol=1e-4)

# %% [markdown]
# ## A tile
#
# The columns are split, the inner part goes below `k`, and the ReLU is computed as soon as a tile
# of `Y` is there. `decompose_reduction` makes the first value a loop of its own.


# %%
def tiled(factor):
    sch = tir.Schedule(MatmulRelu)
    i, j, k = sch.get_loops("Y")
    j0, j1 = sch.split(j, factors=[None, factor])
    sch.reorder(i, j0, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.decompose_reduction("Y", k)
    return sch


tiled(8).mod.show()

# %%
for factor in (4, 16, 64):
    print(f"tiles of {factor:2} columns: {milliseconds(tiled(factor).mod):.3f} ms")
print(f"as written: {milliseconds(MatmulRelu):.3f} ms")

# %% [markdown]
# ## Exercise 1
#
# Write the block of a product with the second matrix transposed: `Y[i, j]` is the sum over `k` of
# `A[i, k] * B[j, k]`.


# %% exercise: transposed
@T.prim_func
def transposed(
    A: T.Buffer((128, 128), "float32"),
    B: T.Buffer((128, 128), "float32"),
    Y: T.Buffer((128, 128), "float32"),
):
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + T.float32(0)  # your code


# %% check: transposed
product = tvm.nd.empty((N, N), "float32")
tvm.build(transposed, target="llvm")["transposed"](tvm.nd.array(a), tvm.nd.array(b), product)
is_right = np.allclose(product.numpy(), a @ b.T, atol=1e-4)
print("right" if is_right else "not yet: the result is not A times B transposed")

# %% [markdown]
# ## Exercise 2
#
# Take `tiled(16)`: make the innermost loop of the block `Y_update` a vector and run the outermost
# one in parallel.

# %% exercise: fast
sch = tiled(16)
# your code: sch.get_loops("Y_update"), sch.vectorize, sch.parallel

# %% check: fast
kinds = [sch.get(loop).kind for loop in sch.get_loops("Y_update")]
if kinds[0] != tir.ForKind.PARALLEL:
    print("not yet: the outermost loop of Y_update is not parallel")
elif kinds[-1] != tir.ForKind.VECTORIZED:
    print("not yet: the innermost loop of Y_update is not a vector")
else:
    print("right" if np.allclose(result_of(sch.mod), expected, atol=1e-4) else "not yet: a result")
