# %% [markdown]
# # Chapter 5: automatic optimisation
#
# Which loops are best depends on the machine. A schedule can leave that open: it *draws* numbers,
# and a search measures what each draw is worth. The program here smooths the rows of a table: each
# element becomes a weighted sum of nine neighbours.

# %%
import tempfile

import numpy as np

import weft as tvm
from weft import meta_schedule as ms
from weft import te, tir

ROWS, COLUMNS, TAPS = 64, 256, 9
rough = te.placeholder((ROWS, COLUMNS + TAPS - 1), name="rough")
weight = te.placeholder((TAPS,), name="weight")
tap = te.reduce_axis((0, TAPS), name="tap")
smooth = te.compute(
    (ROWS, COLUMNS),
    lambda row, at: te.sum(rough[row, at + tap] * weight[tap], axis=tap),
    name="smooth",
)
module = tvm.IRModule({"main": te.create_prim_func([rough, weight, smooth])})

# %% [markdown]
# ## Random choices
#
# `sample_perfect_tile` draws factors whose product is the extent of a loop, `sample_categorical`
# one of several numbers. The *trace* lists all steps with what was drawn; it can be replayed, or
# drawn again.


# %%
def draw_loops(sch):
    row, at, tap = sch.get_loops("smooth")
    piece, within = sch.split(at, factors=sch.sample_perfect_tile(at, n=2))
    sch.reorder(row, piece, tap, within)
    steps = sch.sample_categorical(candidates=[1, 16, 64], probs=[0.4, 0.3, 0.3])
    sch.annotate(row, "pragma_auto_unroll_max_step", steps)
    return sch


print(draw_loops(tir.Schedule(module, seed=1)).trace)

# %%
for seed in range(1, 5):
    drawn = draw_loops(tir.Schedule(module, seed=seed))
    extents = [int(drawn.get(loop).extent) for loop in drawn.get_loops("smooth")]
    print(f"seed {seed}: {extents[1]} pieces of {extents[3]} elements")

# %% [markdown]
# ## Search
#
# `tune_tir` draws schedules of a space, builds and measures them, and keeps the best. Our function
# is the space; without `space=` rules make one. Four trials show how it goes; hundreds find a good
# schedule.

# %%
target = tvm.target.Target("llvm -num-cores=1")
database = ms.tune_tir(
    mod=module,
    target=target,
    max_trials_global=4,
    num_trials_per_iter=4,
    work_dir=tempfile.mkdtemp(),
    space=ms.space_generator.ScheduleFn(draw_loops),
    strategy="replay-trace",
)
best = ms.tir_integration.compile_tir(database, module, target)
best.mod.show()

# %% [markdown]
# ## Exercise
#
# Write a space whose innermost loop, the elements of a piece, is a vector. Pass
# `max_innermost_factor=16` to `sample_perfect_tile`, so that no piece is too long for that.


# %% exercise: space
def draw_vectors(sch):
    return sch  # your code


# %% check: space
try:
    drawn = draw_vectors(tir.Schedule(module, seed=3))
    is_vector = drawn.get(drawn.get_loops("smooth")[-1]).kind == tir.ForKind.VECTORIZED
    ones = [np.ones((ROWS, COLUMNS + TAPS - 1), "float32"), np.ones(TAPS, "float32")]
    out = tvm.nd.empty((ROWS, COLUMNS), "float32")
    tvm.build(drawn.mod, target="llvm")["main"](*map(tvm.nd.array, ones), out)
    if "sample_perfect_tile" not in str(drawn.trace):
        print("not yet: nothing is drawn in it")
    elif not is_vector:
        print("not yet: the innermost loop is not a vector")
    else:
        print("right" if np.all(out.numpy() == TAPS) else "not yet: a wrong result")
except Exception as error:
    print(f"not yet: {error}")
