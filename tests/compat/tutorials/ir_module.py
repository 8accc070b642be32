"""What a module is: captured from PyTorch, looked into, changed, compiled for a CPU; then a GPU."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

net = nn.Sequential(nn.Linear(20, 12), nn.Tanh(), nn.Linear(12, 3)).eval()
example = torch.randn(2, 20)
with torch.no_grad():
    exported = torch.export.export(net, (example,))
    whole = from_exported_program(exported, keep_params_as_input=True)
mod, params = relax.frontend.detach_params(whole)
[main] = mod.get_global_vars()
assert main.name_hint == "main"
assert len(params["main"]) == 4
mod["predict"] = mod["main"].with_attr("global_symbol", "predict")
legal = relax.transform.LegalizeOps()(mod)
assert {"main", "predict"} < {var.name_hint for var in legal.get_global_vars()}
tuned = relax.get_pipeline("zero")(mod)
machine = relax.VirtualMachine(tvm.compile(tuned, target="llvm"), tvm.cpu())
data = tvm.nd.array(example.numpy())
values = [tvm.nd.array(value) for value in params["main"]]
out = machine["main"](data, *values)
out = out if hasattr(out, "numpy") else out[0]
np.testing.assert_allclose(out.numpy(), net(example).detach().numpy(), rtol=1e-4, atol=1e-5)

from tvm import dlight as dl

with tvm.target.Target("cuda"):
    dl.ApplyDefaultSchedule(dl.gpu.Matmul(), dl.gpu.Fallback())(legal)
