"""Intrinsics: the types of their calls, their effects, and what is refused."""

from __future__ import annotations

import pytest

from weft import ir, tir
from weft.support.errors import IRTypeError
from weft.tir import intrinsic
from weft.tir.intrinsic import BINARY_FLOAT, UNARY_FLOAT, CallEffectKind, effect_of


@pytest.mark.parametrize("name", UNARY_FLOAT)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float32x4"])
def test_unary_functions_keep_the_type(name, dtype):
    call = getattr(intrinsic, name)(tir.Var("x", dtype))
    assert (call.dtype, call.op.name) == (dtype, f"tir.{name}")
    assert effect_of(call) == CallEffectKind.Pure


@pytest.mark.parametrize(("given", "result"), [("int32", "float32"), ("int64", "float64")])
def test_integers_are_converted(given, result):
    call = tir.exp(tir.Var("x", given))
    assert call.dtype == result
    assert isinstance(call.args[0], tir.Cast)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "nearbyint"])
def test_rounding_an_integer_is_the_integer(name):
    x = tir.Var("x", "int32")
    assert getattr(tir, name)(x) is x


@pytest.mark.parametrize("name", [name for name in BINARY_FLOAT if name != "ldexp"])
def test_binary_functions_match_types(name):
    make = getattr(intrinsic, name)
    assert make(tir.Var("x", "float64"), 1.5).dtype == "float64"
    assert make(tir.Var("x", "float16"), tir.Var("y", "float32")).dtype == "float32"
    with pytest.raises(IRTypeError, match=f"{name}: expected floating-point values, got int32"):
        make(tir.Var("x", "int32"), 2)


def test_ldexp_takes_an_integer_exponent():
    assert tir.ldexp(tir.Var("x", "float32"), tir.Var("n", "int32")).args[1].dtype == "int32"


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_predicates_are_bool_and_fold_for_integers(name):
    make = getattr(tir, name)
    assert make(tir.Var("x", "float32")).dtype == "bool"
    assert make(tir.Var("x", "float32x4")).dtype == "boolx4"
    assert make(tir.Var("x", "int32")).value == (name == "isfinite")


def test_other_types():
    x = tir.Var("x", "uint8")
    assert tir.popcount(x).dtype == "uint8"
    assert tir.clz(x).dtype == "int32"
    assert tir.reinterpret("float32", tir.Var("b", "int32")).dtype == "float32"
    assert tir.reinterpret("uint8", x) is x
    assert tir.vscale().dtype == "int32"
    assert tir.ret(x).dtype == "uint8"
    assert tir.address_of(tir.decl_buffer((4, 4))).dtype == "handle"
    assert tir.likely(ir.IntImm("bool", 1)).value == 1


def test_calls_by_name():
    assert tir.call_intrin("float32", "tir.exp", 1.0).op is ir.Op.get("tir.exp")
    assert tir.call_intrin("float32", "exp", 1.0).op is ir.Op.get("tir.exp")
    extern = tir.call_extern("int32", "puts", "text")
    assert [arg.value for arg in extern.args] == ["puts", "text"]
    assert effect_of(extern) == CallEffectKind.Opaque
    assert effect_of(tir.call_pure_extern("float32", "sinf", 1.0)) == CallEffectKind.Pure
    assert tir.call_packed("f", 1).dtype == "int32"
    assert tir.call_llvm_pure_intrin("float32", "llvm.sqrt.f32", 1.0).args[0].value == (
        "llvm.sqrt.f32"
    )


def test_calls_of_functions_of_the_module_are_opaque():
    assert effect_of(tir.Call("int32", ir.GlobalVar("f"), [])) == CallEffectKind.Opaque


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tir.reinterpret("float64", tir.Var("x", "int32")), "int32 and float64 differ in"),
        (lambda: tir.call_llvm_intrin("float32", "sqrt", 1.0), r"\(llvm.<name>\), got 'sqrt'"),
        (lambda: tir.call_intrin("float32", "expp", 1.0), "did you mean tir.exp"),
    ],
)
def test_errors(make, message):
    with pytest.raises((TypeError, KeyError), match=message):
        make()
