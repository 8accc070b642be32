# %% [markdown]
# # Chapter 6: models of other frameworks
#
# A block builder makes a module step by step. With it a model of PyTorch becomes a graph: each of
# its operators is looked up in a table of ours.

# %%
import numpy as np

import weft as tvm
from weft import relax, te, topi

# %% [markdown]
# ## The block builder
#
# `emit_te` turns a function on tensor expressions into a kernel and emits a call of it; the
# functions of `topi` are such functions, and so is one of ours. Here the mean of each row is taken
# off it.

# %%
table = relax.Var("table", relax.TensorStructInfo((4, 8), "float32"))


def mean_of_rows(table):
    at = te.reduce_axis((0, 8), name="at")
    return te.compute((4, 1), lambda row, _: te.sum(table[row, at] / 8, axis=at), name="mean")


builder = relax.BlockBuilder()
with builder.function("main", [table]):
    with builder.dataflow():
        mean = builder.emit_te(mean_of_rows, table)
        out = builder.emit_output(builder.emit_te(topi.subtract, table, mean))
    builder.emit_func_output(out)
module = builder.get()
module.show()

# %%
vm = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
vm["main"](tvm.nd.array(np.arange(32, dtype="float32").reshape(4, 8))).numpy()[0]

# %% [markdown]
# ## A translator
#
# A model is a list of steps here, as a tracer of PyTorch (`torch.fx`) gives it: an operator, the
# names of its inputs, the name of the result. The table says what each operator becomes.

# %%
STEPS = [
    ("linear", ("x", "w0"), "hidden"),
    ("relu", ("hidden",), "active"),
    ("linear", ("active", "w1"), "scores"),
]
TABLE = {
    "linear": lambda builder, x, w: builder.emit(relax.op.linear(x, w)),
    "relu": lambda builder, x: builder.emit(relax.op.nn.relu(x)),
}


def translate(steps, table, weights):
    known = {"x": relax.Var("x", relax.TensorStructInfo((1, 784), "float32"))}
    known.update({name: relax.const(value) for name, value in weights.items()})
    builder = relax.BlockBuilder()
    with builder.function("main", [known["x"]]):
        with builder.dataflow():
            for operator, inputs, name in steps:
                known[name] = table[operator](builder, *[known[item] for item in inputs])
            out = builder.emit_output(known[name])
        builder.emit_func_output(out)
    return builder.get()


params = dict(np.load("data/perceptron.npz"))
weights = {name: params[name] for name in ("w0", "w1")}
translated = translate(STEPS, TABLE, weights)
[call.value.op.name for call in translated["main"].body.blocks[0].bindings[:3]]

# %% [markdown]
# `relax.get_pipeline()` replaces operators by kernels and joins them; `tvm.compile` takes models
# of PyTorch and ONNX as they are and does all of this by itself.


# %%
def scores_of(module, image):
    vm = relax.VirtualMachine(relax.build(module, target="llvm"), tvm.cpu())
    return vm["main"](tvm.nd.array(image)).numpy()


image = (np.load("data/fashion_mnist_test.npz")["images"][0].reshape(1, 784) / 255).astype(
    "float32"
)
scores_of(translated, image).round(1)

# %% [markdown]
# ## Exercise
#
# The steps below need an operator that the table lacks: `add` of two values. Extend `table`.

# %% exercise: add
table = dict(TABLE)
# your code: table["add"] = lambda builder, x, y: ...

# %% check: add
steps = [
    ("linear", ("x", "w0"), "h"), ("add", ("h", "b0"), "h2"), ("relu", ("h2",), "a"),
    ("linear", ("a", "w1"), "s"), ("add", ("s", "b1"), "s2"),
]  # fmt: skip
hidden = np.maximum(image @ params["w0"].T + params["b0"], 0)
expected = hidden @ params["w1"].T + params["b1"]
try:
    got = scores_of(translate(steps, table, params), image)
    print(
        "right" if np.allclose(got, expected, atol=1e-3) else "not yet: other scores than numpy's"
    )
except KeyError as error:
    print(f"not yet: the table has no {error}")
except Exception as error:
    print(f"not yet: {error}")
