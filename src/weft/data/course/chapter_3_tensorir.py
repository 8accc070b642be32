# %% [markdown]
# # Chapter 3: TensorIR
#
# How alike are two sets of points? Take the squared distance of each pair, and let it fade out:
# `exp(-distance)`, which is 1 for equal points and near 0 for distant ones. That is a sum for each
# pair and a function of the sum: two blocks. Their loops are tiled, and the second block moves into
# the tiles of the first.

# %%
import numpy as np

import weft as tvm
from weft import tir
from weft.script import ir as I
from weft.script import tir as T

COUNT, FEATURES = 256, 64
rng = np.random.default_rng(0)
points = rng.uniform(0, 0.5, (COUNT, FEATURES)).astype("float32")  # a point in each row
others = rng.uniform(0, 0.5, (FEATURES, COUNT)).astype("float32")  # a point in each column
expected = np.exp(-((points[:, :, None] - others[None]) ** 2).sum(axis=1))

# %% [markdown]
# Blocks say more than loops do. `p` and `q` are spatial axes: each pair of them is an element of
# the result. Along `f` the block *reduces*: the steps of this axis add to the same element, and
# `T.init` says what the element is before the first of them.


# %%
@I.ir_module
class Alike:
    @T.prim_func
    def main(
        points: T.Buffer((256, 64), "float32"),
        others: T.Buffer((64, 256), "float32"),
        alike: T.Buffer((256, 256), "float32"),
    ):
        apart = T.alloc_buffer((256, 256), "float32")
        for row, column, feature in T.grid(256, 256, 64):
            with T.block("distance"):
                p, q, f = T.axis.remap("SSR", [row, column, feature])
                with T.init():
                    apart[p, q] = T.float32(0)
                apart[p, q] += (points[p, f] - others[f, q]) * (points[p, f] - others[f, q])
        for row, column in T.grid(256, 256):
            with T.block("fade"):
                p, q = T.axis.remap("SS", [row, column])
                alike[p, q] = T.exp(-apart[p, q])


# %%
def result_of(module):
    out = tvm.nd.empty((COUNT, COUNT), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(points), tvm.nd.array(others), out)
    return out.numpy()


def milliseconds(module):
    built, out = tvm.build(module, target="llvm"), tvm.nd.empty((COUNT, COUNT), "float32")
    timer = built.time_evaluator("main", tvm.cpu(), number=5)
    return 1e3 * timer(tvm.nd.array(points), tvm.nd.array(others), out).mean


np.allclose(result_of(Alike), expected, atol=1e-5)

# %% [markdown]
# ## A strip of columns at a time
#
# As written, all distances are stored before the first is used. Cut the columns into strips and
# put the features around a strip: its sums stay near the processor. `reverse_compute_at` moves
# `fade` to where a strip is ready, and `decompose_reduction` makes the first value of the sums a
# loop of its own.


# %%
def in_strips(width):
    sch = tir.Schedule(Alike)
    row, column, feature = sch.get_loops("distance")
    strip, within = sch.split(column, factors=[None, width])
    sch.reorder(row, strip, feature, within)
    sch.reverse_compute_at("fade", strip)
    sch.decompose_reduction("distance", feature)
    return sch


in_strips(8).mod.show()

# %%
print(f"as written: {milliseconds(Alike):.3f} ms")
for width in (8, 64, 256):
    print(f"strips of {width:3} columns: {milliseconds(in_strips(width).mod):.3f} ms")

# %% [markdown]
# ## Exercise 1
#
# Write the block of another distance: the sum over the features of the absolute difference
# (`T.abs`).


# %% exercise: absolute
@T.prim_func
def absolute(
    points: T.Buffer((256, 64), "float32"),
    others: T.Buffer((64, 256), "float32"),
    apart: T.Buffer((256, 256), "float32"),
):
    for row, column, feature in T.grid(256, 256, 64):
        with T.block("distance"):
            p, q, f = T.axis.remap("SSR", [row, column, feature])
            with T.init():
                apart[p, q] = T.float32(0)
            apart[p, q] += T.float32(0)  # your code


# %% check: absolute
found = tvm.nd.empty((COUNT, COUNT), "float32")
tvm.build(absolute, target="llvm")["absolute"](tvm.nd.array(points), tvm.nd.array(others), found)
wanted = np.abs(points[:, :, None] - others[None]).sum(axis=1)
is_right = np.allclose(found.numpy(), wanted, atol=1e-4)
print("right" if is_right else "not yet: expected the sums of absolute differences")

# %% [markdown]
# ## Exercise 2
#
# Take `in_strips(64)`. `decompose_reduction` named the block that adds `distance_update`: make its
# innermost loop a vector and run its outermost one in parallel.

# %% exercise: fast
sch = in_strips(64)
# your code: sch.get_loops("distance_update"), sch.vectorize, sch.parallel

# %% check: fast
kinds = [sch.get(loop).kind for loop in sch.get_loops("distance_update")]
if kinds[0] != tir.ForKind.PARALLEL:
    print("not yet: the outermost loop of distance_update is not parallel")
elif kinds[-1] != tir.ForKind.VECTORIZED:
    print("not yet: the innermost loop of distance_update is not a vector")
else:
    print("right" if np.allclose(result_of(sch.mod), expected, atol=1e-5) else "not yet: a result")
