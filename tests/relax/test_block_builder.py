"""BlockBuilder: scopes, names, sharing of PrimFuncs, outputs, symbolic shapes, errors."""

import numpy as np
import pytest

import weft
from weft import relax, te, topi
from weft.ir.op import Op
from weft.ir.structural import assert_structural_equal
from weft.relax import op
from weft.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar


@pytest.fixture
def x():
    return relax.Var("x", TensorStructInfo((2, 3), "float32"))


@pytest.fixture
def y():
    return relax.Var("y", TensorStructInfo((3,), "float32"))


def te_relu(a):
    return te.compute(a.shape, lambda *i: te.max(a(*i), 0), name="relu")


def bindings(mod, name="main"):
    return [binding for block in mod[name].body.blocks for binding in block.bindings]


def test_function_with_dataflow(x, y):
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            lv = bb.emit(op.add(x, y))
            gv = bb.emit_output(op.nn.relu(lv))
        bb.emit_func_output(gv)
    mod = bb.get()
    func = mod["main"]
    assert isinstance(lv, relax.DataflowVar)
    assert not isinstance(gv, relax.DataflowVar)
    assert (lv.name_hint, gv.name_hint) == ("lv", "gv")
    assert func.attrs["global_symbol"] == "main"
    assert func.ret_struct_info == TensorStructInfo((2, 3), "float32")
    assert relax.analysis.well_formed(mod)


def test_parameters_may_come_late(x, y):
    modules = []
    for early in (True, False):
        bb = relax.BlockBuilder()
        with bb.function("main", [x, y] if early else None):
            with bb.dataflow():
                gv = bb.emit_output(op.add(x, y))
            bb.emit_func_output(gv, None if early else [x, y])
        modules.append(bb.get())
    assert_structural_equal(*modules)


def test_private_function_has_no_global_symbol(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x], private=True):
        bb.emit_func_output(bb.emit(op.exp(x)))
    assert "global_symbol" not in bb.get()["main"].attrs


def test_attributes_and_purity(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x], attrs={"num_input": 1}, pure=False):
        bb.emit(op.print(x, format="{}"))
        bb.emit_func_output(x)
    func = bb.get()["main"]
    assert func.attrs["num_input"] == 1
    assert not func.is_pure
    assert relax.analysis.well_formed(bb.get())


def test_names_are_unique_over_functions(x, y):
    bb = relax.BlockBuilder()
    for name in ("f", "g"):
        with bb.function(name, [x, y]):
            with bb.dataflow():
                lv = bb.emit(op.add(x, y))
                gv = bb.emit_output(lv)
            bb.emit_func_output(gv)
    assert lv.name_hint == "lv1"
    assert bb.get_unique_name("lv") == "lv2"


