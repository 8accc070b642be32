"""How functions are called, as their programs say it: names, extents, outputs, LLVM parameters."""

from __future__ import annotations

import json

import pytest

from weft import te
from weft.codegen.llvm.signature import parameter_texts, signature_of
from weft.runtime.call.spec import FunctionSpec
from weft.script import from_source
from weft.support.errors import CodegenError
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate


def signature(text, name="f"):
    """The signature of a function of that text."""
    return signature_of(from_source(f"@T.prim_func(s_tir=False)\ndef f{text}"), name)


def described(signature):
    """Each parameter: name, type, shape; then whether it is written."""
    return [(p.name, p.dtype, p.shape, p.is_output) for p in signature.spec.params]


def test_buffers_of_known_shapes():
    found = signature("""(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "int8")):
    for i in range(8):
        B[i] = T.Cast("int8", A[0, i])
""")
    assert described(found) == [
        ("A", "float32", (4, 8), False), ("B", "int8", (8,), True)
    ]  # fmt: skip
    assert found.kinds == ("ptr", "ptr")
    assert (found.implicit, found.ret, found.operand) == ((), None, "@weft__f")


def test_symbols_follow_the_parameters():
    found = signature("""(a: T.handle, b: T.handle, scale: T.float64, flag: T.bool):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n * 4,), "float32")
    if flag:
        B[0] = A[0, 0] * T.Cast("float32", scale)
""")
    assert [p.shape for p in found.spec.params] == [("n", 4), ("(n * 4)",), (), ()]
    assert found.spec.implicit == ("n",)
    assert found.kinds == ("ptr", "ptr", "double", "i1")
    assert [p.kind for p in found.spec.params] == ["buffer", "buffer", "scalar", "scalar"]


def test_strides_and_offsets():
    found = signature("""(a: T.handle):
    s = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", strides=(s, 1), elem_offset=0)
    A[0, 0] = T.float32(1)
""")
    (param,) = found.spec.params
    assert (param.strides, param.elem_offset, found.spec.implicit) == (("s", 1), 0, ("s",))


def test_results():
    found = signature("""(x: T.int32) -> T.int32:
    return x + 1
""")
    assert found.ret == "int32"
    assert found.spec.ret == "int32"


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("B[0] = A[0]", [False, True]),
        ("A[0] = A[0]", [True, False]),
        ("A[0] = B[0]", [True, False]),
        ("T.evaluate(A[0] + B[0])", [False, False]),
        ("A[0] = T.float32(1)\n    B[0] = T.float32(1)", [True, True]),
        ('T.call_extern("int32", "g", B.data)', [False, None]),
        ('T.call_packed("g", A)', [None, False]),
    ],
)
def test_which_buffers_a_function_writes(body, written):
    """None where code that is not here may write."""
    buffers = 'A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "float32")'
    found = signature(f"({buffers}):\n    {body}\n")
    assert [p.is_output for p in found.spec.params] == written


