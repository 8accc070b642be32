"""TensorIR written in three ways: with all details, without them, and as tensor expressions."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm import te, topi
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Detailed:
    @T.prim_func
    def scale(x: T.handle, y: T.handle):
        T.func_attr({"global_symbol": "scale", "tir.noalias": T.bool(True)})
        rows = T.int32()
        X = T.match_buffer(x, (rows, 6), "float32")
        Y = T.match_buffer(y, (rows, 6), "float32")
        doubled = T.alloc_buffer((rows, 6), "float32")
        for i, j in T.grid(rows, 6):
            with T.block("doubled"):
                vi = T.axis.spatial(rows, i)
                vj = T.axis.spatial(6, j)
                doubled[vi, vj] = X[vi, vj] * T.float32(2)
        for i, j in T.grid(rows, 6):
            with T.block("clipped"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.min(doubled[vi, vj], T.float32(1))


rows = te.var("rows", "int32")
x = te.placeholder((rows, 6), name="x")
doubled = te.compute((rows, 6), lambda i, j: x[i, j] * 2.0, name="doubled")
short = te.create_prim_func([x, topi.minimum(doubled, tvm.tir.const(1, "float32"))])
short = short.with_attr("global_symbol", "scale")
given = np.random.default_rng(0).random((5, 6), dtype="float32")
wanted = np.minimum(given * 2, 1)
for module, name in ((Detailed, "scale"), (tvm.IRModule({"scale": short}), "scale")):
    out = tvm.nd.array(np.zeros_like(given))
    tvm.compile(module, target="llvm")[name](tvm.nd.array(given), out)
    np.testing.assert_allclose(out.numpy(), wanted)
Detailed.show()
