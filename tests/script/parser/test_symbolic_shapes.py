"""Struct infos of graph scripts: shapes by texts and variables, every annotation, what is wrong."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.structural import structural_equal
from weft.relax import struct_info as infos
from weft.script import from_source
from weft.script import relax as R
from weft.script import tir as T
from weft.script.ir_builder.relax_info import StructInfoProxy, as_struct_info
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.expr import SizeVar, Var
from weft.tir.stmt_functor import substitute

N, M = Var("n", "int64"), Var("m", "int64")


def params(signature):
    """The struct infos of the parameters of a function."""
    func = from_source(f"@R.function\ndef main({signature}):\n    return R.tuple()\n")
    assert_round_trip(func)
    return [param.struct_info for param in func.params]


# A dimension as a text, and the expression that it is.
DIMENSIONS = [
    ("n", N),
    ("3", op.const(3, "int64")),
    ("n + 1", N + 1),
    ("n - m", N - M),
    ("2 * n", op.multiply(2, N)),
    ("n * m + 1", N * M + 1),
    ("n // 2", N // 2),
    ("n % 4", N % 4),
    ("(n + 1) * m", (N + 1) * M),
    ("n << 1", N << 1),
    ("n >> 1", N >> 1),
    ("-n", op.multiply(N, -1)),
    ("T.min(n, m)", op.min(N, M)),
    ("min(n, 4)", op.min(N, 4)),
    ("T.max(n, 1)", op.max(N, 1)),
    ("T.ceildiv(n, 4)", op.ceildiv(N, 4)),
    ("T.floordiv(n, 3)", op.floordiv(N, 3)),
    ("T.truncmod(n, 3)", op.truncmod(N, 3)),
    ("T.if_then_else(n < m, n, m)", op.if_then_else(N < M, N, M)),
    ("T.Select(n == m, n, m)", nodes.Select(op.equal(N, M), N, M)),
    ("T.int64(7)", op.const(7, "int64")),
    ("T.Cast('int64', n)", nodes.Cast("int64", N)),
    ("n & m | 1", (N & M) | 1),
    ("n ^ m", N ^ M),
    ("~n", ~N),
    ("T.shift_left(n, T.int64(1))", N << 1),
    ("T.abs(n)", op.abs(N)),
    ("T.Select(not n < m, n, m)", nodes.Select(nodes.Not(N < M), N, M)),
    ("T.Select(n < m and m < 4 or n > m, n, m)",
     nodes.Select(nodes.Or(nodes.And(N < M, M < 4), N > M), N, M)),
    ("T.Cast('int64', T.int8(3))", nodes.Cast("int64", op.const(3, "int8"))),
    ("T.Add(n, T.int64(0))", nodes.Add(N, op.const(0, "int64"))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), DIMENSIONS, ids=[row[0] for row in DIMENSIONS])
def test_a_dimension_by_a_text(text, wanted):
    known = params(f'a: R.Shape(["n", "m"]), b: R.Tensor(("{text}",), "float32")')
    (dimension,) = known[1].shape.values
    here = dict(zip((N, M), known[0].values, strict=True))
    assert structural_equal(dimension, substitute(wanted, here))


NO_DIMENSIONS = ["n[0]", "n.x", "'x' 'y' +", "n if m else 3", "lambda: n", "f(n)", "2.5", "+n",
                 "n < m < 3", "True", "None", "[n]", "n ** 2", "n @ m", "n is m"]  # fmt: skip


@pytest.mark.parametrize("text", NO_DIMENSIONS)
def test_a_text_that_is_no_dimension(text):
    message, place = error_of(f'@R.function\ndef main(x: R.Tensor(("{text}",))):\n    return x')
    assert message.startswith(f"{text!r} is no dimension: expected")
    assert place.startswith("R.Tensor((")


def test_a_name_is_one_variable_in_the_whole_signature():
    a, b, c, d = params(
        'a: R.Tensor(("n", "m"), "float32"), b: R.Shape(["m", "n"]), '
        'c: R.Prim(value="n"), d: R.Tuple(R.Tensor(("n",), "int8"), R.Object)'
    )
    n, m = a.shape.values
    assert b.values[0] is m
    assert b.values[1] is n
    assert c.value is n
    assert d.fields[0].shape.values[0] is n


def test_a_symbol_of_the_body_is_the_one_of_the_signature():
    func = from_source("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    n = T.int64()
    k = T.int64()
    y: R.Tensor((n, 4), "float32") = R.add(x, x)
    z = R.match_cast(y, R.Tensor((k, 4), "float32"))
    return z
""")
    n = func.params[0].struct_info.shape.values[0]
    first, second = func.body.blocks[0].bindings
    assert first.var.struct_info.shape.values[0] is n
    assert second.struct_info.shape.values[0] is not n
    assert_round_trip(func)