@pytest.mark.parametrize(
    ("body", "calls"),
    [('T.call_packed("g", A)', True), ('T.call_packed("g", 3)', False),
     ('T.call_packed("g", A.data)', True), ('T.call_packed("g", "text", 1)', False),
     ("A[0] = T.float32(1)", False)],
)  # fmt: skip
def test_whether_memory_is_handed_out(body, calls):
    found = signature(f'(A: T.Buffer((1,), "float32")):\n    {body}\n')
    assert found.spec.calls_packed is calls


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("n", "n"),
        ("max", "max_1"),
        ("min", "min_1"),
        ("abs", "abs_1"),
        ("if", "v_if"),
        ("lambda", "v_lambda"),
        ("None", "v_None"),
        ("a b", "a_b"),
        ("1st", "v_1st"),
        ("ñ", "_"),
        ("a.b", "a_b"),
        ("__builtins__", "__builtins__"),
        ("print", "print"),
    ],
)
def test_names_of_symbols_are_names_of_python(name, known_as):
    """The checks before a call are Python functions over these names."""
    n = Var(name, "int32")
    a = te.placeholder((n,), name="A")
    func = te.create_prim_func([a, te.compute((n * 2,), lambda i: a[i // 2], name="B")])
    spec = signature_of(func, "f").spec
    assert [param.shape for param in spec.params] == [(known_as,), (f"({known_as} * 2)",)]
    assert spec.implicit == (known_as,)


def test_no_two_names_are_alike():
    names = ["x", "x", "x_1", "x.1", "max"]
    func = PrimFunc([Var(name, "int32") for name in names], Evaluate(0))
    known = [param.name for param in signature_of(func, "f").spec.params]
    assert len(set(known)) == len(names)
    assert known[0] == "x"


@pytest.mark.parametrize(
    ("name", "symbol"),
    [("f", "weft__f"), ("a.b_1", "weft__a.b_1"), ("a-b", "weft__a_u2d_b"), ("ü", "weft___ufc_")],
)
def test_names_in_object_code(name, symbol):
    found = signature("():\n    T.evaluate(0)\n", name)
    assert (found.spec.name, found.spec.native_symbol) == (name, symbol)
    assert found.operand == f"@{symbol}"


def test_no_two_functions_have_one_symbol():
    """``a-b`` and ``a_u2d_b`` once had."""
    names = ["a-b", "a_u2d_b", "a_u5f_u2d_b", "a.b", "a_b", "a_u", "a_unit_b", "_u2d_"]
    symbols = [signature("():\n    T.evaluate(0)\n", name).spec.native_symbol for name in names]
    assert len(set(symbols)) == len(names)
    assert "weft__a_unit_b" in symbols  # "nit" is no number: most names stay as they are


def test_a_shape_that_no_caller_can_check():
    n = Var("n", "int32")
    data = decl_buffer((4,), "int32", "data")
    shaped = decl_buffer((data[0] + n,), "int32", "shaped")
    func = PrimFunc([n, data, shaped], BufferStore(shaped, data[0], [0]))
    with pytest.raises(CodegenError, match="expected integer arithmetic over symbols in a buffer"):
        signature_of(func, "f")


def test_parameters_of_llvm():
    text = """@T.prim_func(s_tir=False)
def f(A: T.Buffer((4, 8), "float32"), b: T.handle, flag: T.bool, x: T.float32) -> T.int64:
    {}
    n = T.int32()
    B = T.match_buffer(b, (n,), "bool")
    B[0] = flag
    return T.int64(1)
"""
    for attribute, noalias in (('T.func_attr({"tir.noalias": True})', " noalias"), ("pass", "")):
        func = from_source(text.format(attribute))
        assert parameter_texts(func, signature_of(func, "f")) == [
            f"ptr{noalias} dereferenceable(128) %p0", f"ptr{noalias} %p1", "i1 zeroext %p2",
            "float %p3", "i64 %s0", "ptr %out",
        ]  # fmt: skip


def test_a_signature_goes_to_json_and_back():
    spec = signature("""(a: T.handle, x: T.int32):
    n, s = T.int32(), T.int32()
    A = T.match_buffer(a, (n, 2), "float16", strides=(s, 1))
    A[0, 0] = T.Cast("float16", x)
""").spec
    assert FunctionSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("bool", "i1"), ("int8", "i8"), ("uint8", "i8"), ("int64", "i64"), ("float16", "half"),
     ("bfloat16", "i16"), ("float64", "double"), ("handle", "ptr")],
)  # fmt: skip
def test_scalars_of_every_type(dtype, kind):
    found = signature_of(PrimFunc([Var("x", dtype)], Evaluate(0)), "f")
    (param,) = found.spec.params
    assert found.kinds == (kind,)
    assert (param.kind, param.dtype) == ("handle" if dtype == "handle" else "scalar", dtype)
    assert (found.spec.implicit, found.spec.ret) == ((), None)
