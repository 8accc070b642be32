# Exercise 1 of the Machine Learning Compilation course (mlc.ai) asks for three TensorIR functions:
# an element-wise sum, a sum with broadcasting, and a convolution. These solutions are ours.

# %%
from __future__ import annotations
import weft

weft.install_as_tvm()
import numpy as np
import tvm
from tvm.ir.module import IRModule
from tvm.script import tir as T

# %%
a = np.arange(16).reshape(4, 4)
b = np.arange(4, 0, -1).reshape(4)

# %%
@tvm.script.ir_module
class MyAdd:
    @T.prim_func
    def add(A: T.Buffer[(4, 4), "int64"],
            B: T.Buffer[(4, 4), "int64"],
            C: T.Buffer[(4, 4), "int64"]):
        T.func_attr({"global_symbol": "add"})
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(4, j)
                C[vi, vj] = A[vi, vj] + B[vi, vj]


rt_lib = tvm.build(MyAdd, target="llvm")
a_tvm = tvm.nd.array(a)
b_tvm = tvm.nd.array(a[::-1].copy())
c_tvm = tvm.nd.array(np.empty((4, 4), dtype=np.int64))
rt_lib["add"](a_tvm, b_tvm, c_tvm)
np.testing.assert_allclose(c_tvm.numpy(), a + a[::-1], rtol=1e-5)

# %%
@tvm.script.ir_module
class MyAddBroadcast:
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        T.func_attr({"global_symbol": "add", "tir.noalias": True})
        A = T.match_buffer(a, (4, 4), dtype="int64")
        B = T.match_buffer(b, (4,), dtype="int64")
        C = T.match_buffer(c, (4, 4), dtype="int64")
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]


assert isinstance(MyAddBroadcast, IRModule)
rt_lib = tvm.build(MyAddBroadcast, target="llvm")
c_tvm = tvm.nd.array(np.empty((4, 4), dtype=np.int64))
rt_lib["add"](a_tvm, tvm.nd.array(b), c_tvm)
np.testing.assert_allclose(c_tvm.numpy(), a + b, rtol=1e-5)

# %%
N, CI, H, W, CO, K = 1, 1, 8, 8, 2, 3
OUT_H, OUT_W = H - K + 1, W - K + 1
data = np.arange(N * CI * H * W).reshape(N, CI, H, W)
weight = np.arange(CO * CI * K * K).reshape(CO, CI, K, K)

# %%
@tvm.script.ir_module
class MyConv:
    @T.prim_func
    def conv(X: T.Buffer[(N, CI, H, W), "int64"],
             F: T.Buffer[(CO, CI, K, K), "int64"],
             Y: T.Buffer[(N, CO, OUT_H, OUT_W), "int64"]):
        T.func_attr({"global_symbol": "conv", "tir.noalias": True})
        for n, co, h, w, ci, kh, kw in T.grid(N, CO, OUT_H, OUT_W, CI, K, K):
            with T.block("Y"):
                vn, vco, vh, vw, vci, vkh, vkw = T.axis.remap("SSSSRRR", [n, co, h, w, ci, kh, kw])
                with T.init():
                    Y[vn, vco, vh, vw] = T.int64(0)
                Y[vn, vco, vh, vw] = Y[vn, vco, vh, vw] + X[vn, vci, vh + vkh, vw + vkw] * F[vco, vci, vkh, vkw]


rt_lib = tvm.build(MyConv, target="llvm")
y_tvm = tvm.nd.array(np.empty((N, CO, OUT_H, OUT_W), dtype=np.int64))
rt_lib["conv"](tvm.nd.array(data), tvm.nd.array(weight), y_tvm)

# %%
windows = np.lib.stride_tricks.sliding_window_view(data, (K, K), axis=(2, 3))
np.testing.assert_allclose(y_tvm.numpy(), np.einsum("nchwij,ocij->nohw", windows, weight), rtol=1e-5)

# %%
f_timer = rt_lib.time_evaluator("conv", tvm.cpu(), number=3)
print("conv: %g ms" % (f_timer(tvm.nd.array(data), tvm.nd.array(weight), y_tvm).mean * 1000))
