"""A function compiled into a file, loaded and run here; then on another machine."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import te
from tvm.contrib import utils

n = tvm.runtime.convert(256)
x = te.placeholder((n,), name="x")
y = te.compute((n,), lambda i: x[i] * 3.0, name="y")
function = te.create_prim_func([x, y]).with_attr("global_symbol", "triple")
library = tvm.compile(tvm.IRModule.from_expr(function), target="llvm")
folder = utils.tempdir()
path = folder.relpath("triple.so")
library.export_library(path)
loaded = tvm.runtime.load_module(path)
given = np.arange(256, dtype="float32")
out = tvm.nd.array(np.zeros(256, "float32"), tvm.cpu())
loaded["triple"](tvm.nd.array(given, tvm.cpu()), out)
np.testing.assert_equal(out.numpy(), given * 3)
timer = loaded.time_evaluator("triple", tvm.cpu(), number=2)
assert timer(tvm.nd.array(given), out).mean > 0

from tvm import rpc

rpc.LocalSession()
