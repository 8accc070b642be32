# %% [markdown]
# # Chapter 5: automatic optimisation
#
# Which tile is best depends on the machine. A *stochastic* schedule leaves that open: it draws
# numbers, and a search measures what they are worth.

# %%
import tempfile

import numpy as np

import weft as tvm
from weft import meta_schedule as ms
from weft import te, tir

a = te.placeholder((128, 128), name="A")
b = te.placeholder((128, 128), name="B")
k = te.reduce_axis((0, 128), name="k")
c = te.compute((128, 128), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
module = tvm.IRModule({"main": te.create_prim_func([a, b, c])})

# %% [markdown]
# ## Random choices
#
# `sample_perfect_tile` draws factors whose product is the extent of a loop. The *trace* is the list
# of all steps with what was drawn; it can be replayed, and drawn again.


# %%
def draw_tile(sch):
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(j, factors=sch.sample_perfect_tile(j, n=2))
    sch.reorder(i, outer, k, inner)
    return sch


sch = draw_tile(tir.Schedule(module, seed=1))
print(sch.trace)

# %%
for seed in range(1, 5):
    loops = draw_tile(tir.Schedule(module, seed=seed)).get_loops("C")
    print("seed", seed, "gives", len(loops), "loops")

# %% [markdown]
# ## Search
#
# `tune_tir` draws schedules of a space, builds and measures them, and keeps the best. Here the
# space is our function; without `space=` it is made by rules. Four trials show how it goes;
# hundreds find a good one.

# %%
target = tvm.target.Target("llvm -num-cores=1")
folder = tempfile.mkdtemp()
database = ms.tune_tir(
    mod=module,
    target=target,
    max_trials_global=4,
    num_trials_per_iter=4,
    work_dir=folder,
    space=ms.space_generator.ScheduleFn(draw_tile),
    strategy="replay-trace",
)
best = ms.tir_integration.compile_tir(database, module, target)
best.mod.show()

# %% [markdown]
# ## Exercise
#
# Write a space that also makes the innermost loop a vector. Draw until the factor fits: pass
# `max_innermost_factor=16` to `sample_perfect_tile`.


# %% exercise: space
def vector_tile(sch):
    return sch  # your code


# %% check: space
try:
    drawn = vector_tile(tir.Schedule(module, seed=3))
    kinds = [drawn.get(loop).kind for loop in drawn.get_loops("C")]
    left = np.ones((128, 128), "float32")
    out = tvm.nd.empty((128, 128), "float32")
    tvm.build(drawn.mod, target="llvm")["main"](tvm.nd.array(left), tvm.nd.array(left), out)
    if "sample_perfect_tile" not in str(drawn.trace):
        print("not yet: nothing is drawn in it")
    elif kinds[-1] != tir.ForKind.VECTORIZED:
        print("not yet: the innermost loop is not a vector")
    else:
        print("right" if np.all(out.numpy() == 128) else "not yet: a wrong result")
except Exception as error:
    print(f"not yet: {error}")
