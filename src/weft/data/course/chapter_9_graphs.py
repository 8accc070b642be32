# %% [markdown]
# # Chapter 9: graph optimisation
#
# A pass rewrites the graph of a model. Here a detour is removed from one: the root of a square is
# an absolute value.

# %%
import numpy as np

import weft as tvm
from weft import relax
from weft.relax.expr_functor import PyExprMutator, mutator
from weft.script import ir as I
from weft.script import relax as R


# %%
@I.ir_module
class Loudness:
    @R.function
    def main(wave: R.Tensor((2, 6), "float32"), floor: R.Tensor((6,), "float32")):
        with R.dataflow():
            power = R.multiply(wave, wave)
            amplitude = R.sqrt(power)
            loud = R.maximum(amplitude, floor)
            R.output(loud)
        return loud


# %% [markdown]
# ## What a graph is made of
#
# A function has a body of blocks; a block has bindings; a binding gives a variable a value. A call
# names its arguments by variables: what `R.sqrt(power)` means, the binding of `power` tells.

# %%
for binding in Loudness["main"].body.blocks[0].bindings:
    print(f"{binding.var.name_hint:>9} = {binding.value}")

# %% [markdown]
# ## A rewriter
#
# A mutator is asked about each call, and answers with what stands there from now on. Ours answers
# `R.abs` where it sees the root of a value that `lookup_binding` finds to be a square.

# %%
SQRT, MULTIPLY = (tvm.ir.Op.get(f"relax.{name}") for name in ("sqrt", "multiply"))


@mutator
class RootsOfSquares(PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)  # its arguments first
        return self.as_absolute(call) or call

    def as_absolute(self, call):
        if call.op != SQRT:
            return None
        inner = self.lookup_binding(call.args[0])
        if not isinstance(inner, relax.Call) or inner.op != MULTIPLY:
            return None
        left, right = inner.args
        return relax.op.abs(left) if left is right else None


# %% [markdown]
# A pass makes a rewriter of a function, and cleans up: nobody needs `power` any more.


# %%
@relax.transform.function_pass(opt_level=0, name="RootsOfSquares")
def remove_detours(function, module, context):
    return relax.analysis.remove_all_unused(RootsOfSquares(module).visit_expr(function))


direct = remove_detours(Loudness)
direct.show()

# %%
wave = np.random.default_rng(0).standard_normal((2, 6)).astype("float32")
floor = np.full(6, 0.5, "float32")


def run(module):
    vm = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
    return vm["main"](tvm.nd.array(wave), tvm.nd.array(floor)).numpy()


np.allclose(run(direct), run(Loudness))

# %% [markdown]
# ## From operators to kernels
#
# `LegalizeOps` gives each operator its kernel, `AnnotateTIROpPattern` says how kernels combine,
# `FuseOps` groups them, and `FuseTIR` makes one kernel of a group.

# %%
pipeline = tvm.transform.Sequential(
    [
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
)
one_kernel = pipeline(Loudness)
one_kernel.show()

# %% [markdown]
# ## Exercise
#
# Write a mutator that replaces `R.add(x, x)`, a value added to itself, by `R.multiply(x, 2)`
# (`relax.const(2, "float32")`).


# %% exercise: double
@mutator
class Double(PyExprMutator):
    def visit_call_(self, call):
        return self.visit_expr_post_order(call)  # your code


# %% check: double
@I.ir_module
class Sum:
    @R.function
    def main(x: R.Tensor((2, 6), "float32"), y: R.Tensor((6,), "float32")):
        with R.dataflow():
            twice = R.add(x, x)
            out = R.add(twice, y)
            R.output(out)
        return out


rewriter = Double(Sum)
rewriter.builder_.update_func(Sum.get_global_var("main"), rewriter.visit_expr(Sum["main"]))
rewritten = rewriter.builder_.get()
used = [b.value.op.name for b in rewritten["main"].body.blocks[0].bindings[:2]]
if used != ["relax.multiply", "relax.add"]:
    print(f"not yet: expected multiply and add, found {', '.join(used)}")
else:
    print("right" if np.array_equal(run(rewritten), run(Sum)) else "not yet: another result")
