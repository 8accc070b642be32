"""Analyses: variables, bindings, purity, recursion, unused bindings, reshapes."""

import pytest

from weft import relax, te, tir, topi
from weft.ir.op import Op
from weft.relax import analysis, op
from weft.relax.struct_info import FuncStructInfo, TensorStructInfo, TupleStructInfo
from weft.tir.expr import Var as TirVar

INFO = TensorStructInfo((2, 3), "float32")


@pytest.fixture
def func(build):
    return build(lambda x, y: op.add(op.multiply(x, y), y), INFO, INFO)["main"]


def named(variables):
    return [var.name_hint for var in variables]


def test_variables(func):
    assert named(analysis.all_vars(func)) == ["x0", "x1", "lv", "gv"]
    assert named(analysis.bound_vars(func)) == ["x0", "x1", "lv", "gv"]
    assert named(analysis.free_vars(func)) == []
    assert named(analysis.free_vars(func.body)) == ["x0", "x1"]


def test_global_variables():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("f", [x]):
        f = bb.emit_func_output(bb.emit(op.exp(x)))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.exp, bb.emit(f(x))))
    main = bb.get()["main"]
    assert named(analysis.all_global_vars(main)) == ["f", "exp"]
    assert named(analysis.called_global_vars(main)) == ["f"]


def test_symbolic_variables(build):
    n, m = TirVar("n", "int64"), TirVar("m", "int64")
    func = build(lambda x: op.exp(x), TensorStructInfo((n, 4)))["main"]
    assert list(analysis.defined_symbolic_vars(func)) == [n]
    assert list(analysis.free_symbolic_vars(func)) == []
    assert list(analysis.free_symbolic_vars(TensorStructInfo((n, m + 1)))) == [m]
    assert list(analysis.defined_symbolic_vars(TensorStructInfo((n, m + 1)))) == [n]


def test_bindings(func):
    values = analysis.get_var2val(func)
    assert [values[var].op.name for var in values] == ["relax.multiply", "relax.add"]
    assert list(analysis.name_to_binding(func)) == ["lv", "gv"]
    users = analysis.udchain(func.body.blocks[0])
    assert {var.name_hint: named(users[var]) for var in users} == {
        "lv": ["gv"], "x0": ["lv"], "x1": ["lv", "gv"], "gv": [],
    }  # fmt: skip


def test_unused_bindings_go_with_what_only_they_use():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            bb.emit(op.exp(bb.emit(op.exp(x))))
            bb.emit_output(op.sqrt(x))
            gv = bb.emit_output(op.nn.relu(x))
        bb.emit(op.exp(gv))
        bb.emit_func_output(gv)
    func = analysis.remove_all_unused(bb.get()["main"])
    assert [named([b.var for b in block.bindings]) for block in func.body.blocks] == [["gv1"]]
    assert analysis.remove_all_unused(func) is func


def test_effects_stay_outside_of_dataflow_blocks():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("main", [x], pure=False):
        bb.emit(op.print(x, format="{}"))
        bb.emit(op.call_packed("env.f", x, sinfo_args=INFO))
        bb.emit(op.call_pure_packed("env.f", x, sinfo_args=INFO))
        bb.emit_func_output(x)
    func = analysis.remove_all_unused(bb.get()["main"])
    assert len(func.body.blocks[0].bindings) == 2


def test_match_cast_that_defines_a_symbol_stays():
    n = TirVar("n", "int64")
    u = relax.Var("u", TensorStructInfo(None, "float32", ndim=1))
    bb = relax.BlockBuilder()
    with bb.function("main", [u]):
        with bb.dataflow():
            bb.match_cast(u, TensorStructInfo((n,), "float32"))
            gv = bb.emit_output(op.exp(u))
        bb.emit_func_output(gv)
    assert len(analysis.remove_all_unused(bb.get()["main"]).body.blocks[0].bindings) == 2


def test_impure_calls(func):
    x = func.params[0]
    assert not analysis.contains_impure_call(func)
    assert analysis.contains_impure_call(op.print(x, format=""))
    assert analysis.contains_impure_call(op.call_packed("env.f", x, sinfo_args=INFO))
    assert not analysis.contains_impure_call(op.call_pure_packed("env.f", x, sinfo_args=INFO))
    pure = relax.Var("f", FuncStructInfo([INFO], INFO))
    assert not analysis.contains_impure_call(relax.Call(pure, [x]))


def test_recursion():
    x = relax.Var("x", INFO)
    f, g, h = (relax.GlobalVar(name) for name in "fgh")

    def calls(callee):
        return relax.Function([x], relax.Call(callee, [x]), INFO)

    mod = relax.analysis.well_formed.__globals__["IRModule"](
        {f: calls(g), g: calls(f), h: calls(h)}
    )
    assert [named(group) for group in analysis.detect_recursion(mod)] == [["f", "g"], ["h"]]


def test_compile_time_values(build):
    mod = build(lambda x, w: op.add(x, op.exp(w)), INFO, INFO)
    func = mod["main"].with_attr("num_input", 1)
    assert named(analysis.computable_at_compile_time(func)) == ["lv"]
    assert len(analysis.computable_at_compile_time(mod["main"])) == 0


@pytest.mark.parametrize(
    ("te_func", "expected"),
    [
        (lambda a: topi.reshape(a, (3, 4)), True),
        (lambda a: topi.transpose(a), False),
        (topi.exp, False),
        (lambda a: te.compute((6, 2), lambda i, j: a[i // 3, i % 3 * 2 + j], name="r"), True),
    ],
)
def test_reshape_pattern(te_func, expected):
    a = te.placeholder((2, 6), name="a")
    assert analysis.has_reshape_pattern(te.create_prim_func([a, te_func(a)])) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (lambda b, t: (b, t // 441 + 1, 1, 80), lambda b, t: (b, t // 441 * 80 + 80), True),
        (lambda b, t: (b, t // 4 + 1, 8), lambda b, t: (b * (t // 4) + b, 8), True),
        (lambda b, t: (b, t), lambda b, t: (t, b), True),
        (lambda b, t: (b, t // 2 * 80 + 80), lambda b, t: (b, t // 2 + 1, 80), True),
    ],
)
def test_reshape_pattern_of_any_size(before, after, expected):
    symbols = [tir.SizeVar(name, "int64") for name in "bt"]
    a = te.placeholder(before(*symbols), name="a")
    func = te.create_prim_func([a, topi.reshape(a, after(*symbols))])
    assert analysis.has_reshape_pattern(func) is expected
    mixed = te.compute(
        after(*symbols), lambda *indices: topi.reshape(a, after(*symbols))[indices] + 1.0
    )
    assert not analysis.has_reshape_pattern(te.create_prim_func([a, mixed]))


def test_a_transpose_of_any_size_is_no_reshape():
    b, t = [tir.SizeVar(name, "int64") for name in "bt"]
    a = te.placeholder((b, t // 4 + 1, 8), name="a")
    func = te.create_prim_func([a, topi.transpose(a, (1, 0, 2))])
    assert not analysis.has_reshape_pattern(func)


def test_struct_info_of_a_tuple():
    pair = relax.Tuple([relax.Var("x", INFO), relax.Var("y", INFO)])
    assert analysis.get_static_type(pair.struct_info) == TupleStructInfo(
        [TensorStructInfo(None, "float32", ndim=2)] * 2
    )


def test_post_order(func):
    seen = []
    analysis.post_order_visit(func, lambda e: seen.append(type(e).__name__))
    assert seen[-1] == "Function"
    assert seen.count("Call") == 2
    assert Op.get("relax.add") is not None
