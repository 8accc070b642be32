"""From layers to numbers in four steps: a model, its module, a pipeline, a machine."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(30, 24)
        self.activation = nn.ReLU()
        self.second = nn.Linear(24, 5)

    def forward(self, x):
        return self.second(self.activation(self.first(x)))


mod, spec = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 30), "float32")}})
mod = relax.get_pipeline("zero")(mod)
target = tvm.target.Target("llvm")
machine = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
values = [np.random.default_rng(3).random(item.shape).astype("float32") for _, item in spec]
data = np.ones((1, 30), "float32")
out = machine["forward"](tvm.nd.array(data), *[tvm.nd.array(value) for value in values]).numpy()
w1, b1, w2, b2 = values
np.testing.assert_allclose(out, np.maximum(data @ w1.T + b1, 0) @ w2.T + b2, rtol=1e-4)
