"""Passes over a graph: those that are there, in a row, and one of one's own."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(nn.op.relu(self.first(x)))


mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 12), "float32")}})


@relax.expr_functor.mutator
class Smooth(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op == tvm.ir.Op.get("relax.nn.relu"):
            return relax.op.nn.silu(call.args[0])
        return super().visit_call_(call)


@tvm.transform.module_pass(opt_level=0, name="Smoother")
class Smoother:
    def transform_module(self, mod, ctx):
        for var, function in mod.functions.items():
            if isinstance(function, relax.Function):
                rewriter = Smooth(mod)
                rewriter.builder_.update_func(var, rewriter.visit_expr(function))
                mod = rewriter.builder_.get()
        return mod


smooth = Smoother()(mod)
assert "R.nn.silu" in smooth.script()
assert "R.nn.relu" not in smooth.script()
fused = tvm.transform.Sequential([
    relax.transform.LegalizeOps(),
    relax.transform.AnnotateTIROpPattern(),
    relax.transform.FuseOps(),
    relax.transform.FuseTIR(),
])(smooth)  # fmt: skip
assert len(fused.functions) < len(relax.transform.LegalizeOps()(smooth).functions)
fused.show()
