"""A graph written in three ways: as a script, as modules of layers, and by a builder."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import relax, topi
from tvm.relax.frontend import nn
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Script:
    @T.prim_func(private=True)
    def halve(a: T.handle, b: T.handle):
        n = T.int64()
        A, B = T.match_buffer(a, (n, 4)), T.match_buffer(b, (n, 4))
        for i, j in T.grid(n, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(0.5)

    @R.function
    def forward(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((4, 3), "float32")):
        n = T.int64()
        cls = Script
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w))
            z = R.call_tir(cls.halve, (y,), out_sinfo=R.Tensor((n, 4), "float32"))
            R.output(z)
        return z


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4, bias=False)

    def forward(self, x):
        y = self.layer(x)
        return nn.op.tensor_expr_op(lambda t: topi.multiply(t, 0.5), "halve", [y])


layers, named = Layers().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 3), "float32")}})
assert [name for name, _ in named] == ["layer.weight"]
builder = relax.BlockBuilder()
n = tvm.tir.Var("n", "int64")
x = relax.Var("x", R.Tensor((n, 3), "float32"))
w = relax.Var("w", R.Tensor((4, 3), "float32"))
with builder.function("forward", params=[x, w]):
    with builder.dataflow():
        y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(w)))
        result = builder.emit_output(
            builder.emit_te(topi.multiply, y, tvm.tir.const(0.5, "float32"))
        )
    builder.emit_func_output(result)
rng = np.random.default_rng(2)
given, weight = (rng.standard_normal(shape).astype("float32") for shape in ((5, 3), (4, 3)))
for module in (Script, layers, builder.get()):
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    out = machine["forward"](tvm.nd.array(given), tvm.nd.array(weight))
    np.testing.assert_allclose(out.numpy(), given @ weight.T / 2, rtol=1e-5, atol=1e-6)
