# %% [markdown]
# # Chapter 4: a whole model
#
# A network looks at a picture of a piece of clothing and says what it is. A model has two levels
# here: *kernels* (TensorIR) compute on arrays that somebody gives them, and a *graph function*
# (Relax) says which kernel gets what. A virtual machine runs the graph.

# %%
import numpy as np

import weft as tvm
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

data = np.load("data/fashion_mnist_test.npz")
pictures, kinds = data["images"], [str(kind) for kind in data["class_names"]]
trained = dict(np.load("data/perceptron.npz"))
print(pictures.shape, pictures.dtype, {name: array.shape for name, array in trained.items()})


# %%
def draw(picture):
    for line in picture[::2]:
        print("".join(" .:-=+*#%@"[int(level) * 9 // 255] for level in line))


draw(pictures[0])
kinds[data["labels"][0]]

# %% [markdown]
# What the network computes, in numpy: each of 128 detectors weighs all pixels and is silent below
# zero; each of ten judges weighs the detectors. The highest vote wins.


# %%
def votes_by_numpy(picture):
    pixels = picture.reshape(784) / np.float32(255)
    detected = np.maximum(trained["w0"] @ pixels + trained["b0"], 0)
    return trained["w1"] @ detected + trained["b1"]


kinds[votes_by_numpy(pictures[0]).argmax()]

# %% [markdown]
# ## Kernels and the graph around them
#
# A kernel returns nothing; it fills the array that is its last argument. The graph hides that:
# `R.call_tir(kernel, inputs, out_sinfo)` allocates an array of the type `out_sinfo`, lets the
# kernel fill it, and has it as its value. So each line of `main` is a value that depends on others
# and nothing else, and in `with R.dataflow()` a compiler may join lines, move them, and drop those
# that nobody needs.
#
# The sums below begin with the bias instead of zero, so that nothing is left to add.


# %%
@I.ir_module
class Clothing:
    @T.prim_func
    def scale(picture: T.Buffer((28, 28), "uint8"), pixels: T.Buffer((784,), "float32")):
        for y, x in T.grid(28, 28):
            with T.block("pixel"):
                vy, vx = T.axis.remap("SS", [y, x])
                pixels[vy * 28 + vx] = T.Cast("float32", picture[vy, vx]) / T.float32(255)

    @T.prim_func
    def detect(
        pixels: T.Buffer((784,), "float32"),
        weight: T.Buffer((128, 784), "float32"),
        bias: T.Buffer((128,), "float32"),
        detected: T.Buffer((128,), "float32"),
    ):
        weighed = T.alloc_buffer((128,), "float32")
        for detector, pixel in T.grid(128, 784):
            with T.block("weigh"):
                d, p = T.axis.remap("SR", [detector, pixel])
                with T.init():
                    weighed[d] = bias[d]
                weighed[d] += weight[d, p] * pixels[p]
        for detector in range(128):
            with T.block("silence"):
                d = T.axis.spatial(128, detector)
                detected[d] = T.max(weighed[d], T.float32(0))

    @T.prim_func
    def judge(
        detected: T.Buffer((128,), "float32"),
        weight: T.Buffer((10, 128), "float32"),
        bias: T.Buffer((10,), "float32"),
        votes: T.Buffer((10,), "float32"),
    ):
        for kind, detector in T.grid(10, 128):
            with T.block("vote"):
                v, d = T.axis.remap("SR", [kind, detector])
                with T.init():
                    votes[v] = bias[v]
                votes[v] += weight[v, d] * detected[d]

    @R.function
    def main(
        picture: R.Tensor((28, 28), "uint8"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        cls = Clothing
        with R.dataflow():
            pixels = R.call_tir(cls.scale, (picture,), R.Tensor((784,), "float32"))
            detected = R.call_tir(cls.detect, (pixels, w0, b0), R.Tensor((128,), "float32"))
            votes = R.call_tir(cls.judge, (detected, w1, b1), R.Tensor((10,), "float32"))
            R.output(votes)
        return votes


# %%
machine = relax.VirtualMachine(relax.build(Clothing, target="llvm"), tvm.cpu())
arrays = [tvm.nd.array(trained[name]) for name in ("w0", "b0", "w1", "b1")]
votes = machine["main"](tvm.nd.array(pictures[0]), *arrays).numpy()
kinds[votes.argmax()], np.allclose(votes, votes_by_numpy(pictures[0]), atol=1e-3)

# %% [markdown]
# ## Weights inside
#
# `BindParams` replaces the parameters that have a name in `trained` by constants; the picture alone
# is left to give.

# %%
with_weights = relax.transform.BindParams("main", trained)(Clothing)
with_weights["main"].params

# %% [markdown]
# ## A function of another library as a kernel
#
# Some kernels exist already. `R.call_dps_packed` calls a registered function by its name, with the
# inputs and the array to fill, as `R.call_tir` calls a kernel. This one is numpy's product.


# %%
@tvm.register_func("course.judge", override=True)
def judge_by_numpy(detected, weight, bias, votes):
    votes.copyfrom(weight.numpy() @ detected.numpy() + bias.numpy())


@I.ir_module
class Judges:
    @R.function
    def main(
        detected: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        with R.dataflow():
            votes = R.call_dps_packed(
                "course.judge", (detected, w1, b1), R.Tensor((10,), "float32")
            )
            R.output(votes)
        return votes


judges = relax.VirtualMachine(relax.build(Judges, target="llvm"), tvm.cpu())
silent = tvm.nd.array(np.zeros(128, "float32"))
np.array_equal(judges["main"](silent, *arrays[2:]).numpy(), trained["b1"])

# %% [markdown]
# ## Exercise
#
# Write `name_of(picture)`: the picture in, the name of its kind out, by the machine of
# `with_weights`.

# %% exercise: name_of
machine = relax.VirtualMachine(relax.build(with_weights, target="llvm"), tvm.cpu())


def name_of(picture):
    return kinds[0]  # your code


# %% check: name_of
answers = [name_of(picture) for picture in pictures[:20]]
wanted = [kinds[votes_by_numpy(picture).argmax()] for picture in pictures[:20]]
equal = sum(answer == name for answer, name in zip(answers, wanted, strict=True))
print("right" if equal == 20 else f"not yet: {equal} of 20 pictures as numpy has them")
