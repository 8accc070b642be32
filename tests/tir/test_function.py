"""PrimFunc: parameters, attributes, and functions with parameters fixed."""

from __future__ import annotations

import json

import pytest

from weft import ir, relax, tir
from weft.script import tir as T


def test_buffers_among_the_parameters_get_handles():
    buffer, n = tir.decl_buffer((4,), name="A"), tir.Var("n", "int32")
    func = tir.PrimFunc([buffer, n], tir.Evaluate(n))
    assert [param.dtype for param in func.params] == ["handle", "int32"]
    assert func.buffer_map[func.params[0]] is buffer
    assert func.attrs == {}
    assert func.ret_type == ir.TupleType([])


def test_parameters_are_variables_or_buffers():
    with pytest.raises(TypeError, match="a parameter must be a Var or a Buffer, got int"):
        tir.PrimFunc([1], tir.Evaluate(0))


def test_with_body_keeps_everything_else():
    func = tir.PrimFunc([tir.decl_buffer((4,))], tir.Evaluate(0)).with_attr("a", 1)
    func.provenance = "te"
    changed = func.with_body(tir.Evaluate(1))
    assert changed.buffer_map is func.buffer_map
    assert changed.attrs is func.attrs
    assert changed.provenance == "te"
    assert func.with_body(func.body) is func


@T.prim_func
def copy(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_specialize_by_number():
    n = copy.params[2]
    fixed = copy.specialize({n: 8})
    assert len(fixed.params) == 2
    assert all(buffer.shape == [8, 4] for buffer in fixed.buffer_map.values())
    assert "T.grid(8, 4)" in fixed.script()


def test_specialize_by_buffer():
    fixed = copy.specialize({copy.params[0]: tir.decl_buffer((16, 4))})
    shapes = [buffer.shape[0] for buffer in fixed.buffer_map.values()]
    assert shapes == [16, 16]


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (tir.decl_buffer((16,)), "A is float32 of 2 dimensions, got float32 of 1"),
        (tir.decl_buffer((16, 5)), "A has an extent 4, got 5"),
        (tir.decl_buffer((16, 4), "int8"), "A is float32 of 2 dimensions, got int8 of 2"),
    ],
)
def test_specialize_refuses_what_does_not_match(buffer, message):
    with pytest.raises(ValueError, match=message):
        copy.specialize({copy.params[0]: buffer})


def test_specialize_refuses_what_is_no_parameter():
    with pytest.raises(ValueError, match="m is not a parameter of the function"):
        copy.specialize({tir.Var("m", "int32"): 1})


def test_specialize_by_nothing_is_the_function():
    @T.prim_func
    def f(n: T.int32):
        T.evaluate(n)

    assert f.specialize({}) is f


def test_specialize_folds_and_takes_strides_and_offset():
    @T.prim_func(private=True)
    def f(a: T.handle, b: T.handle, step: T.int32, start: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n // 8, 8), "int32")
        B = T.match_buffer(b, (n,), "int32", strides=[step], elem_offset=start)
        for i in range(n - 1):
            B[i] = A[i // 8, i % 8] + (n + 1) * 2

    memory = tir.decl_buffer([16], "int32", strides=[2], elem_offset=4)
    made = f.specialize({f.params[1]: memory})
    assert [param.name for param in made.params] == ["a", "b"]
    assert [int(size) for size in made.buffer_map[made.params[0]].shape] == [2, 8]
    assert int(made.buffer_map[made.params[1]].elem_offset) == 4
    assert int(made.body.extent) == 15
    assert str(made.body.body.value).endswith("+ 34")


def test_max_of_several_and_rounding_of_constants():
    assert int(tir.max(*range(5))) == 4
    assert int(tir.min(3, 1, 2)) == 1
    assert tir.ceil(tir.const(3.5, "float32")).value == 4.0
    assert tir.round(tir.const(2.5, "float32")).value == 2.0


def test_one_buffer_for_two_parameters_is_refused():
    buffer = tir.decl_buffer((4,), "float32", "A")
    with pytest.raises(ValueError, match="buffer A stands for two parameters"):
        tir.PrimFunc([buffer, buffer], tir.Evaluate(0))


def test_a_graph_sees_buffers_as_tensors():
    expected = relax.FuncStructInfo(
        [
            relax.TensorStructInfo((8, 4), "float32"),
            relax.TensorStructInfo((8, 4), "float32"),
        ],
        relax.TupleStructInfo([]),
        purity=False,
    )
    fixed = copy.specialize({copy.params[2]: 8})
    ir.assert_structural_equal(fixed.struct_info, expected)
    assert copy.struct_info.params[1].shape.values[0] is copy.params[2]
    assert fixed.with_attr("a", 1).struct_info == fixed.struct_info
    assert "struct_info" not in ir.save_json(fixed)


def test_a_function_that_only_reads_is_pure():
    @T.prim_func
    def total(a: T.Buffer((16,), "float32"), start: T.float32) -> T.float32:
        result = T.decl_buffer([], "float32")
        result[()] = start
        for i in range(16):
            result[()] = result[()] + a[i]
        T.ret(result[()])

    expected = relax.FuncStructInfo(
        [relax.TensorStructInfo((16,), "float32"), relax.PrimStructInfo("float32")],
        relax.PrimStructInfo("float32"),
        purity=True,
    )
    ir.assert_structural_equal(total.struct_info, expected)


def test_a_text_that_stored_struct_info_is_read():
    text = json.loads(ir.save_json(copy))
    fields = next(
        entry[2] for entry in text["entries"] if entry[1:2] == ["weft.tir.function:PrimFunc"]
    )
    fields["struct_info"] = None
    ir.assert_structural_equal(ir.load_json(json.dumps(text)), copy)


def test_specialize_a_pointer_by_an_expression():
    @T.prim_func(private=True)
    def scale(a: T.handle("float32"), b: T.handle("float32")):
        A = T.decl_buffer((32,), "float32", data=a)
        B = T.decl_buffer((16,), "float32", data=b)
        for i in range(16):
            B[i] = A[i] * 2.0

    @T.prim_func(private=True)
    def expected(a: T.handle("float32")):
        A = T.decl_buffer((32,), "float32", data=a)
        b: T.handle("float32") = T.address_of(A[16])
        B = T.decl_buffer((16,), "float32", data=b)
        for i in range(16):
            B[i] = A[i] * 2.0

    pointer = tir.address_of(scale.body.buffer[16])
    ir.assert_structural_equal(scale.specialize({scale.params[1]: pointer}), expected)
