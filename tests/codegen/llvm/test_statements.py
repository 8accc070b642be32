"""Statements in native code: control flow, memory, faults, parallel loops, calls."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft.codegen.llvm.emit import lower_to_llvm
from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.runtime.faults import AllocationFault, DivisionFault, IndexFault
from weft.script import tir as T
from weft.support.errors import CodegenError, RuntimeFault, TVMError
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc


def run(func, *arrays, target=None, checks=True):
    """Build, call with numpy arrays copied in, and return them copied out."""
    built = weft.build(func, target, checks=checks)
    given = [weft.nd.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
    built["main"](*given)
    return [a.numpy() if hasattr(a, "numpy") else a for a in given]


def source(func, fmt="ll", **options):
    return weft.build(func, **options).get_source(fmt)


def test_while_break_and_let():
    @T.prim_func
    def main(x: T.Buffer((8,), "int32"), out: T.Buffer((1,), "int32")):
        i = T.alloc_buffer((1,), "int32")
        i[0] = 0
        out[0] = 0
        while i[0] < 8 and x[i[0]] != -1:
            with T.LetStmt(x[i[0]] * 2) as twice:
                out[0] = out[0] + twice
            i[0] = i[0] + 1

    x = np.array([1, 2, 3, -1, 5, 6, 7, 8], "int32")
    assert run(main, x, np.zeros(1, "int32"))[1][0] == 12
    assert run(main, np.arange(8, dtype="int32"), np.zeros(1, "int32"))[1][0] == 56


def test_right_sides_are_evaluated_only_where_needed():
    @T.prim_func
    def main(x: T.Buffer((4,), "int32"), out: T.Buffer((4,), "int32")):
        for i in range(4):
            if i > 0 and x[i - 1] > 0:
                out[i] = T.if_then_else(x[i] != 0, 100 // x[i], -1)
            else:
                out[i] = T.Select(x[i] != 0, 100 // x[i], -2)

    out = run(main, np.array([5, 0, 2, 0], "int32"), np.zeros(4, "int32"))[1]
    assert list(out) == [20, -1, 50, -1]


def test_symbolic_shapes_strides_and_scalars():
    @T.prim_func
    def main(a: T.handle, b: T.handle, scale: T.float32):
        n, m, stride = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), strides=(stride, 1))
        B = T.match_buffer(b, (m, n))
        for i, j in T.grid(n, m):
            B[j, i] = A[i, j] * scale

    x = np.random.default_rng(0).normal(size=(5, 9)).astype("f4")
    built = weft.build(main)
    out = weft.nd.empty((7, 5), "float32")
    built["main"](weft.nd.from_dlpack(x[:, 1:8]), out, 2.5)
    np.testing.assert_array_equal(out.numpy(), (x[:, 1:8] * np.float32(2.5)).T)
    assert "weft_raise" in built.get_source("ll")
    body = built.get_source("ll").split("loop")[1:]
    assert not any("weft_raise" in part for part in body[:-1]), "affine accesses are proved"


def test_loops_of_no_trips_do_nothing():
    @T.prim_func
    def main(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = 1.0
        for i in range(n // 4):
            A[i * 4 + 3] = 2.0

    assert run(main, np.zeros(0, "f4"))[0].size == 0
    assert list(run(main, np.zeros(6, "f4"))[0]) == [1, 1, 1, 2, 1, 1]


def test_large_allocations_are_freed_on_every_exit():
    @T.prim_func
    def main(x: T.Buffer((64,), "float32"), n: T.int64):
        A = T.alloc_buffer((100000,), "float32")
        B = T.alloc_buffer((n,), "float32")
        for i in range(100000):
            A[i] = x[i % 64]
        for i in range(n):
            B[i] = A[i] * 2.0
        assert A[1] >= 0.0, "negative"
        x[0] = B[n - 1]

    text = source(main)
    assert text.count("call noalias ptr @aligned_alloc") == 2
    assert text.count("call void @free") >= 4
    built = weft.build(main)
    x = weft.nd.array(np.ones(64, "f4"))
    for _ in range(200):
        built["main"](x, 64)
    bad = weft.nd.array(-np.ones(64, "f4"))
    for _ in range(2000):
        with pytest.raises(RuntimeFault, match="main: negative"):
            built["main"](bad, 64)
    with pytest.raises(AllocationFault, match="main: cannot allocate"):
        built["main"](x, 2**62)
    with pytest.raises(IndexFault, match="index -1 is out of bounds for buffer B of extent 0"):
        built["main"](x, 0)


def test_stack_arrays_indexed_by_constants_become_registers():
    @T.prim_func
    def main(
        A: T.Buffer((64, 6), "float32"),
        B: T.Buffer((64, 16), "float32"),
        C: T.Buffer((6, 16), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        acc = T.alloc_buffer((6, 16), "float32")
        for m in T.unroll(6):
            for n in T.vectorized(16):
                acc[m, n] = T.float32(0)
        for k in range(64):
            for m in T.unroll(6):
                for n in T.vectorized(16):
                    acc[m, n] = acc[m, n] + A[k, m] * B[k, n]
        for m in T.unroll(6):
            for n in T.vectorized(16):
                C[m, n] = acc[m, n]

    assembly = source(main, "s", target="llvm -mcpu=x86-64-v4")
    assert "rsp" not in assembly
    fused = assembly.count("vfmadd231ps")
    assert fused in (6, 12, 24, 48)


def test_lanes_with_a_test_each_are_not_unrolled():
    """The tail of a tile of unknown length: unrolled by LLVM, it took minutes to compile."""

    @T.prim_func
    def main(a: T.handle, w: T.Buffer((8, 8, 3), "float32"), c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (8, n + 16), "float32")
        C = T.match_buffer(c, (8, n), "float32")
        for block in range((n + 47) // 48):
            acc = T.alloc_buffer((8, 48), "float32")
            for m in T.unroll(8):
                for lane in T.vectorized(48):
                    if block * 48 + lane < n:
                        acc[m, lane] = T.float32(0)
            for k, r in T.grid(8, 3):
                for m in T.unroll(8):
                    for lane in T.vectorized(48):
                        if block * 48 + lane < n:
                            acc[m, lane] = (
                                acc[m, lane] + A[k, block * 48 + lane + r * 8] * w[m, k, r]
                            )
            for m in T.unroll(8):
                for lane in T.vectorized(48):
                    if block * 48 + lane < n:
                        C[m, block * 48 + lane] = acc[m, lane]

    assert "llvm.loop.unroll.disable" in source(main, "ll")
    rng = np.random.default_rng(0)
    built = weft.build(main)
    for n in (1, 47, 48, 101):
        data = rng.standard_normal((8, n + 16), np.float32)
        weights = rng.standard_normal((8, 8, 3), np.float32)
        result = weft.nd.empty((8, n))
        built["main"](weft.nd.array(data), weft.nd.array(weights), result)
        windows = np.stack([data[:, r * 8 : r * 8 + n] for r in range(3)], -1)
        wanted = np.einsum("mkr,knr->mn", weights.astype("f8"), windows.astype("f8"))
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_a_tile_is_no_heap_memory_beside_a_buffer_that_fills_the_stack():
    @T.prim_func
    def main(x: T.Buffer((4000,), "float32"), y: T.Buffer((4000,), "float32")):
        band = T.alloc_buffer((4000,), "float32")
        for i in range(4000):
            band[i] = x[i]
        for i in range(250):
            tile = T.alloc_buffer((16, 16), "float32")
            for j in T.vectorized(16):
                tile[0, j] = band[i * 16 + j]
            for j in T.vectorized(16):
                y[i * 16 + j] = tile[0, j] + band[j]

    assert "aligned_alloc" not in source(main)


@pytest.mark.parametrize("index", [-1, 8, 2**31 - 1, -(2**31)])
def test_indices_from_data_are_checked(index):
    @T.prim_func
    def main(
        x: T.Buffer((8,), "float32"), at: T.Buffer((3,), "int32"), out: T.Buffer((3,), "float32")
    ):
        for i in range(3):
            out[i] = x[at[i]]

    x = np.arange(8, dtype="f4")
    good = run(main, x, np.array([7, 0, 3], "int32"), np.zeros(3, "f4"))[2]
    assert list(good) == [7, 0, 3]
    with pytest.raises(
        IndexFault, match=rf"main: index {index} is out of bounds for buffer x of extent 8"
    ):
        run(main, x, np.array([7, index, 3], "int32"), np.zeros(3, "f4"))


def test_vector_gathers_are_checked():
    x, at = decl_buffer((8,), "float32", "x"), decl_buffer((4,), "int32", "at")
    out = decl_buffer((4,), "float32", "out")
    lane = e.Ramp(IntImm("int32", 0), IntImm("int32", 1), IntImm("int32", 4))
    func = PrimFunc(
        [x, at, out], s.BufferStore(out, x[at[lane]], [lane]), attrs={"global_symbol": "main"}
    )
    data = np.arange(8, dtype="f4")
    assert list(run(func, data, np.array([7, 7, 0, 2], "int32"), np.zeros(4, "f4"))[2]) == [
        7,
        7,
        0,
        2,
    ]
    with pytest.raises(IndexFault, match="index 9 is out of bounds for buffer x of extent 8"):
        run(func, data, np.array([7, 9, 0, 2], "int32"), np.zeros(4, "f4"))


def test_conditions_prove_accesses():
    @T.prim_func
    def main(x: T.Buffer((100, 3), "float32"), y: T.Buffer((100, 3), "float32"), n: T.int32):
        for io, ii, j in T.grid(7, 16, 3):
            if io * 16 + ii < 100:
                y[io * 16 + ii, j] = T.if_then_else(io * 16 + ii >= 1, x[io * 16 + ii - 1, j], 0.0)
        for k in range(300):
            if k // 3 < 50 and k % 3 == 1:
                y[k // 3 * 2, k % 3] = 7.0
        if 0 <= n and n < 100:
            y[n, 0] = 5.0

    assert "weft_raise" not in source(main)
    x = np.random.default_rng(1).normal(size=(100, 3)).astype("f4")
    got = run(main, x, np.zeros((100, 3), "f4"), 42)[1]
    want = np.concatenate([np.zeros((1, 3), "f4"), x[:-1]])
    want[0::2, 1] = 7
    want[42, 0] = 5
    np.testing.assert_array_equal(got, want)


def test_unproved_affine_accesses_are_checked_and_the_checks_can_be_off():
    @T.prim_func
    def main(x: T.Buffer((16,), "float32"), n: T.int32):
        for i in range(n):
            x[i] = 1.0

    assert list(run(main, np.zeros(16, "f4"), 16)[0]) == [1] * 16
    with pytest.raises(IndexFault, match="index 16 is out of bounds for buffer x of extent 16"):
        run(main, np.zeros(16, "f4"), 17)
    assert "weft_raise" not in source(main, checks=False)


def test_a_certain_violation_is_refused_with_the_numbers():
    x = decl_buffer((4,), "float32", "x")
    func = PrimFunc([x], s.BufferStore(x, x[3] + 1.0, [4]), attrs={"global_symbol": "main"})
    with pytest.raises(
        IndexError, match="index 4 is out of bounds for buffer x, whose axis 0 has extent 4"
    ):
        run(func, np.zeros(4, "f4"))


def test_assume_is_believed():
    x, n, i = decl_buffer((16,), "float32", "x"), e.Var("n", "int32"), e.Var("i", "int32")
    promise = s.Evaluate(e.Call("bool", "tir.assume", [n <= 16]))
    loop = s.For(i, 0, n, s.ForKind.SERIAL, s.BufferStore(x, x[i] + 1.0, [i]))
    for body, checked in ((s.SeqStmt([promise, loop]), False), (loop, True)):
        func = PrimFunc([x, n], body, attrs={"global_symbol": "main"})
        assert ("weft_raise" in lower_to_llvm(IRModule({"main": func}))) is checked


def test_predicates_and_strides_of_vectors():
    x, y = decl_buffer((32,), "float32", "x"), decl_buffer((32,), "float32", "y")
    ramp = e.Ramp(IntImm("int32", 0), IntImm("int32", 1), IntImm("int32", 8))
    every = e.Ramp(IntImm("int32", 1), IntImm("int32", 3), IntImm("int32", 8))
    back = e.Ramp(IntImm("int32", 31), IntImm("int32", -1), IntImm("int32", 8))
    eight = e.Broadcast(IntImm("int32", 8), IntImm("int32", 8))
    mask = e.LT(ramp, e.Broadcast(IntImm("int32", 5), IntImm("int32", 8)))
    tail = e.Ramp(IntImm("int32", 27), IntImm("int32", 1), IntImm("int32", 8))
    body = s.SeqStmt([
        s.BufferStore(y, x[every], [ramp]),
        s.BufferStore(y, x[back], [e.Add(ramp, eight)]),
        s.BufferStore(y, BufferLoad(x, [tail], mask), [tail], mask),
    ])  # fmt: skip
    func = PrimFunc([x, y], body, attrs={"global_symbol": "main"})
    data = np.arange(32, dtype="f4")
    got = run(func, data, np.zeros(32, "f4"))[1]
    want = np.zeros(32, "f4")
    want[:8], want[8:16], want[27:] = data[1:25:3], data[31:23:-1], data[27:]
    np.testing.assert_array_equal(got, want)


def test_shuffles_and_halves():
    x, y = decl_buffer((8,), "int32", "x"), decl_buffer((8,), "int32", "y")
    ramp = e.Ramp(IntImm("int32", 0), IntImm("int32", 1), IntImm("int32", 8))
    low = e.Call("int32x4", "tir.vectorlow", [x[ramp]])
    high = e.Call("int32x4", "tir.vectorhigh", [x[ramp]])
    picked = e.Shuffle([low], [IntImm("int32", n) for n in (3, 2, 1, 0)])
    func = PrimFunc(
        [x, y], s.BufferStore(y, e.Call("int32x8", "tir.vectorcombine", [high, picked]), [ramp]),
        attrs={"global_symbol": "main"},
    )  # fmt: skip
    assert list(run(func, np.arange(8, dtype="i4"), np.zeros(8, "i4"))[1]) == [
        4,
        5,
        6,
        7,
        3,
        2,
        1,
        0,
    ]


def test_return_values():
    @T.prim_func
    def main(x: T.Buffer((8,), "int64"), limit: T.int64) -> T.int64:
        for i in range(8):
            if x[i] > limit:
                T.ret(x[i])
        T.ret(T.int64(-1))

    built = weft.build(main)
    x = weft.nd.array(np.arange(8, dtype="i8"))
    assert built["main"](x, 4) == 5
    assert built["main"](x, 9) == -1


@T.prim_func
def parallel_sum(
    x: T.Buffer((256, 1024), "float32"),
    at: T.Buffer((256,), "int32"),
    out: T.Buffer((256,), "float32"),
):
    T.func_attr({"global_symbol": "main"})
    for i in T.parallel(256):
        acc = T.alloc_buffer((1,), "float32")
        acc[0] = 0.0
        for j in T.parallel(1024):
            acc[0] = acc[0] + x[i, j]
        out[at[i]] = acc[0]


def test_parallel_loops_and_their_faults():
    text = source(parallel_sum)
    assert len(re.findall(r"call i32 @weft_parallel\(", text)) == 1
    x = np.random.default_rng(0).normal(size=(256, 1024)).astype("f4")
    got = run(parallel_sum, x, np.arange(256, dtype="i4")[::-1].copy(), np.zeros(256, "f4"))[2]
    np.testing.assert_allclose(got[::-1], x.sum(1), rtol=1e-3, atol=1e-3)
    at = np.arange(256, dtype="i4")
    at[200] = 999
    for _ in range(20):
        with pytest.raises(IndexFault, match="index 999 is out of bounds"):
            run(parallel_sum, x, at, np.zeros(256, "f4"))


def test_small_parallel_loops_stay_serial():
    @T.prim_func
    def main(x: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            x[i] = x[i] + 1.0

    assert "weft_parallel" not in source(main)


def test_parallel_loops_capture_scalars_symbols_and_memory():
    @T.prim_func
    def main(a: T.handle, scale: T.float64, flag: T.bool):
        n = T.int32()
        A = T.match_buffer(a, (n, 512), "float64")
        B = T.alloc_buffer((n, 512), "float64")
        for i, j in T.grid(n, 512):
            B[i, j] = A[i, j]
        for i in T.parallel(1, n):
            for j in range(512):
                A[i, j] = B[i, j] * scale + T.if_then_else(flag, T.float64(1), T.float64(0))

    x = np.random.default_rng(0).normal(size=(130, 512))
    got = run(main, x.copy(), 3.0, True)[0]
    np.testing.assert_allclose(got[1:], x[1:] * 3 + 1, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got[0], x[0])


def test_packed_calls_take_numbers_text_and_buffers():
    seen = []

    @weft.register_func("test.codegen.note", override=True)
    def note(*args):
        seen.append([a.numpy().copy() if hasattr(a, "numpy") else a for a in args])
        return 7

    @T.prim_func
    def main(x: T.Buffer((2, 3), "float32"), out: T.Buffer((1,), "int32")):
        out[0] = T.call_packed("test.codegen.note", 5, x[1, 2], "text", out[0] > 3)

    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert run(main, x, np.array([9], "i4"))[1][0] == 7
    assert seen == [[5, 5.0, "text", True]]


def test_exceptions_of_callbacks_come_back():
    class Special(Exception):
        pass

    @weft.register_func("test.codegen.fail", override=True)
    def fail(value):
        raise Special(value)

    @T.prim_func
    def main(x: T.Buffer((4,), "float32")):
        A = T.alloc_buffer((100000,), "float32")
        A[3] = x[0]
        T.evaluate(T.call_packed("test.codegen.fail", A[3]))

    with pytest.raises(Special, match=r"2\.5"):
        run(main, np.full(4, 2.5, "f4"))


def test_external_functions_and_llvm_intrinsics():
    @T.prim_func
    def main(x: T.Buffer((4,), "float64")):
        for i in range(4):
            x[i] = T.call_pure_extern("float64", "cbrt", x[i]) + T.call_llvm_pure_intrin(
                "float64", "llvm.fabs", x[i]
            )

    got = run(main, np.array([-8.0, 27, 0, 1]))[0]
    np.testing.assert_allclose(got, [6, 30, 0, 2])


def test_overloaded_intrinsics_with_flags():
    zero = IntImm("int1", 0)  # as TVM's programs write a flag

    @T.prim_func
    def main(x: T.Buffer((4,), "int32")):
        for i in range(4):
            x[i] = T.call_llvm_pure_intrin(
                "int32", "llvm.ctlz", T.uint32(2), x[i], zero
            ) + 100 * T.call_llvm_pure_intrin(
                "int32", "llvm.cttz", T.uint32(2), x[i], T.bool(False)
            )

    assert list(run(main, np.array([1, 8, 0, -1], "i4"))[0]) == [31, 328, 3232, 0]


def test_functions_call_each_other():
    x = decl_buffer((4,), "int32", "x")
    var = e.Var("v", "int32")
    helper = PrimFunc([x, var], s.BufferStore(x, x[1] + var, [1]), attrs={"global_symbol": "bump"})
    y = decl_buffer((4,), "int32", "y")
    mod = IRModule({"bump": helper})
    call = e.Call("int32", mod.get_global_var("bump"), [y.data, IntImm("int32", 5)])
    mod["main"] = PrimFunc(
        [y], s.SeqStmt([s.Evaluate(call), s.Evaluate(call)]), attrs={"global_symbol": "main"}
    )
    assert list(run(mod, np.zeros(4, "i4"))[0]) == [0, 10, 0, 0]


def test_calls_that_run_once_are_not_inlined():
    x = decl_buffer((64,), "float32", "x")
    i, j = e.Var("i", "int32"), e.Var("j", "int32")
    body = s.For(i, 0, 64, s.ForKind.SERIAL, s.BufferStore(x, x[i] * x[i], [i]))
    mod = IRModule({"square": PrimFunc([x], body, attrs={"global_symbol": "square"})})
    for name in ("once", "often"):
        y = decl_buffer((64,), "float32", "y")
        body = s.Evaluate(e.Call("int32", mod.get_global_var("square"), [y.data]))
        if name == "often":
            body = s.For(j, 0, 3, s.ForKind.SERIAL, body)
        mod[name] = PrimFunc([y], body, attrs={"global_symbol": name})
    text = weft.build(mod).get_source("opt")
    once, often = (
        re.split(rf"@\S*{name}\(", text)[1].split("\n}")[0] for name in ("once", "often")
    )
    assert "square(" in once
    assert "square(" not in often


def test_names_of_the_c_library_do_no_harm():
    @T.prim_func
    def main(x: T.Buffer((4,), "float64")):
        for i in range(4):
            x[i] = T.exp(x[i])

    for name in ("exp", "free", "memset", "weft_raise", "ä ö"):
        built = weft.build(IRModule({name: main.with_attr("global_symbol", name)}))
        x = weft.nd.array(np.zeros(4))
        built[name](x)
        assert list(x.numpy()) == [1, 1, 1, 1]


def test_division_faults_inside_branches_and_vectors():
    @T.prim_func
    def main(x: T.Buffer((8,), "int32"), out: T.Buffer((8,), "int32")):
        for i in range(8):
            out[i] = 8 % x[i]

    with pytest.raises(DivisionFault, match="main: integer division by zero"):
        run(main, np.array([1, 2, 3, 0, 5, 6, 7, 8], "i4"), np.zeros(8, "i4"))


def test_what_has_no_code_is_refused():
    @T.prim_func
    def scalable(x: T.Buffer((4,), "float32")):
        x[0] = T.Cast("float32", T.vscale())

    with pytest.raises(TVMError, match=r"T.vscale\(\) needs scalable vectors"):
        run(scalable, np.zeros(4, "f4"))

    @T.prim_func
    def bound(x: T.Buffer((4,), "float32")):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            x[i] = 1.0

    with pytest.raises(CodegenError, match="target kind 'cuda' is not available"):
        run(bound, np.zeros(4, "f4"), target="cuda")


def test_deep_expressions():
    x = decl_buffer((1,), "float32", "x")
    value = x[0]
    for _ in range(5000):
        value = value + 1.0
    func = PrimFunc([x], s.BufferStore(x, value, [0]), attrs={"global_symbol": "main"})
    assert run(func, np.zeros(1, "f4"))[0][0] == 5000
