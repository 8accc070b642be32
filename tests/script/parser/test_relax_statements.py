"""What each statement of a graph function script builds."""
# ruff: noqa: F821, F841, RUF059 - scripts are no plain Python

from __future__ import annotations

import pytest

import weft.script
from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax.expr import DataflowBlock, DataflowVar, If, MatchCast, Var, VarBinding
from weft.relax.struct_info import FuncStructInfo, ObjectStructInfo, TensorStructInfo
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def bindings(func):
    return [binding for block in func.body.blocks for binding in block.bindings]


def test_dataflow_outputs_are_plain_variables():
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            lv0 = R.multiply(x, y)
            gv0 = R.add(lv0, y)
            R.output(gv0)
        return gv0

    (block,) = main.body.blocks
    assert isinstance(block, DataflowBlock)
    assert [type(b.var) for b in block.bindings] == [DataflowVar, Var]
    assert [b.var.name_hint for b in block.bindings] == ["lv0", "gv0"]
    assert main.body.body is block.bindings[1].var
    assert main.ret_struct_info == TensorStructInfo((3, 4), "float32")
    assert main.attrs["global_symbol"] == "main"


def test_spellings_of_2022():
    @R.function
    def main(x: Tensor((3, 4), "float32"), y: Tensor(None, "float32", ndim=2)):
        with relax.dataflow():
            lv0 = relax.multiply(x, y)
            gv0 = relax.add(lv0, y)
            gv1: Tensor((3, 4), "float32") = gv0
            relax.output(gv1)
        return gv1

    assert [b.value.op.name for b in bindings(main)[:2]] == ["relax.multiply", "relax.add"]
    assert main.params[1].struct_info.ndim == 2


def test_tensor_in_every_form():
    @R.function
    def main(
        a: R.Tensor,
        b: R.Tensor(ndim=2),
        c: R.Tensor("float32"),
        d: R.Tensor(("n", 4), "float32"),
        e: R.Tensor(("n + 1", "m * 2", "m"), dtype="int8"),
        f: R.Tensor("float32", ndim=3),
        g: R.Tuple(R.Tensor((2,), "int32"), R.Object),
        h: R.Shape(["n", 2]),
        i: R.Prim("int64"),
        j: R.Prim(value="n"),
        k: R.Callable((R.Tensor((2,), "int32"),), R.Object),
        m: R.Object,
        q: R.Shape(ndim=3),
    ) -> R.Tensor(("n", 4), "float32"):
        return d

    infos = {param.name_hint: param.struct_info for param in main.params}
    assert (infos["a"].ndim, infos["a"].dtype) == (-1, "void")
    assert infos["c"].dtype == "float32"
    n = infos["d"].shape.values[0]
    assert n.name == "n"
    assert n.dtype == "int64"
    assert infos["e"].shape.values[0].a is n
    assert infos["h"].values[0] is n
    assert infos["j"].value is n
    assert isinstance(infos["k"], FuncStructInfo)
    assert isinstance(infos["m"], ObjectStructInfo)
    assert main.ret_struct_info.shape.values[0] is n


def test_nested_calls_become_bindings():
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        y = R.add(R.multiply(x, x), R.const(1.0))
        return R.add(y, x * x)

    assert len(bindings(main)) == 4
    assert isinstance(main.body.body, Var)


def test_values():
    @R.function
    def main(x: R.Tensor((3,), "float32"), t: R.Tuple(R.Tensor((3,), "float32"), R.Object)):
        a = t[0]
        b = R.shape([1, 2])
        c = R.prim_value(3)
        d = R.str("text")
        e = R.dtype("float32")
        f = (a, x)
        g = R.const([1, 2], "int64")
        h = R.tuple(a, b)
        return (a, (x, f), c)

    kinds = [type(b.value).__name__ for b in bindings(main)]
    assert kinds == [
        "TupleGetItem", "ShapeExpr", "PrimValue", "StringImm", "DataTypeImm", "Tuple", "Constant",
        "Tuple",
    ]  # fmt: skip
    assert type(main.body.body).__name__ == "Tuple"