def test_name_hint(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        assert bb.emit(op.exp(x), name_hint="e").name_hint == "e"
        assert bb.emit(op.exp(x), "e").name_hint == "e1"
        bb.emit_func_output(x)


def test_nested_calls_are_bound(x, y):
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            gv = bb.emit_output(op.nn.relu(op.add(op.exp(x), y)))
        bb.emit_func_output(gv)
    names = [binding.value.op.name for binding in bindings(bb.get())]
    assert names == ["relax.exp", "relax.add", "relax.nn.relu"]


def test_emit_te_makes_a_private_prim_func(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit_te(te_relu, x)
            gv = bb.emit_output(lv)
        bb.emit_func_output(gv)
    mod = bb.get()
    call = bindings(mod)[0].value
    assert call.op is Op.get("relax.call_tir")
    assert call.args[0].name_hint == "te_relu"
    func = mod["te_relu"]
    assert dict(func.attrs) == {"tir.noalias": True}
    assert [b.name for b in func.buffer_map.values()] == ["x", "relu"]
    assert func.provenance == "te"


def test_equal_prim_funcs_are_shared_and_others_numbered(x, y):
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            a = bb.emit_te(topi.add, x, y)
            b = bb.emit_te(topi.add, a, y)
            c = bb.emit_te(topi.add, y, y)
            gv = bb.emit_output((b, c))
        bb.emit_func_output(gv)
    names = [binding.value.args[0].name_hint for binding in bindings(bb.get())[:3]]
    assert names == ["add", "add", "add1"]


def test_constants_are_parameters_of_the_prim_func(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        call = bb.call_te(topi.multiply, x, relax.const(np.ones((2, 3), "float32")))
        bb.emit_func_output(bb.emit(call))
    buffers = bb.get()["multiply"].buffer_map.values()
    assert [buffer.name for buffer in buffers] == ["x", "B", "T_multiply"]


def test_several_outputs_are_a_tuple(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        var = bb.emit_te(lambda a: [topi.exp(a), topi.nn.relu(a)], x, primfunc_name_hint="both")
        bb.emit_func_output(var)
    assert isinstance(var.struct_info, TupleStructInfo)
    assert "both" in bb.get()


def test_prim_func_attributes(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(te_relu, x, primfunc_attrs={"answer": 42}))
    assert bb.get()["te_relu"].attrs["answer"] == 42


def test_symbolic_extent_is_found_in_a_buffer():
    n = TirVar("n", "int64")
    x = relax.Var("x", TensorStructInfo((n, 4)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        var = bb.emit_te(topi.exp, x)
        bb.emit_func_output(var)
    call = bb.lookup_binding(var)
    assert len(call.args) == 2
    assert var.struct_info == TensorStructInfo((n, 4))
    assert all(m is not n for m in bb.get()["exp"].buffer_map.values().__iter__().__next__().shape)


def test_unbound_symbol_becomes_a_scalar_parameter():
    n = TirVar("n", "int64")
    x = relax.Var("x", TensorStructInfo((n * 2,)))
    s = relax.Var("s", ShapeStructInfo((n,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, s]):
        var = bb.emit_te(topi.exp, x)
        bb.emit_func_output(var)
    call = bb.lookup_binding(var)
    assert list(call.args[2].values) == [n]
    params = bb.get()["exp"].params
    assert params[-1].dtype == "int64"
    assert relax.analysis.well_formed(bb.get())


def test_an_extent_taken_from_around_is_copied():
    n = TirVar("n", "int64")
    x = relax.Var("x", TensorStructInfo((n,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(lambda: te.compute([n], lambda i: i, name="places")))
    (kernel,) = [f for g, f in bb.get().functions.items() if g.name_hint != "main"]
    assert all(dim is not n for buffer in kernel.buffer_map.values() for dim in buffer.shape)
    assert_structural_equal(weft.script.from_source(bb.get().script()), bb.get())


def test_dataflow_variable_as_result_becomes_an_output(x):
    bb = relax.BlockBuilder()
    with bb.function("main"):
        with bb.dataflow():
            lv = bb.emit(op.exp(x))
            bb.emit_output(lv)
        bb.emit_func_output(lv, [x])
    mod = bb.get()
    assert relax.analysis.well_formed(mod)
    assert type(mod["main"].body.body) is relax.Var
    assert mod["main"].body.body.name_hint == "lv"


def test_match_cast_defines_symbols(x):
    n = TirVar("n", "int64")
    u = relax.Var("u", TensorStructInfo(None, "float32", ndim=2))
    bb = relax.BlockBuilder()
    with bb.function("main", [u]):
        v = bb.match_cast(u, TensorStructInfo((n, 3), "float32"))
        bb.emit_func_output(bb.emit(op.exp(v)))
    mod = bb.get()
    assert relax.analysis.well_formed(mod)
    assert mod["main"].ret_struct_info == TensorStructInfo(None, "float32", ndim=2)


def test_call_of_another_function_derives_its_result(x):
    n = TirVar("n", "int64")
    p = relax.Var("p", TensorStructInfo((n, 3)))
    bb = relax.BlockBuilder()
    with bb.function("f", [p]):
        callee = bb.emit_func_output(bb.emit(op.concat([p, p])))
    with bb.function("main", [x]):
        var = bb.emit(callee(x))
        bb.emit_func_output(var)
    assert var.struct_info == TensorStructInfo((4, 3))


def test_update_func_and_lookup(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        var = bb.emit(op.exp(x))
        gvar = bb.emit_func_output(var)
    assert bb.lookup_binding(var).op is Op.get("relax.exp")
    assert bb.lookup_binding(x) is None
    func = bb.get()["main"].with_attr("answer", 42)
    bb.update_func(gvar, func)
    assert bb.get()["main"] is func


def test_a_function_is_built_aside_of_an_open_one(x):
    bb = relax.BlockBuilder()
    a = relax.Var("a", TensorStructInfo((2, 3), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.exp(x))
            with bb.aside(), bb.function("part", [a], private=True):
                part = bb.emit_func_output(bb.emit(op.negative(a)))
            z = bb.emit_output(relax.Call(part, [y]))
        bb.emit_func_output(z)
    assert relax.analysis.well_formed(bb.get())
    assert bindings(bb.get(), "part")[0].value.op.name == "relax.negative"


def test_a_function_that_calls_itself_gets_its_body_last(x):
    bb = relax.BlockBuilder()
    stub, a = (relax.Var("a", TensorStructInfo((2, 3), "float32")) for _ in range(2))
    with bb.function("again", [stub], private=True):
        gvar = bb.emit_func_output(stub)
    with bb.function("again", [a], private=True):
        bb.emit_func_body_of(gvar, bb.emit(relax.Call(gvar, [bb.emit(op.exp(a))])))
    assert [g.name_hint for g in bb.get().functions] == ["again"]
    assert relax.analysis.well_formed(bb.get())


def test_get_is_a_snapshot(x):
    bb = relax.BlockBuilder()
    before = bb.get()
    with bb.function("main", [x]):
        bb.emit_func_output(x)
    assert len(before) == 0
    assert len(bb.finalize()) == 1


def test_current_builder(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        assert relax.BlockBuilder.current() is bb
        bb.emit_func_output(x)
    assert relax.BlockBuilder.current() is None


def test_branches_are_sequences(x):
    cond = relax.Var("c", TensorStructInfo((), "bool"))
    bb = relax.BlockBuilder()
    with bb.function("main", [cond, x]):
        var = bb.emit(relax.If(cond, op.exp(op.exp(x)), x))
        bb.emit_func_output(var)
    value = bb.lookup_binding(var)
    assert isinstance(value.true_branch, relax.SeqExpr)
    assert var.struct_info == x.struct_info
    assert relax.analysis.well_formed(bb.get())


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda bb, x: bb.function("main", [1]), IRTypeError, "expected a relax.Var, got int"),
        (lambda bb, x: bb.emit(x), IRValueError, "no block is open"),
        (lambda bb, x: bb.emit_func_output(x), IRValueError, "no function is open"),
    ],
)
def test_errors_outside_of_functions(build, error, message, x):
    with pytest.raises(error, match=message):
        build(relax.BlockBuilder(), x)


def test_error_of_a_missing_output(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match="emit_func_output was not called"):
        with bb.function("main", [x]):
            bb.emit(op.exp(x))


def test_error_of_nested_functions(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match="one function at a time"):
        with bb.function("main", [x]), bb.function("inner", [x]):
            pass


def test_error_of_parameters_given_twice(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match=r"given to bb\.function already"):
        with bb.function("main", [x]):
            bb.emit_func_output(x, [x])


def test_error_of_missing_parameters(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match=r"must be given to bb\.function or to"):
        with bb.function("main"):
            bb.emit_func_output(x)


def test_builder_works_after_an_error(x):
    bb = relax.BlockBuilder()
    with pytest.raises(ZeroDivisionError), bb.function("main", [x]):
        raise ZeroDivisionError
    with bb.function("main", [x]):
        bb.emit_func_output(x)
    assert len(bb.get()) == 1


def test_emit_te_needs_a_known_shape():
    u = relax.Var("u", TensorStructInfo(None, "float32", ndim=2))
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match="the shape of u must be known"):
        with bb.function("main", [u]):
            bb.emit_te(topi.exp, u)


def test_emit_te_needs_tensors_back(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRTypeError, match=r"must return a te\.Tensor or a list of them, got int"):
        with bb.function("main", [x]):
            bb.emit_te(lambda a: 1, x)


def test_opaque_call_is_an_object(x):
    bb = relax.BlockBuilder()
    f = relax.Var("f", relax.FuncStructInfo.opaque_func())
    with bb.function("main", [f, x], pure=False):
        var = bb.emit(relax.Call(f, [x]))
        bb.emit_func_output(var)
    assert isinstance(var.struct_info, ObjectStructInfo)


def test_dataflow_variables_in_a_nested_result_become_outputs(x):
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(op.exp(x))
            b = bb.emit(op.exp(a))
        bb.emit_func_output(relax.Tuple([relax.Tuple([a, b]), x]))
    assert relax.analysis.well_formed(bb.get())


def test_a_second_function_of_a_name_is_visible_under_its_own(x):
    bb = relax.BlockBuilder()
    for body in (op.exp, op.sqrt):
        with bb.function("f", [x]):
            bb.emit_func_output(bb.emit(body(x)))
    mod = bb.get()
    assert [func.attrs["global_symbol"] for func in mod.functions.values()] == ["f", "f1"]
    assert relax.analysis.well_formed(mod)


def test_dataflow_blocks_do_not_nest(x):
    bb = relax.BlockBuilder()
    with pytest.raises(IRValueError, match="a dataflow block is open already"):
        with bb.function("f", [x]), bb.dataflow(), bb.dataflow():
            pass


def test_emit_te_passes_symbols_that_the_expression_takes_from_around_it():
    n, m = TirVar("n", "int64"), TirVar("m", "int64")
    x = relax.Var("x", TensorStructInfo((n, 4), "float32"))
    s = relax.Var("s", ShapeStructInfo((m,)))
    bb = relax.BlockBuilder()

    def double(t):
        return te.compute((n * 2,), lambda i: t[i // 2, 0] + m.astype("float32"), name="o")

    with bb.function("main", [x, s]):
        bb.emit_func_output(bb.emit_te(double, x))
    mod = bb.get()
    assert relax.analysis.well_formed(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    data = np.arange(8, dtype="float32").reshape(2, 4)
    found = machine["main"](weft.nd.array(data), weft.runtime.ShapeTuple([10]))
    np.testing.assert_array_equal(found.numpy(), [10, 10, 14, 14])


def test_a_variable_that_nothing_defines_is_an_error():
    x, y = (relax.Var(name, relax.TensorStructInfo((2,), "float32")) for name in "xy")
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match=r"function 'main': .*\(here: x\).*nothing defines y;"):
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(relax.op.add(x, y)))


def test_a_result_that_nothing_defines_is_an_error():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match=r"\(here: none\).*nothing defines x;"):
        with bb.function("main", []):
            bb.emit_func_output(x)


def test_the_builder_can_go_on_after_such_an_error():
    x, y = (relax.Var(name, relax.TensorStructInfo((2,), "float32")) for name in "xy")
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match="nothing defines y"), bb.function("main", [x]):
        bb.emit_func_output(y)
    with bb.function("main", [x]):
        bb.emit_func_output(x)
    assert [gvar.name_hint for gvar in bb.get().functions] == ["main"]


def test_an_object_in_many_places_is_bound_once():
    """``y = y * y`` 40 times, never emitted: 40 bindings, not 2**40."""
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        value = x
        for _ in range(40):
            value = relax.op.multiply(value, value)
        builder.emit_func_output(builder.emit(value))
    [block] = builder.get()["main"].body.blocks
    assert len(block.bindings) == 40


def test_an_object_on_both_sides_of_a_condition_is_bound_on_each():
    x = relax.Var("x", relax.TensorStructInfo((), "float32"))
    c = relax.Var("c", relax.TensorStructInfo((), "bool"))
    shared = relax.op.exp(x)
    builder = relax.BlockBuilder()
    with builder.function("main", [c, x]):
        choice = relax.If(c, relax.op.add(shared, shared), relax.op.negative(shared))
        builder.emit_func_output(builder.emit(choice))
    function = builder.get()["main"]
    assert relax.analysis.well_formed(builder.get())
    text = function.script()
    assert text.count("R.exp(x)") == 2
