# %% [markdown]
# # Chapter 9: graph optimisation
#
# A pass rewrites the graph of a model. Here a product followed by a sum becomes one call, and then
# one kernel.

# %%
import numpy as np

import weft as tvm
from weft import relax
from weft.relax.expr_functor import PyExprMutator, mutator
from weft.script import ir as I
from weft.script import relax as R


# %%
@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            product = R.multiply(x, y)
            out = R.add(product, y)
            R.output(out)
        return out


# %% [markdown]
# ## What a graph is made of
#
# A function has a body of blocks; a block has bindings; a binding gives a variable a value.

# %%
for binding in Model["main"].body.blocks[0].bindings:
    print(binding.var, "is", binding.value)

# %% [markdown]
# ## A rewriter
#
# A mutator visits each call. `lookup_binding` tells what a variable stands for. A sum whose first
# argument is a product becomes `ewise_fma`.


# %%
@mutator
class FuseMultiplyAdd(PyExprMutator):
    def __init__(self, module):
        super().__init__(module)
        self.multiply = tvm.ir.Op.get("relax.multiply")
        self.add = tvm.ir.Op.get("relax.add")

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op != self.add:
            return call
        value = self.lookup_binding(call.args[0])
        if not isinstance(value, relax.Call) or value.op != self.multiply:
            return call
        return relax.op.ewise_fma(value.args[0], value.args[1], call.args[1])


@tvm.ir.transform.module_pass(opt_level=2, name="FuseMultiplyAdd")
class FuseMultiplyAddPass:
    def transform_module(self, module, context):
        rewriter = FuseMultiplyAdd(module)
        for name, function in module.functions.items():
            if isinstance(function, relax.Function):
                updated = relax.analysis.remove_all_unused(rewriter.visit_expr(function))
                rewriter.builder_.update_func(name, updated)
        return rewriter.builder_.get()


fused = FuseMultiplyAddPass()(Model)
fused.show()

# %%
x, y = np.full((3, 4), 2, "float32"), np.full((3, 4), 3, "float32")


def run(module):
    vm = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
    return vm["main"](tvm.nd.array(x), tvm.nd.array(y)).numpy()


np.array_equal(run(fused), run(Model))

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
one_kernel = pipeline(Model)
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
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
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