def test_match_cast_defines_symbols():
    @R.function
    def main(x: R.Tensor("float32", ndim=2)):
        n, m = T.int64(), T.int64()
        y = R.match_cast(x, R.Tensor((n, m), "float32"))
        z: R.Tensor(("n", "m"), "float32") = R.add(y, y)
        return z

    cast, add = bindings(main)
    assert isinstance(cast, MatchCast)
    assert [dim.name for dim in cast.struct_info.shape.values] == ["n", "m"]
    assert add.var.struct_info.shape.values[0] is cast.struct_info.shape.values[0]


def test_a_named_symbol_is_the_one_of_the_annotations():
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.Var("n", "int64")
        y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((n, 2), "float32"))
        return y

    (call,) = bindings(main)
    assert call.var.struct_info.shape.values[0] is main.params[0].struct_info.shape.values[0]


def test_choice():
    @R.function
    def main(cond: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        if cond:
            w = R.add(x, x)
            r = w
        else:
            w = R.multiply(x, x)
            r = w
        return r

    (binding,) = bindings(main)
    assert isinstance(binding.value, If)
    assert binding.var.name_hint == "r"
    assert len(binding.value.true_branch.blocks[0].bindings) == 1
    assert binding.var.struct_info == TensorStructInfo((3,), "float32")


def test_local_function_and_closure_call():
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        @R.function
        def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            s = R.add(x, y)
            return s

        z = inner(x)
        return z

    inner, call = bindings(main)
    assert isinstance(inner.value, relax.Function)
    assert inner.var.name_hint == "inner"
    assert "global_symbol" not in inner.value.attrs
    assert call.value.op is inner.var
    assert call.var.struct_info == TensorStructInfo((3,), "float32")


def test_calls_across_levels():
    @I.ir_module(check_well_formed=False)  # f does not take the scalar that one call passes
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            cls = Module
            n = T.int64()
            a = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), "float32"))
            b = R.call_tir(f, a, out_ty=R.Tensor((n, 4), "float32"))
            c = R.call_tir(Module.f, (b,), (n, 4), dtype="float32")
            d = R.call_dps_packed("env.g", (c,), out_sinfo=R.Tensor((n, 4), "float32"))
            e = R.call_pure_packed("env.h", d, sinfo_args=R.Tensor((n, 4), "float32"))
            g = cls.other(e)
            return g

        @R.function(private=True)
        def other(x: R.Tensor(("n", 4), "float32")):
            return x

        @T.prim_func
        def f(a: T.handle, b: T.handle):
            n = T.int64()
            A = T.match_buffer(a, (n, 4))
            B = T.match_buffer(b, (n, 4))
            for i, j in T.grid(n, 4):
                B[i, j] = A[i, j]

    assert [var.name_hint for var in Module.functions] == ["main", "other", "f"]
    assert "global_symbol" not in Module["other"].attrs
    a, b, c, d, e, g = bindings(Module["main"])
    assert a.value.args[0] is b.value.args[0] is Module.get_global_var("f")
    assert c.value.op.name == "relax.call_tir"
    assert d.value.op.name == "relax.call_dps_packed"
    assert e.value.args[0].global_symbol == "env.h"
    assert g.value.op is Module.get_global_var("other")
    assert isinstance(g.var.struct_info, TensorStructInfo)
    assert g.var.struct_info.shape.values[0].name == "n"


def test_call_tir_of_a_registered_function_by_name():
    @R.function
    def main(x: R.Tensor((1, 784), "float32")):
        with R.dataflow():
            lv0 = R.call_tir("env.linear", (x,), (1, 128), dtype="float32")
            R.output(lv0)
        return lv0

    (binding,) = bindings(main)
    assert binding.value.op.name == "relax.call_dps_packed"
    assert binding.value.args[0].global_symbol == "env.linear"


