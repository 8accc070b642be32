"""A layer of a language model with a cache of one sequence; then a paged cache of many."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op
from tvm.runtime import ShapeTuple


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(16, -1, 1e-5, bias=False)
        self.gate_up = nn.Linear(16, 48, bias=False)
        self.down = nn.Linear(24, 16, bias=False)

    def forward(self, hidden: Tensor):
        gate, up = op.split(self.gate_up(self.norm(hidden)), 2, axis=-1)
        return hidden + self.down(op.silu(gate) * up)


mod, named = Layer().export_tvm({"forward": {"hidden": nn.spec.Tensor((1, "n", 16), "float32")}})
machine = relax.VirtualMachine(
    tvm.compile(relax.get_pipeline("zero")(mod), target="llvm"), tvm.cpu()
)
rng = np.random.default_rng(5)
norm, gate_up, down = (rng.standard_normal(item.shape).astype("float32") for _, item in named)
x = rng.standard_normal((1, 7, 16)).astype("float32")
out = machine["forward"](*[tvm.nd.array(value) for value in (x, norm, gate_up, down)]).numpy()
scaled = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * norm
gate, up = np.split(scaled @ gate_up.T, 2, axis=-1)
wanted = x + (gate / (1 + np.exp(-gate)) * up) @ down.T
np.testing.assert_allclose(out, wanted, rtol=1e-3, atol=1e-3)
assert list(ShapeTuple([1, 7])) == [1, 7]

from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache

PagedKVCache.create_generic()
