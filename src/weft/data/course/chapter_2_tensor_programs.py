# %% [markdown]
# # Chapter 2: tensor programs
#
# A tensor program is a function on arrays: which loops run, which elements they read and write.
# Here one is written in TVMScript, compiled, run, and its loops are changed without changing what
# it computes. Run the cells from the top; each exercise has a check below it.

# %%
import numpy as np

import weft as tvm
from weft import te, tir
from weft.script import ir as I
from weft.script import tir as T

# %% [markdown]
# ## A program
#
# `T.Buffer` describes an argument: its shape and the type of an element. A *block* is a statement
# with its own axes; `T.axis.spatial(128, i)` says that the iterations are independent.


# %%
@I.ir_module
class AddModule:
    @T.prim_func
    def main(
        A: T.Buffer((128,), "float32"),
        B: T.Buffer((128,), "float32"),
        C: T.Buffer((128,), "float32"),
    ):
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] + B[vi]


AddModule.show()

# %% [markdown]
# `tvm.build` makes machine code of it. A PrimFunc returns nothing: the last argument is written.


# %%
def run_add(module):
    a, b = np.arange(128, dtype="float32"), np.ones(128, dtype="float32")
    out = tvm.nd.empty((128,), "float32")
    tvm.build(module, target="llvm")["main"](tvm.nd.array(a), tvm.nd.array(b), out)
    return out.numpy()


run_add(AddModule)[:5]

# %% [markdown]
# ## Transformations
#
# A schedule rewrites the loops. `split` makes two of one, `vectorize` turns the inner one into
# vector instructions, `parallel` gives the outer one to the threads. What the program computes
# stays the same: a step that could change it is refused.

# %%
sch = tir.Schedule(AddModule)
(i,) = sch.get_loops("C")
outer, inner = sch.split(i, factors=[None, 8])
sch.vectorize(inner)
sch.parallel(outer)
sch.mod.show()

# %%
np.array_equal(run_add(sch.mod), run_add(AddModule))

# %% [markdown]
# ## Tensor expressions
#
# A tensor expression gives each element by a formula; the loops are derived from it.

# %%
A = te.placeholder((128,), name="A")
B = te.placeholder((128,), name="B")
C = te.compute((128,), lambda i: A[i] + B[i], name="C")
te.create_prim_func([A, B, C]).show()

# %% [markdown]
# ## Exercise 1
#
# Write the tensor expression whose element `i` is the maximum of `A[i]` and 0 (`te.max`).

# %% exercise: relu
relu = None  # your code: te.compute((128,), lambda i: ...)

# %% check: relu
try:
    built = tvm.build(te.create_prim_func([A, relu]), target="llvm")
    given, result = np.linspace(-1, 1, 128, dtype="float32"), tvm.nd.empty((128,), "float32")
    built["main"](tvm.nd.array(given), result)
    is_right = np.array_equal(result.numpy(), np.maximum(given, 0))
    print("right" if is_right else "not yet: an element differs from max(A[i], 0)")
except Exception as error:
    print(f"not yet: {error}")

# %% [markdown]
# ## Exercise 2
#
# Split the loop of `AddModule` into three, of 4, 8 and 4 iterations.

# %% exercise: split
sch = tir.Schedule(AddModule)
# your code: sch.split(...)

# %% check: split
extents = [int(sch.get(loop).extent) for loop in sch.get_loops("C")]
print("right" if extents == [4, 8, 4] else f"not yet: expected loops of 4, 8, 4, found {extents}")
