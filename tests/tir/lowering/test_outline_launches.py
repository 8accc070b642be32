"""OutlineLaunches: what becomes a function, what it is given, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.script import from_source
from weft.script import tir as T
from weft.support.errors import UnsupportedError
from weft.tir import expr as e
from weft.tir import interp
from weft.tir import stmt as s
from weft.tir.expr import is_call
from weft.tir.lowering.insert_checks import InsertChecks
from weft.tir.lowering.outline_launches import LAUNCHED, RANGES, OutlineLaunches


def always(loop):
    return "parallel"


def outlined(*functions, service=always):
    module = IRModule({func.attrs["global_symbol"]: func for func in functions})
    return OutlineLaunches(service)(module)


def launches_of(func):
    return [call for call in collect(func.body, e.Call) if is_call(call, "launch")]


@T.prim_func
def scaled(p: T.handle, factor: T.float32, q: T.handle):
    T.func_attr({"global_symbol": "scaled", "tir.noalias": True})
    n = T.int64()
    a = T.match_buffer(p, (n, 8), "float32")
    b = T.match_buffer(q, (n, 8), "float32")
    for i in T.parallel(n):
        for j in range(8):
            b[i, j] = a[i, j] * factor


def test_a_loop_becomes_a_launch_of_what_it_uses():
    module = outlined(scaled)
    part, func = module["weft.parallel.scaled.0"], module["scaled"]
    (launch,) = launches_of(func)
    assert not collect(func.body, s.For)
    name, service, low, extent, *captured = launch.args
    assert (name.value, service.value) == ("weft.parallel.scaled.0", "parallel")
    n = func.buffer_map[func.params[0]].shape[0]
    assert low == 0
    assert extent is n
    names = [var.name for var in captured]
    assert sorted(names) == sorted(["a", "b", "factor", "n"])
    assert [param.name for param in part.params] == [*names, "begin", "end"]
    assert part.attrs[LAUNCHED] == "scaled"
    assert part.attrs["tir.noalias"] == 1
    loop = part.body
    assert (loop.min.name, str(loop.extent)) == ("begin", "end - begin")


def test_memory_of_one_size_is_allocated_once():
    """What an iteration allocates, and the test of its size, stand around the loop; memory whose
    size differs from iteration to iteration stays where it is.
    """

    @T.prim_func
    def main(p: T.handle, q: T.handle):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, t), "int32")
        b = T.match_buffer(q, (n, t), "int32")
        for i in T.parallel(n):
            with T.LetStmt(i + 1) as next_row:
                row = T.decl_buffer((t,), "int32")
                short = T.decl_buffer((next_row,), "int32")
                for j in range(t):
                    row[j] = a[i, j] * 2
                for j in range(next_row):
                    short[j] = T.Cast("int32", j)
                for j in range(t):
                    b[i, j] = row[t - 1 - j] + short[T.min(j, i)]

    lowered = InsertChecks()(weft.IRModule({"main": main}))
    part = OutlineLaunches(always)(lowered)["weft.parallel.main.0"]
    check, outside = s.stmt_list(part.body)
    assert is_call(check.value, "checked")
    assert outside.buffer_var.name == "row"
    [loop] = [loop for loop in collect(part.body, s.For) if loop.loop_var.name == "i"]
    assert [inside.buffer_var.name for inside in collect(loop, s.Allocate)] == ["short"]
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    rows, columns = np.indices((3, 4))
    result = weft.nd.array(np.zeros_like(array))
    weft.build(weft.IRModule({"main": main}), "llvm")["main"](weft.nd.array(array), result)
    np.testing.assert_array_equal(result.numpy(), array[:, ::-1] * 2 + np.minimum(columns, rows))


def test_what_was_known_of_values_is_known_in_the_function():
    @T.prim_func
    def main(a: T.Buffer((64, 8), "int32"), n: T.int32):
        T.func_attr({"global_symbol": "main"})
        for k in range(4):
            with T.LetStmt(n % 5) as m:
                for i in T.parallel(3, 64):
                    a[i, k] = m

    part = outlined(main)["weft.parallel.main.0"]
    pairs = {
        param.name: tuple(int(end) for end in pair)
        for param, pair in zip(part.params, part.attrs[RANGES], strict=True)
    }  # fmt: skip
    assert pairs["k"] == (0, 3)
    assert pairs["m"] == (0, 4)
    assert pairs["begin"] == pairs["end"] == (3, 64)
    assert [int(end) for end in part.body.annotations["weft.range"]] == [3, 63]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_the_interpreter_launches(count):
    a = np.arange(count * 8, dtype="float32").reshape(count, 8)
    b = np.zeros_like(a)
    module = outlined(scaled)
    interp.run(module["scaled"], a, 3.0, b, module=module)
    np.testing.assert_array_equal(b, a * 3)


def test_loops_that_are_not_worth_it_stay():
    module = IRModule({"scaled": scaled})
    assert OutlineLaunches(lambda loop: None)(module) is module


def test_loops_in_a_launched_body_stay_loops():
    @T.prim_func
    def main(a: T.Buffer((8, 8), "float32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(8):
            for j in T.parallel(8):
                a[i, j] = 1.0
        for i in T.parallel(8):
            a[i, 0] = 2.0

    module = outlined(main)
    assert len(launches_of(module["main"])) == 2
    assert not launches_of(module["weft.parallel.main.0"])
    inner = module["weft.parallel.main.0"].body.body
    assert inner.kind is s.ForKind.PARALLEL
    a = np.zeros((8, 8), "float32")
    interp.run(module["main"], a, module=module)
    assert a.tolist() == [[2.0] + [1.0] * 7] * 8


CALLS = """
@I.ir_module
class Module:
    @T.prim_func
    def first(a: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            a[i] = a[i] + T.float32(1)

    @T.prim_func
    def second(a: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            a[i] = a[i] * T.float32(2)

    @T.prim_func
    def main(a: T.Buffer((8,), "float32")):
        Module.first(a)
        Module.second(a)

    @T.prim_func
    def single(a: T.Buffer((8,), "float32")):
        Module.first(a)
"""


def test_a_function_that_launches_twice_leads_a_team():
    module = OutlineLaunches(always)(from_source(CALLS))
    (launch,) = launches_of(module["main"])
    assert launch.args[1].value == "team"
    assert not launches_of(module["single"])
    a = np.zeros(8, "float32")
    interp.run(module["main"], a, module=module)
    assert a.tolist() == [2.0] * 8


def test_memory_with_another_name_is_not_promised_to_be_apart():
    @T.prim_func
    def main(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.parallel(8):
            a[i] = b[i]
        T.evaluate(T.call_extern("int32", "f", T.address_of(a[0])))

    assert outlined(main)["weft.parallel.main.0"].attrs["tir.noalias"] == 0


def test_a_return_in_a_parallel_loop_is_refused():
    @T.prim_func
    def main(a: T.Buffer((8,), "float32")) -> T.int32:
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(8):
            if a[i] > 0.0:
                T.ret(i)
        T.ret(-1)

    with pytest.raises(UnsupportedError, match="main: T.ret inside a parallel loop is not avail"):
        outlined(main)


def test_the_memory_of_a_view_that_is_declared_inside_is_captured():
    @T.prim_func
    def main(a: T.Buffer((8,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(8):
            v = T.decl_buffer((2, 4), "int32", data=a.data)
            v[i // 4, i % 4] = i

    module = outlined(main)
    assert [var.name for var in launches_of(module["main"])[0].args[4:]] == ["a"]
    a = np.zeros(8, "int32")
    interp.run(module["main"], a, module=module)
    assert a.tolist() == list(range(8))


def test_what_an_attribute_is_about_is_not_captured():
    gone = e.Var("gone", "int64")
    store = scaled.body
    func = scaled.with_(body=store.with_(body=s.AttrStmt(gone, "pragma", 1, store.body)))
    (launch,) = launches_of(outlined(func)["scaled"])
    assert not any(var is gone for var in launch.args[4:])


def test_views_vectors_and_memory_of_the_function_are_captured():
    """Native code of a loop that is worth it: scalars of each type, a vector, views, memory."""

    @T.prim_func
    def main(a: T.Buffer((4096, 64), "float32"), n: T.int32, flag: T.bool, x: T.float64):
        T.func_attr({"global_symbol": "main"})
        local = T.alloc_buffer((64,), "float32")
        for j in range(64):
            local[j] = T.Cast("float32", j)
        v = T.Buffer((4096 * 64,), "float32", data=a.data)
        with T.LetStmt(T.Broadcast(T.Cast("float32", n), 16)) as lanes:
            for i in T.parallel(4096):
                for j in range(4):
                    v[i * 64 + j * 16 : i * 64 + j * 16 + 16] = (
                        lanes
                        + local[j * 16 : j * 16 + 16]
                        + T.Broadcast(T.Select(flag, T.Cast("float32", x), T.float32(0)), 16)
                    )

    built = weft.build(main, target="llvm -num-cores=2")
    assert "weft.parallel.main.0" in built.get_source("ll")
    a = np.zeros((4096, 64), "float32")
    built(a, 5, True, 0.5)
    np.testing.assert_array_equal(a, np.tile(np.arange(64, dtype="float32") + 5.5, (4096, 1)))