def test_a_symbol_that_is_declared_keeps_its_kind():
    func = from_source("""
@R.function
def main(x: R.Tensor(("n", "k"), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64(is_size_var=True)
    k = T.int32()
    return R.sum(x, axis=1)
""")
    n, k = func.params[0].struct_info.shape.values
    assert isinstance(n, SizeVar)
    assert k.dtype == "int32"


def test_a_symbol_under_another_name_is_a_value_of_python():
    func = from_source("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    rows = T.Var("n", "int64")
    y = R.match_cast(x, R.Tensor((rows,), "float32"))
    return y
""", check_well_formed=False)  # fmt: skip
    assert func.body.blocks[0].bindings[0].struct_info.shape.values[0].name == "n"


ANY = infos.TensorStructInfo(None, "")
# An annotation, and the struct info that it is.
ANNOTATIONS = [
    ("R.Tensor", ANY),
    ("R.Tensor()", ANY),
    ("R.Tensor('float32')", infos.TensorStructInfo(None, "float32")),
    ("R.Tensor(None, 'float32')", infos.TensorStructInfo(None, "float32")),
    ("R.Tensor((), 'float32')", infos.TensorStructInfo((), "float32")),
    ("R.Tensor((2, 3))", infos.TensorStructInfo((2, 3), "")),
    ("R.Tensor([2, 3], dtype='int8')", infos.TensorStructInfo((2, 3), "int8")),
    ("R.Tensor((2, 3), T.float16)", infos.TensorStructInfo((2, 3), "float16")),
    ("R.Tensor(ndim=2)", infos.TensorStructInfo(None, "", ndim=2)),
    ("R.Tensor('float32', ndim=2)", infos.TensorStructInfo(None, "float32", ndim=2)),
    ("R.Tensor(None, 'float32', 2)", infos.TensorStructInfo(None, "float32", ndim=2)),
    ("R.Tensor((2, 3), 'float32', ndim=2)", infos.TensorStructInfo((2, 3), "float32")),
    ("R.Shape", infos.ShapeStructInfo()),
    ("R.Shape()", infos.ShapeStructInfo()),
    ("R.Shape([])", infos.ShapeStructInfo([])),
    ("R.Shape((2, 3))", infos.ShapeStructInfo([2, 3])),
    ("R.Shape(ndim=3)", infos.ShapeStructInfo(ndim=3)),
    ("R.Prim('int64')", infos.PrimStructInfo("int64")),
    ("R.Prim(T.float32)", infos.PrimStructInfo("float32")),
    ("R.Prim(value=3)", infos.PrimStructInfo(value=op.const(3, "int64"))),
    ("R.Prim(value=T.int32(3))", infos.PrimStructInfo(value=op.const(3, "int32"))),
    ("R.Object", infos.ObjectStructInfo()),
    ("R.Object()", infos.ObjectStructInfo()),
    ("R.Tuple", infos.TupleStructInfo([])),
    ("R.Tuple()", infos.TupleStructInfo([])),
    ("R.Tuple(R.Object)", infos.TupleStructInfo([infos.ObjectStructInfo()])),
    ("R.Tuple([R.Object, R.Tensor])",
     infos.TupleStructInfo([infos.ObjectStructInfo(), ANY])),
    ("R.Tuple(R.Tuple(R.Object), R.Shape(ndim=1))", infos.TupleStructInfo(
        [infos.TupleStructInfo([infos.ObjectStructInfo()]), infos.ShapeStructInfo(ndim=1)])),
    ("R.Callable", infos.FuncStructInfo.opaque_func()),
    ("R.Callable()", infos.FuncStructInfo.opaque_func()),
    ("R.Callable(ret=R.Tensor)", infos.FuncStructInfo.opaque_func(ret=ANY)),
    ("R.Callable(purity=True)", infos.FuncStructInfo.opaque_func(purity=True)),
    ("R.Callable(R.Object, R.Object)",
     infos.FuncStructInfo([infos.ObjectStructInfo()], infos.ObjectStructInfo())),
    ("R.Callable((), R.Object, False)",
     infos.FuncStructInfo([], infos.ObjectStructInfo(), purity=False)),
    ("Tensor((2,), 'int8')", infos.TensorStructInfo((2,), "int8")),
    ("Object", infos.ObjectStructInfo()),
    ("Tuple(Shape(ndim=1))", infos.TupleStructInfo([infos.ShapeStructInfo(ndim=1)])),
    ("R.TensorProxy((2,))", infos.TensorStructInfo((2,), "")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), ANNOTATIONS, ids=[row[0] for row in ANNOTATIONS])
def test_an_annotation(text, wanted):
    (info,) = params(f"x: {text}")
    assert structural_equal(info, wanted)


WRONG = [
    ("R.Tensor(4)", "R.Tensor: the shape must be a tuple or a list, got 4"),
    ("R.Tensor((2,), 'float33')", "expected one of float16, float32, float64, got 'float33'"),
    ("R.Tensor((2, 3), ndim=3)", "TensorStructInfo: shape of rank 2, but ndim=3"),
    ("R.Tensor((2.5,))", "a dimension must be an integer, got float32"),
    ("R.Tensor((4, -2))", "a dimension must not be negative, got -2 in (4, -2)"),
    ("R.Shape([-1])", "a dimension must not be negative, got -1 in (-1,)"),
    ("R.Tensor((2,), 'float32', 'llvm')", "the module has no virtual device 'llvm'"),
    ("R.Shape([2.5])", "a dimension must be an integer, got float32"),
    ("R.Tuple(3)", "expected struct info such as R.Tensor((2, 3), 'float32'), got int: 3"),
    ("R.Callable((3,), R.Object)", "expected struct info such as R.Tensor((2, 3), 'float32'), got"),
    ("R.Prim('foo')", "expected a data type such as 'float32', 'int64' or 'bool', got 'foo'"),
    ("R.Prim", "PrimStructInfo: expected a dtype or a value"),
    ("'R.Tensor'", "expected struct info such as R.Tensor((2, 3), 'float32'), got str: 'R.Tensor'"),
    ("T.int32", "expected struct info such as R.Tensor((2, 3), 'float32'), got Var"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_annotation(text, message):
    found, place = error_of(f"@R.function\ndef main(x: {text}):\n    return x")
    assert found.startswith(message)
    assert place in (text, f"x: {text}")


def test_outside_of_functions_symbols_are_open():
    proxy = R.Tensor(("n", 4), "float32")
    assert isinstance(proxy, StructInfoProxy)
    assert isinstance(R.Tuple(proxy, R.Object), StructInfoProxy)
    assert isinstance(R.Callable((proxy,), R.Object), StructInfoProxy)
    assert isinstance(R.Prim(value="n"), StructInfoProxy)
    assert isinstance(R.Shape(["n"]), StructInfoProxy)
    with pytest.raises(IRValueError, match="the symbolic dimension 'n' belongs inside an R.funct"):
        proxy.as_struct_info()
    assert structural_equal(R.Tensor((2, 4), "float32"), infos.TensorStructInfo((2, 4), "float32"))


def test_what_stands_for_no_struct_info():
    assert as_struct_info(None) == infos.TupleStructInfo([])
    assert as_struct_info(R.Object) == infos.ObjectStructInfo()
    with pytest.raises(IRTypeError, match="expected struct info such as R.Tensor.*, got int: 3"):
        as_struct_info(3)


def test_annotations_of_python_and_of_texts_are_the_same():
    @R.function(private=True)
    def decorated(x: R.Tensor(("n", "n * 2"), "float32"), s: R.Shape(["n"])):
        return R.add(x, x)

    text = from_source("""
@R.function(private=True)
def decorated(x: R.Tensor(("n", "n * 2"), "float32"), s: R.Shape(["n"])):
    return R.add(x, x)
""")
    assert structural_equal(decorated, text)


def test_the_declared_result_must_fit():
    message, place = error_of("""
@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((5,), "float32"):
    return x
""")
    assert message == (
        'function main: declared to return R.Tensor((5,), dtype="float32"), but returns '
        'R.Tensor((4,), dtype="float32")'
    )
    assert place.startswith("def main(")


@pytest.mark.parametrize("declared", ["R.Tensor((4,), 'float32')", "R.Tensor(ndim=1)", "R.Object"])
def test_a_result_that_says_less_takes_what_the_body_knows(declared):
    text = "@R.function\ndef main(x: R.Tensor((4,), 'float32')) -> {}:\n    return x\n"
    func = from_source(text.format(declared))
    assert structural_equal(func.ret_struct_info, infos.TensorStructInfo((4,), "float32"))


def test_a_result_that_says_more_is_believed():
    func = from_source(
        "@R.function\ndef main(x: R.Tensor(ndim=1)) -> R.Tensor((4,), 'int8'):\n    return x\n"
    )
    assert structural_equal(func.ret_struct_info, infos.TensorStructInfo((4,), "int8"))


def test_a_tuple_result_only_says_that_it_is_one():
    func = from_source(
        "@R.function\ndef main(x: R.Tensor((4,), 'float32')) -> R.Tuple:\n    return x, x\n"
    )
    assert len(func.ret_struct_info.fields) == 2


def test_tir_types_are_used_for_dtypes():
    assert structural_equal(R.Tensor((2,), T.int8), infos.TensorStructInfo((2,), "int8"))
