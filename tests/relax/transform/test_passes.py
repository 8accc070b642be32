"""The smaller passes: binding, dead code, normal form, purity, canonical bindings, fusion."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np
import pytest

from weft import relax, topi
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import ApplyPassToFunction
from weft.relax import op
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform import (
    AttachGlobalSymbol,
    BindParams,
    BindSymbolicVars,
    CanonicalizeBindings,
    DeadCodeElimination,
    FuseTIR,
    LegalizeOps,
    Normalize,
    RemovePurityChecking,
    ToNonDataflow,
    dataflowblock_pass,
    function_pass,
)
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRValueError, PassError, UnsupportedError
from weft.tir.expr import Var as TirVar

INFO = TensorStructInfo((2, 3), "float32")
DATA = np.arange(6, dtype="float32").reshape(2, 3)


def value_names(func):
    found = []
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            found.append(value.op.name if isinstance(value, relax.Call) else type(value).__name__)
    return found


@pytest.fixture
def mod(build):
    return build(lambda x, y: op.add(op.exp(x), y), INFO, INFO)


def test_bind_params_by_name_and_variable(mod, evaluate):
    for key in ("x1", mod["main"].params[1]):
        made = BindParams("main", {key: DATA})(mod)
        assert [param.name_hint for param in made["main"].params] == ["x0"]
        assert relax.analysis.well_formed(made)
        got = evaluate(LegalizeOps()(made), DATA)
        np.testing.assert_allclose(got, np.exp(DATA) + DATA, rtol=1e-6)
    assert len(mod["main"].params) == 2


def test_bind_params_makes_symbols_known(build):
    n = TirVar("n", "int64")
    infos = [TensorStructInfo((n, 3)), TensorStructInfo((n, 3))]
    mod = BindParams("main", {"x1": DATA})(build(op.add, *infos))
    assert mod["main"].params[0].struct_info == INFO
    assert mod["main"].ret_struct_info == INFO


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"z": DATA}, PassError, "main has no parameter 'z'; its parameters are: x0, x1"),
        ({"x1": DATA[:1]}, IRValueError, "x1: dimension 0: expected 2, got 1"),
        ({"x1": DATA.astype("int32")}, IRValueError, "x1: expected float32, got int32"),
        ({"x1": DATA[0]}, IRValueError, "x1: expected 2 dimensions, got 1"),
    ],
)
def test_bind_params_errors(params, error, message, mod):
    with pytest.raises(error, match=message):
        BindParams("main", params)(mod)


def test_bind_symbolic_vars(build):
    n = TirVar("n", "int64")
    mod = build(lambda x: op.concat([x, x]), TensorStructInfo((n, 3)))
    for key in ("n", n):
        made = BindSymbolicVars({key: 2})(mod)
        assert made["main"].params[0].struct_info == INFO
        assert made["main"].ret_struct_info == TensorStructInfo((4, 3))
        assert relax.analysis.well_formed(made)
    with pytest.raises(IRValueError, match="no symbolic variable has the name 'k'; there are: n"):
        BindSymbolicVars({"k": 2})(mod)


def test_bind_symbolic_vars_of_one_function_of_several():
    @I.ir_module
    class Before:
        @R.function
        def first(x: R.Tensor(("m", "n"), "float32")):
            return x

        @R.function
        def second(x: R.Tensor(("m", 3), "float32")):
            return x

    n = Before["first"].params[0].struct_info.shape[1]
    made = BindSymbolicVars({n: 2, "m": 4})(Before)
    assert made["first"].ret_struct_info == TensorStructInfo((4, 2))
    assert made["second"].ret_struct_info == TensorStructInfo((4, 3))
    made = BindSymbolicVars({"m": 4}, "second")(Before)
    assert made["first"] is Before["first"]
    with pytest.raises(IRValueError, match="no symbolic variable has the name 'n'; there are: m"):
        BindSymbolicVars({"n": 4}, "second")(Before)
    with pytest.raises(IRValueError, match="no function of the module uses k"):
        BindSymbolicVars({TirVar("k", "int64"): 1})(Before)


def test_dead_code_keeps_what_prim_funcs_call():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Module
            y = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

        @T.prim_func(private=True)
        def doubled(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("doubled"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = Module.twice(x[vi])

        @T.prim_func(private=True)
        def twice(x: T.float32) -> T.float32:
            return x + x

    assert DeadCodeElimination()(Module) is Module


def test_dead_code_of_a_part_of_a_module_keeps_its_functions():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Module
            unused = R.exp(x)
            y = cls.between(x)
            return y

        @R.function(private=True)
        def between(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Module
            y: R.Tensor((4,), "float32") = cls.last(x)
            return y

        @R.function(private=True)
        def last(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            unused = R.exp(x)
            return x

    made = ApplyPassToFunction(DeadCodeElimination(), "main|last")(Module)
    assert [gvar.name_hint for gvar in made.get_global_vars()] == ["main", "between", "last"]
    assert "R.exp" not in made.script()


def test_global_symbols_with_a_prefix():
    @I.ir_module
    class Module:
        I.module_attrs({"system_lib_prefix": "lib_"})

        @R.function(private=True)
        def main(x: R.Tensor((4,), "float32")):
            cls = Module
            y = R.call_tir(cls.copied, (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

        @T.prim_func(private=True)
        def copied(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("copied"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = x[vi]

    made = AttachGlobalSymbol()(Module)
    names = {gvar.name_hint: func.attrs["global_symbol"] for gvar, func in made.functions.items()}
    assert names == {"main": "main", "lib_copied": "lib_copied"}
    assert relax.analysis.well_formed(made)
    assert AttachGlobalSymbol()(made) is made


def test_nested_sequences_are_flattened():
    x = relax.Var("x", INFO)
    inner = relax.Var("inner", INFO)
    outer = relax.Var("outer", INFO)
    exp, tan = op.exp(x), op.tan(inner)
    nested = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(inner, exp)])], tan)
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(outer, nested)])], outer)
    func = relax.Function([x], body, INFO, attrs={"global_symbol": "main"})
    made = Normalize()(IRModule({"main": func}))
    assert value_names(made["main"]) == ["relax.exp", "relax.tan", "Var"]
    assert relax.analysis.well_formed(made)


def test_inline_functions():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("f", [x], private=True):
        f = bb.emit_func_output(bb.emit(op.exp(x)))
    y = relax.Var("y", INFO)
    with bb.function("main", [y]):
        bb.emit_func_output(bb.emit(op.add(f(y), f(y))))
    mod = bb.get()
    func = mod["main"].inline_functions({"f": mod["f"]})
    assert value_names(func).count("relax.exp") == 2
    assert relax.analysis.well_formed(func)


def test_dead_code(mod):
    lowered = LegalizeOps()(mod)
    unused = lowered["add"].with_attr("answer", 42)
    lowered["unused"] = unused
    lowered["visible"] = unused.with_attr("global_symbol", "visible")
    names = {var.name_hint for var in DeadCodeElimination()(lowered).functions}
    assert names == {"main", "add", "tir_exp", "visible"}
    names = {var.name_hint for var in DeadCodeElimination(["unused"])(lowered).functions}
    assert names == {"main", "add", "tir_exp", "unused", "visible"}
    with pytest.raises(PassError, match="no function 'nothing'"):
        DeadCodeElimination(["nothing"])(lowered)


def test_attach_global_symbol(mod):
    lowered = AttachGlobalSymbol()(LegalizeOps()(mod))
    assert lowered["add"].attrs["global_symbol"] == "add"
    assert AttachGlobalSymbol()(lowered) is lowered


def test_normalize_binds_nested_calls():
    x = relax.Var("x", INFO)
    mod = IRModule({"main": relax.Function([x], op.exp(op.exp(x)), INFO)})
    made = Normalize()(mod)
    assert value_names(made["main"]) == ["relax.exp", "relax.exp"]
    assert relax.analysis.well_formed(made)
    assert Normalize()(made) is made


def test_purity_and_dataflow(mod):
    made = ToNonDataflow()(RemovePurityChecking()(mod))
    func = made["main"]
    assert func.attrs["relax.force_pure"]
    assert not any(isinstance(block, relax.DataflowBlock) for block in func.body.blocks)
    assert relax.analysis.well_formed(made)


def test_canonical_bindings(build):
    def rename(x):
        bb = relax.BlockBuilder.current()
        pair = bb.emit(relax.Tuple([bb.emit(op.exp(x)), x]))
        first = bb.emit(relax.TupleGetItem(pair, 0))
        return bb.emit(first)

    mod = build(rename, INFO)
    made = CanonicalizeBindings()(mod)
    assert value_names(made["main"]) == ["relax.exp", "Tuple"]
    assert made["main"].body.blocks[0].bindings[0].var.name_hint == "gv"
    assert relax.analysis.well_formed(made)


def test_function_pass_decorator(mod):
    @function_pass(opt_level=0)
    def mark(func, mod, ctx):
        return func.with_attr("marked", 1)

    assert mark(mod)["main"].attrs["marked"] == 1

    @function_pass(opt_level=0)
    class Mark:
        def __init__(self, value):
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("marked", self.value)

    assert Mark(7)(mod)["main"].attrs["marked"] == 7


@pytest.mark.parametrize(("given", "named"), [(None, "None"), (5, "int")])
def test_a_pass_over_blocks_gives_a_block(mod, given, named):
    @dataflowblock_pass(opt_level=0, name="gone")
    def gone(block, mod, ctx):
        return given

    with pytest.raises(PassError, match=f"expected a block, got {named}: end the pass with"):
        gone(mod)


def test_dataflowblock_pass_decorator(mod):
    seen = []

    @dataflowblock_pass(opt_level=0, name="count")
    def count(block, mod, ctx):
        seen.append(len(block.bindings))
        return block

    assert count(mod)["main"] is mod["main"]
    assert seen == [2]


def primitive(build_body, *infos):
    """A module with a Primitive function and a main that calls it, lowered."""
    params = [relax.Var(f"p{i}", info) for i, info in enumerate(infos)]
    bb = relax.BlockBuilder()
    with bb.function("fused", params, attrs={"Primitive": 1}, private=True):
        with bb.dataflow():
            gv = bb.emit_output(build_body(bb, *params))
        fused = bb.emit_func_output(gv)
    args = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    with bb.function("main", args):
        with bb.dataflow():
            gv = bb.emit_output(fused(*args))
        bb.emit_func_output(gv)
    return LegalizeOps()(bb.get())


def test_fuse_tir_makes_one_function(evaluate):
    mod = FuseTIR()(primitive(lambda bb, x, y: op.nn.relu(op.add(op.exp(x), y)), INFO, INFO))
    assert sorted(var.name_hint for var in mod.functions) == ["fused", "main"]
    func = mod["fused"]
    assert [buffer.name for buffer in func.buffer_map.values()] == ["p0", "p1", "compute"]
    assert [b.name for b in func.body.block.alloc_buffers] == ["compute", "T_add"]
    assert dict(func.attrs) == {"tir.noalias": True}
    assert func.provenance == "te"
    call = mod["main"].body.blocks[0].bindings[0].value
    assert call.op is Op.get("relax.call_tir")
    got = evaluate(mod, DATA - 9, -DATA)
    np.testing.assert_allclose(got, (np.exp(DATA - 9) - DATA).clip(0), rtol=1e-6)


def test_fuse_tir_numbers_blocks_of_one_name(evaluate):
    mod = FuseTIR()(primitive(lambda bb, x: op.add(op.add(x, x), x), INFO))
    text = mod["fused"].script()
    assert 'T.block("T_add")' in text
    assert 'T.block("T_add_1")' in text
    np.testing.assert_allclose(evaluate(mod, DATA), DATA * 3)


def test_fuse_tir_with_several_outputs(evaluate):
    def body(bb, x):
        first = bb.emit(op.exp(x))
        return relax.Tuple([first, op.nn.relu(first)])

    mod = FuseTIR()(primitive(body, INFO))
    first, second = evaluate(mod, DATA)
    np.testing.assert_allclose(first, np.exp(DATA), rtol=1e-6)
    np.testing.assert_allclose(second, np.exp(DATA), rtol=1e-6)


def test_fuse_tir_with_tuples_and_symbols(evaluate):
    n = TirVar("n", "int64")
    pair = TupleStructInfo([TensorStructInfo((n, 3)), TensorStructInfo((n, 3))])

    def body(bb, t):
        return op.concat([relax.TupleGetItem(t, 0), relax.TupleGetItem(t, 1)])

    bb = relax.BlockBuilder()
    param = relax.Var("p", pair)
    with bb.function("fused", [param], attrs={"Primitive": 1}, private=True):
        with bb.dataflow():
            gv = bb.emit_output(body(bb, param))
        fused = bb.emit_func_output(gv)
    x, y = relax.Var("x", INFO), relax.Var("y", INFO)
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(fused(relax.Tuple([x, y]))))
    mod = FuseTIR()(LegalizeOps()(bb.get()))
    assert relax.analysis.well_formed(mod)
    np.testing.assert_array_equal(evaluate(mod, DATA, -DATA), np.concatenate([DATA, -DATA]))


def test_fuse_tir_passes_unbound_symbols():
    n = TirVar("n", "int64")
    infos = [TensorStructInfo((n * 2,)), ShapeStructInfo((n,))]
    mod = primitive(lambda bb, x, s: op.exp(x), *infos)
    mod = FuseTIR()(mod)
    call = mod["main"].body.blocks[0].bindings[0].value
    assert len(call.args[1].fields) == 1
    assert len(call.args[2].values) == 1


def test_fuse_tir_needs_lowered_functions():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("fused", [x], attrs={"Primitive": 1}):
        bb.emit_func_output(bb.emit(op.exp(x)))
    with pytest.raises(UnsupportedError, match=r"fused: expected only call_tir, got relax\.exp"):
        FuseTIR()(bb.get())


def test_fuse_tir_leaves_other_modules(mod):
    assert FuseTIR()(mod) is mod


def test_passes_are_pure(mod):
    before = mod.script(show_meta=True)
    LegalizeOps()(mod)
    BindParams("main", {"x1": DATA})(mod)
    CanonicalizeBindings()(mod)
    assert mod.script(show_meta=True) == before


def test_user_written_prim_funcs_keep_no_provenance():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.exp, x))
    func = bb.get()["exp"]
    assert func.with_attr("a", 1).provenance == "te"
    assert_structural_equal(func, bb.get()["exp"])
