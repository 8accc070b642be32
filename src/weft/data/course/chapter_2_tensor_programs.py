# %% [markdown]
# # Chapter 2: tensor programs
#
# A tensor program is a function on arrays: which loops run, which elements they read and write.
# Here two sounds are mixed. The program is written in TVMScript, compiled and run, and its loops
# are changed without changing what is heard. Run the cells from the top; each exercise has a check
# below it.

# %%
import numpy as np

import weft as tvm
from weft import te, tir
from weft.script import ir as I
from weft.script import tir as T

SAMPLES = 480
tone = np.sin(np.arange(SAMPLES) / 8).astype("float32")
noise = np.random.default_rng(0).uniform(-1, 1, SAMPLES).astype("float32")

# %% [markdown]
# ## A program
#
# `T.Buffer` describes an argument: its shape and the type of an element. The statement that
# computes an element stands in a *block*, which has axes of its own: here `n`, taken from the loop
# `step`. `T.axis.spatial` promises that no sample needs another one, so any order of them is right.


# %%
@I.ir_module
class Mixer:
    @T.prim_func
    def mix(
        dry: T.Buffer((480,), "float32"),
        wet: T.Buffer((480,), "float32"),
        out: T.Buffer((480,), "float32"),
    ):
        for step in range(480):
            with T.block("sample"):
                n = T.axis.spatial(480, step)
                out[n] = dry[n] * T.float32(0.75) + wet[n] * T.float32(0.25)


Mixer.show()

# %% [markdown]
# `tvm.build` makes machine code of it. A PrimFunc returns nothing: the caller brings the array for
# the result, as the last argument.


# %%
def listen(module):
    result = tvm.nd.empty((SAMPLES,), "float32")
    tvm.build(module, target="llvm")["mix"](tvm.nd.array(tone), tvm.nd.array(noise), result)
    return result.numpy()


listen(Mixer)[:5]

# %% [markdown]
# ## Other loops, the same sound
#
# A schedule rewrites the loops. `split` makes two of one, `vectorize` turns the inner one into
# vector instructions, `parallel` gives the outer one to the threads. A step that could change a
# result is refused.

# %%
sch = tir.Schedule(Mixer)
sch.work_on("mix")
(step,) = sch.get_loops("sample")
chunk, lane = sch.split(step, factors=[None, 16])
sch.vectorize(lane)
sch.parallel(chunk)
sch.mod.show()

# %%
np.array_equal(listen(sch.mod), listen(Mixer))

# %% [markdown]
# ## Formulas instead of loops
#
# A tensor expression says what one element is; the loops follow from the shape.

# %%
dry, wet = te.placeholder((SAMPLES,), name="dry"), te.placeholder((SAMPLES,), name="wet")
mixed = te.compute((SAMPLES,), lambda n: dry[n] * 0.75 + wet[n] * 0.25, name="mixed")
te.create_prim_func([dry, wet, mixed]).show()

# %% [markdown]
# ## Exercise 1
#
# Speakers cut off what is louder than they can play. Write the tensor expression whose element `n`
# is `dry[n]`, but at most 0.5 (`te.min`).

# %% exercise: limited
limited = None  # your code: te.compute((SAMPLES,), lambda n: ...)

# %% check: limited
try:
    built = tvm.build(te.create_prim_func([dry, limited]), target="llvm")
    result = tvm.nd.empty((SAMPLES,), "float32")
    built["main"](tvm.nd.array(tone), result)
    is_right = np.array_equal(result.numpy(), np.minimum(tone, np.float32(0.5)))
    print("right" if is_right else "not yet: a sample differs from min(dry[n], 0.5)")
except Exception as error:
    print(f"not yet: {error}")

# %% [markdown]
# ## Exercise 2
#
# Split the loop of `Mixer` into three, of 6, 10 and 8 iterations.

# %% exercise: split
sch = tir.Schedule(Mixer)
sch.work_on("mix")
# your code: sch.split(...)

# %% check: split
extents = [int(sch.get(loop).extent) for loop in sch.get_loops("sample")]
print("right" if extents == [6, 10, 8] else f"not yet: expected loops of 6, 10, 8, found {extents}")
