"""A pipeline of one's own: a library takes a pattern, passes do the rest; then cuBLAS."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.frontend import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 6, bias=False)

    def forward(self, x):
        return nn.op.relu(self.layer(x))


mod, spec = Net().export_tvm({"forward": {"x": nn.spec.Tensor((4, 8), "float32")}})


@tvm.transform.module_pass(opt_level=0, name="Dispatch")
class Dispatch:
    def transform_module(self, mod, ctx):
        pattern = is_op("relax.matmul")(wildcard(), wildcard())
        return relax.transform.FuseOpsByPattern([("own.matmul", pattern)])(mod)


@relax.register_pipeline("own")
def own():
    @tvm.transform.module_pass(opt_level=0)
    def run(mod, ctx):
        return tvm.transform.Sequential([Dispatch(), relax.get_pipeline("zero")])(mod)

    return run


machine = relax.VirtualMachine(tvm.compile(relax.get_pipeline("own")(mod), "llvm"), tvm.cpu())
x, w = (np.random.default_rng(4).random(shape).astype("float32") for shape in ((4, 8), (6, 8)))
out = machine["forward"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
np.testing.assert_allclose(out, np.maximum(x @ w.T, 0), rtol=1e-4)
assert tvm.get_global_func("relax.ext.cublas", True) is None

import tvm.relax.backend.cuda.cublas as cublas

cublas.partition_for_cublas(mod)
