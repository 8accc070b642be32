# %% [markdown]
# # Chapter 4: a whole model
#
# A network classifies pictures of clothes. A graph function (Relax) calls kernels (TensorIR) and
# passes arrays from one to the next; a virtual machine runs it.

# %%
import numpy as np

import weft as tvm
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

data = np.load("data/fashion_mnist_test.npz")
images, labels = data["images"], data["labels"]
names = [str(name) for name in data["class_names"]]
params = dict(np.load("data/perceptron.npz"))
print(images.shape, {name: value.shape for name, value in params.items()})


# %%
def draw(picture):
    for row in picture[::2]:
        print("".join(" .:-=+*#%@"[int(level) * 9 // 255] for level in row))


draw(images[0])
names[labels[0]]

# %% [markdown]
# The model in numpy: two layers, a ReLU between them.


# %%
def in_numpy(x):
    hidden = np.maximum(x @ params["w0"].T + params["b0"], 0)
    return hidden @ params["w1"].T + params["b1"]


image = (images[0].reshape(1, 784) / 255).astype("float32")
names[in_numpy(image).argmax()]

# %% [markdown]
# ## Kernels and the graph around them
#
# `R.call_tir(cls.linear0, (x, w0, b0), out_sinfo=...)` allocates the output and calls the kernel
# with it. Inside `R.dataflow()` nothing has side effects, so passes may rewrite it freely.


# %%
@I.ir_module
class Perceptron:
    @T.prim_func
    def linear0(
        X: T.Buffer((1, 784), "float32"),
        W: T.Buffer((128, 784), "float32"),
        B: T.Buffer((128,), "float32"),
        Z: T.Buffer((1, 128), "float32"),
    ):
        Y = T.alloc_buffer((1, 128), "float32")
        for i, j, k in T.grid(1, 128, 784):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 128):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @T.prim_func
    def relu0(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
        for i, j in T.grid(1, 128):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear1(
        X: T.Buffer((1, 128), "float32"),
        W: T.Buffer((10, 128), "float32"),
        B: T.Buffer((10,), "float32"),
        Z: T.Buffer((1, 10), "float32"),
    ):
        Y = T.alloc_buffer((1, 10), "float32")
        for i, j, k in T.grid(1, 10, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 10):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((1, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        cls = Perceptron
        with R.dataflow():
            hidden = R.call_tir(cls.linear0, (x, w0, b0), out_sinfo=R.Tensor((1, 128), "float32"))
            active = R.call_tir(cls.relu0, (hidden,), out_sinfo=R.Tensor((1, 128), "float32"))
            out = R.call_tir(cls.linear1, (active, w1, b1), out_sinfo=R.Tensor((1, 10), "float32"))
            R.output(out)
        return out


# %%
vm = relax.VirtualMachine(relax.build(Perceptron, target="llvm"), tvm.cpu())
weights = [tvm.nd.array(params[name]) for name in ("w0", "b0", "w1", "b1")]
scores = vm["main"](tvm.nd.array(image), *weights).numpy()
names[scores.argmax()]

# %% [markdown]
# ## Bound parameters
#
# `BindParams` puts the weights into the program; `main` then takes the picture alone.

# %%
bound = relax.transform.BindParams("main", params)(Perceptron)
bound["main"].params

# %% [markdown]
# ## Exercise
#
# Write `classify(picture)`: a picture of `images` (28 x 28, 0 to 255) in, the name of its class
# out, by the machine of `bound`.

# %% exercise: classify
machine = relax.VirtualMachine(relax.build(bound, target="llvm"), tvm.cpu())


def classify(picture):
    return names[0]  # your code


# %% check: classify
guesses = [classify(picture) for picture in images[:20]]
wanted = [names[in_numpy(p.reshape(1, 784).astype("float32") / 255).argmax()] for p in images[:20]]
equal = sum(guess == name for guess, name in zip(guesses, wanted, strict=True))
print("right" if equal == 20 else f"not yet: {equal} of 20 pictures as numpy has them")
