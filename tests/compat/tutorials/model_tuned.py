"""A network of PyTorch, tuned whole for this machine; then for a GPU."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).eval()
example = (torch.randn(1, 3, 8, 8),)
with torch.no_grad():
    mod = from_exported_program(torch.export.export(net, example), keep_params_as_input=True)
mod, params = relax.frontend.detach_params(mod)


def compiled(target, trials):
    target = tvm.target.Target(target)
    tuning = relax.get_pipeline("static_shape_tuning", target=target, total_trials=trials)
    return tvm.compile(tuning(mod), target=target)


machine = relax.VirtualMachine(compiled("llvm -num-cores=1", 2), tvm.cpu())
values = [tvm.nd.array(value) for value in params["main"]]
out = machine["main"](tvm.nd.array(example[0].numpy()), *values)
out = out if hasattr(out, "numpy") else out[0]
np.testing.assert_allclose(out.numpy(), net(*example).detach().numpy(), rtol=1e-3, atol=1e-4)
compiled("nvidia/geforce-rtx-3090-ti", 2)
