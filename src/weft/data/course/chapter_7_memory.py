# %% [markdown]
# # Chapter 7: threads and memory
#
# Processors have several cores and memories of several sizes: the nearer, the smaller. On a GPU a
# programmer binds loops to threads and copies tiles to shared memory; on a CPU loops run in
# parallel and tiles stay in the caches. The steps of a schedule are the same.

# %%
import numpy as np

import weft as tvm
from weft import te, tir

N = 256
a = te.placeholder((N, N), name="A")
b = te.placeholder((N, N), name="B")
k = te.reduce_axis((0, N), name="k")
c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
module = tvm.IRModule({"main": te.create_prim_func([a, b, c])})
rng = np.random.default_rng(0)
left, right = (rng.standard_normal((N, N)).astype("float32") for _ in range(2))


def run(module):
    out = tvm.nd.empty((N, N), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(left), tvm.nd.array(right), out)
    return out.numpy()


def milliseconds(module):
    out = tvm.nd.empty((N, N), "float32")
    timer = tvm.build(module, target="llvm").time_evaluator("main", tvm.cpu(), number=3)
    return 1e3 * timer(tvm.nd.array(left), tvm.nd.array(right), out).mean


# %% [markdown]
# ## A tile of the result stays near
#
# `cache_write` gives the block a small buffer; `reverse_compute_at` copies it to `C` tile by tile.


# %%
def blocked():
    sch = tir.Schedule(module)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, factors=[None, 4])
    j0, j1 = sch.split(j, factors=[None, 32])
    sch.reorder(i0, j0, k, i1, j1)
    near = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(near, j0)
    sch.decompose_reduction("C", k)
    return sch


blocked().mod.show()

# %% [markdown]
# ## Vectors, unrolled loops, threads


# %%
def fast():
    sch = blocked()
    loops = sch.get_loops("C_update")
    sch.vectorize(loops[-1])
    sch.unroll(loops[-2])
    sch.parallel(loops[0])
    return sch


print(f"as written: {milliseconds(module):.2f} ms, blocked: {milliseconds(blocked().mod):.2f} ms,")
print(f"with vectors and threads: {milliseconds(fast().mod):.2f} ms")
np.allclose(run(fast().mod), left @ right, atol=1e-3)

# %% [markdown]
# ## Exercise
#
# Each tile reads the same columns of `B` again and again. Copy them: a `cache_read` of the input 1
# of the block `C` into `"local"`, computed at the loop `j0`.

# %% exercise: cache
sch = tir.Schedule(module)
i, j, k = sch.get_loops("C")
i0, i1 = sch.split(i, factors=[None, 4])
j0, j1 = sch.split(j, factors=[None, 32])
sch.reorder(i0, j0, k, i1, j1)
# your code: sch.cache_read, sch.compute_at

# %% check: cache
copies = [block for block in ("B_local",) if f'"{block}"' in sch.mod.script()]
if not copies:
    print("not yet: there is no copy of B")
elif len(sch.get_loops("B_local")) < 4:
    print("not yet: the copy is made outside of the loop j0")
else:
    print("right" if np.allclose(run(sch.mod), left @ right, atol=1e-3) else "not yet: a result")