def test_impure_statements_and_options():
    @R.function(pure=False, private=True)
    def main(x: R.Tensor((), "bool")):
        R.func_attr({"Primitive": 1, "note": "a"})
        R.print(x, format="{}")
        R.assert_op(x, format="wrong")
        return x

    assert not main.is_pure
    assert dict(main.attrs) == {"Primitive": 1, "note": "a"}
    assert [b.var.name_hint for b in bindings(main)] == ["_", "_"]


def test_two_blocks_and_allocation_between():
    @R.function
    def main(x: R.Tensor((1, 128), "float32")):
        with R.dataflow():
            gv0 = R.add(x, x)
            R.output(gv0)
        gv1 = R.alloc_tensor((1, 128), dtype="float32")
        gv2 = R.builtin.alloc_tensor(R.shape([1, 128]), R.dtype("float32"), R.prim_value(0))
        with R.dataflow():
            out = R.add(gv0, gv1)
            R.output(out)
        return out

    kinds = [type(block).__name__ for block in main.body.blocks]
    assert kinds == ["DataflowBlock", "BindingBlock", "DataflowBlock"]
    alloc = main.body.blocks[1].bindings
    assert_structural_equal(alloc[0].value, alloc[1].value)
    assert alloc[0].var.struct_info == TensorStructInfo((1, 128), "float32")


def test_operators_of_python():
    @R.function
    def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
        a = x + y
        b = a * y
        c = -b
        return c

    names = [b.value.op.name for b in bindings(main)]
    assert names == ["relax.add", "relax.multiply", "relax.negative"]


def test_macro_returns_a_value():
    @R.macro
    def twice(v):
        w = R.add(v, v)
        return w

    @R.function
    def main(x: R.Tensor((3,), "float32")):
        y = twice(x)
        return y

    assert [b.var.name_hint for b in bindings(main)] == ["w", "y"]


def test_module_attributes():
    @I.ir_module
    class Module:
        I.module_attrs({"name": "m", "count": 3})

        @R.function
        def main(x: R.Tensor((3,), "float32")):
            return x

    assert dict(Module.attrs) == {"name": "m", "count": 3}


def test_tuple_unpacking():
    @R.function
    def main(t: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((2,), "int32"))):
        a, b = t
        return b

    assert [type(b.value).__name__ for b in bindings(main)][-2:] == ["TupleGetItem"] * 2


def test_every_node_has_a_span():
    text = """
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        y = R.add(x, x)
        return y
    """
    main = weft.script.from_source(text)
    (binding,) = bindings(main)
    assert isinstance(binding, VarBinding)
    assert binding.span.line == 4
    assert (binding.value.span.line, binding.value.span.column) == (4, 9)
    assert main.span.line == 3


@pytest.mark.parametrize(
    "spelling",
    [
        "out_sinfo=R.Tensor((3,), 'float32')",
        "out_ty=R.Tensor((3,), 'float32')",
        "(3,), dtype='float32'",
    ],
)
def test_results_by_all_spellings(spelling):
    text = f"""
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        y = R.call_dps_packed("f", (x,), {spelling})
        return y
    """
    main = weft.script.from_source(text)
    assert main.ret_struct_info == TensorStructInfo((3,), "float32")


def test_nonlocal_asks_python_to_keep_a_name():
    dtype = "float16"

    @R.function
    def main(x: R.Tensor((3,), dtype)):
        nonlocal dtype
        return x

    assert main.ret_struct_info == TensorStructInfo((3,), "float16")


def test_emit_te_adds_functions_to_the_module():
    topi = pytest.importorskip("weft.topi")

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            y = R.emit_te(topi.add, x, x)
            return y

        @R.function
        def add(x: R.Tensor((4, 4), "float32")):
            y = R.emit_te(topi.add, x, x)
            return y

    names = [var.name_hint for var in Module.functions]
    assert names == ["main", "add", "add1"]
    assert bindings(Module["add"])[0].value.args[0] is Module.get_global_var("add1")
