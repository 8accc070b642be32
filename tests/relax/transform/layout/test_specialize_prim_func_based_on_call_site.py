"""SpecializePrimFuncBasedOnCallSite: extents and memory of callers in kernels."""

import numpy as np

from weft import relax
from weft.ir.global_info import VDevice
from weft.relax.analysis import well_formed
from weft.relax.reference import run
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform import SpecializePrimFuncBasedOnCallSite
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

X = np.arange(6, dtype="float32").reshape(2, 3)


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        cls = Module
        y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((2, 3), "float32"))
        z = R.call_tir(cls.doubled, (y,), out_sinfo=R.Tensor((2, 3), "float32"))
        return z

    @T.prim_func(private=True)
    def doubled(a: T.handle, b: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (n, m))
        for i, j in T.grid(n, m):
            with T.block("doubled"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vi, vj]


def test_a_private_kernel_is_replaced(check):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((2, 3), "float32"))
            z = R.call_tir(cls.doubled, (y,), out_sinfo=R.Tensor((2, 3), "float32"))
            return z

        @T.prim_func(private=True)
        def doubled(A: T.Buffer((T.int64(2), T.int64(3))), B: T.Buffer((T.int64(2), T.int64(3)))):
            for i, j in T.grid(T.int64(2), T.int64(3)):
                with T.block("doubled"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + A[vi, vj]

    made = check(SpecializePrimFuncBasedOnCallSite(), Module, Expected, X)
    check(SpecializePrimFuncBasedOnCallSite(), made, made)


def test_callers_that_differ_have_versions_and_symbols_stay_symbols():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((2, 3), "float32"))
            return y

        @R.function
        def rows(x: R.Tensor(("k", 3), "float32")):
            k = T.int64()
            cls = Before
            y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((k, 3), "float32"))
            return y

        @T.prim_func(private=True)
        def doubled(a: T.handle, b: T.handle):
            n, m = T.int64(), T.int64()
            A = T.match_buffer(a, (n, m))
            B = T.match_buffer(b, (n, m))
            for i, j in T.grid(n, m):
                with T.block("doubled"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + A[vi, vj]

    made = SpecializePrimFuncBasedOnCallSite()(Before)
    assert well_formed(made)
    names = [gvar.name_hint for gvar in made.get_global_vars()]
    assert names == ["main", "rows", "doubled", "doubled1", "doubled2"]
    first, second = (made[name].buffer_map[made[name].params[0]] for name in names[3:])
    assert [str(dim) for dim in first.shape] == ["T.int64(2)", "T.int64(3)"]
    assert [str(dim) for dim in second.shape] == ["n", "T.int64(3)"]
    for name in ("main", "rows"):
        np.testing.assert_array_equal(run(made, name, X), 2 * X)


def test_buffers_move_to_the_memory_of_their_device():
    texture = VDevice("llvm", 0, "global.texture")
    info = TensorStructInfo((2, 3), "float32", texture)
    call = Module["main"].body.blocks[0].bindings[0].value
    assert call.sinfo_args[0] == TensorStructInfo((2, 3), "float32")
    moved = Module.clone()
    moved["main"] = _with_result(Module["main"], info)
    made = SpecializePrimFuncBasedOnCallSite()(moved)
    scopes = {
        tuple(func.buffer_map[param].scope() for param in func.params)
        for gvar, func in made.functions.items()
        if gvar.name_hint.startswith("doubled") and gvar.name_hint != "doubled"
    }
    assert scopes == {("global", "global.texture"), ("global.texture", "global")}


def _with_result(func, info):
    """The function with another struct info of its first binding."""
    first, second = func.body.blocks[0].bindings
    call = relax.Call(first.value.op, first.value.args, first.value.attrs, [info])
    var = relax.Var("y", info)
    again = relax.op.call_tir(second.value.args[0], (var,), second.value.sinfo_args[0])
    bb = relax.BlockBuilder()
    last = relax.Var("z", second.var.struct_info)
    bindings = [
        relax.VarBinding(var, bb.normalize(call)),
        relax.VarBinding(last, bb.normalize(again)),
    ]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], last)
    return relax.Function(func.params, body, last.struct_info, attrs=func.attrs)
