"""Structural equality and hash: what counts, how variables map, and what the error shows."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.lib.generate import random_prim_func
from weft import ir, nd, relax, te, tir, topi
from weft.ir.functor import Mutator
from weft.ir.structural import first_difference, structural_digest, structural_key
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def both(lhs, rhs, **options):
    """Equality, checked to agree with the hash."""
    equal = ir.structural_equal(lhs, rhs, **options)
    assert ir.structural_equal(rhs, lhs, **options) is equal
    if equal:
        assert ir.structural_hash(lhs, **options) == ir.structural_hash(rhs, **options)
    return equal


def program(seed):
    with np.errstate(over="ignore"):  # arguments beyond the range of float16
        return random_prim_func(seed).func


def var(name="x", dtype="int32"):
    return tir.Var(name, dtype)


def test_free_variables_are_equal_to_themselves_only():
    x, y = var(), var()
    assert both(x + 1, x + 1)
    assert not both(x + 1, y + 1)


def test_free_variables_map_on_demand():
    x, y = var("x"), var("y")
    assert both(x + 1, y + 1, map_free_vars=True)
    assert not both(x + y, x + x, map_free_vars=True)
    assert not both(x + x, x + y, map_free_vars=True)
    assert not both(x + 1, var("x", "int64") + 1, map_free_vars=True)


def test_a_variable_met_in_a_shared_part_is_mapped_too():
    x, y = var("x"), var("y")
    shared = tir.Mul(x, x)
    assert not both(tir.Add(shared, x), tir.Add(shared, y), map_free_vars=True)


def test_defined_variables_map_to_each_other():
    def loop(name, body):
        i = var(name)
        return tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(body(i)))

    assert both(loop("i", lambda i: i), loop("j", lambda j: j))
    assert not both(loop("i", lambda i: i), loop("j", lambda j: j + 1))
    outer = var("n")
    assert not both(loop("i", lambda i: i), loop("j", lambda j: outer))


def test_one_variable_does_not_stand_for_two():
    def let(same):
        x, y = var("x"), var("y")
        used = x if same else y
        return tir.Let(x, ir.IntImm("int32", 1), tir.Let(y, ir.IntImm("int32", 2), x + used))

    assert both(let(True), let(True))
    assert not both(let(True), let(False))


def test_buffers_are_compared_by_what_they_are_and_by_sharing():
    def program(first, second, shape=(4,), dtype="float32"):
        a = tir.decl_buffer(shape, dtype, name="A")
        b = tir.decl_buffer(shape, dtype, name="B")
        names = {"a": a, "b": b}
        store = tir.BufferStore(names[first], tir.BufferLoad(names[second], [0]), [0])
        return tir.PrimFunc([a, b], store)

    assert both(program("a", "b"), program("a", "b"))
    assert not both(program("a", "b"), program("b", "a"))
    assert not both(program("a", "b"), program("a", "a"))
    assert not both(program("a", "b"), program("a", "b", shape=(5,)))
    assert not both(program("a", "b"), program("a", "b", dtype="float64"))


@pytest.mark.parametrize(
    ("lhs", "rhs", "equal"),
    [
        (ir.FloatImm("float32", float("nan")), ir.FloatImm("float32", float("nan")), True),
        (ir.FloatImm("float32", 0.0), ir.FloatImm("float32", -0.0), False),
        (ir.FloatImm("float32", 1.0), ir.FloatImm("float64", 1.0), False),
        (ir.IntImm("int32", 1), ir.IntImm("int64", 1), False),
        (ir.IntImm("bool", 1), ir.IntImm("int8", 1), False),
        (tir.StringImm("a"), tir.StringImm("a"), True),
        ([1, 2], (1, 2), True),
        ([1, 2], [1, 2, 3], False),
        (1, 1.0, False),
        (1, True, False),
        (np.float32(0.5), 0.5, True),
        ("float32", weft.DataType("float32"), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (tir.ForKind.SERIAL, 0, True),
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (None, 0, False),
        (nd.array(np.arange(3)), nd.array(np.arange(3)), True),
        (nd.array(np.arange(3)), nd.array(np.arange(3, dtype="int32")), False),
        (nd.array(np.zeros(3)), nd.array(np.ones(3)), False),
        (weft.Target("llvm"), weft.Target("llvm"), True),
        (tir.Var("x", "int32"), tir.SizeVar("x", "int32"), False),
        (ir.GlobalVar("f"), ir.GlobalVar("f"), True),
        (ir.GlobalVar("f"), ir.GlobalVar("g"), False),
        (ir.Range(0, 4), ir.Range.from_min_extent(0, 4), True),
        (ir.Op.get("tir.exp"), ir.Op.get("tir.exp"), True),
        (ir.Op.get("tir.exp"), ir.Op.get("tir.log"), False),
    ],
)
def test_values(lhs, rhs, equal):
    assert both(lhs, rhs) is equal


def test_attributes_count_and_names_of_buffers_and_variables_do_not():
    body = tir.Evaluate(0)
    assert not both(tir.PrimFunc([], body), tir.PrimFunc([], body).with_attr("a", 1))
    one, other = tir.PrimFunc([var("x")], body), tir.PrimFunc([var("y")], body)
    assert both(one, other)
    hidden = tir.PrimFunc([], body)
    hidden.provenance = "te"
    assert both(hidden, tir.PrimFunc([], body))


def test_modules_pair_functions_by_name():
    first, second = tir.PrimFunc([], tir.Evaluate(0)), tir.PrimFunc([], tir.Evaluate(1))
    assert both(ir.IRModule({"a": first, "b": second}), ir.IRModule({"b": second, "a": first}))
    assert not both(ir.IRModule({"a": first}), ir.IRModule({"b": first}))
    assert not both(ir.IRModule({"a": first}), ir.IRModule({"a": first}, attrs={"k": 1}))


def test_graphs_map_their_variables_and_symbolic_extents():
    def graph(name):
        n = tir.Var(name, "int64")
        x = relax.Var(name, relax.TensorStructInfo((n, 4), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            with builder.dataflow():
                out = builder.emit_output(relax.op.add(x, x))
            builder.emit_func_output(out)
        return builder.get()

    assert both(graph("x"), graph("y"))


# ---- the report


@I.ir_module
class Left:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + T.float32(1.0)


def changed(old, new):
    class Change(Mutator):
        def visit_FloatImm(self, imm):
            return ir.FloatImm("float32", new) if imm.value == old else imm

    return ir.IRModule({"main": Change().visit(Left["main"])})


def test_the_first_difference_has_a_path_and_both_sides():
    found = first_difference(Left, changed(1.0, 2.0))
    assert found.path.endswith(".body.value.b.value")
    assert (found.lhs, found.rhs, found.reason) == (1.0, 2.0, "the values differ")
    assert ir.get_first_structural_mismatch(Left, Left) is None


def test_the_error_shows_the_paths_and_the_lines_with_the_place_underlined():
    with pytest.raises(ValueError, match="StructuralEqual check failed, caused by lhs") as caught:
        ir.assert_structural_equal(Left, changed(1.0, 2.0))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("StructuralEqual check failed, caused by lhs at <root>.functions[")
    assert lines[0].endswith(".body.value.b.value: 1.0")
    assert lines[1:4] == [
        "                T.writes(B[vi])",
        "                B[vi] = A[vi] + T.float32(1.0)",
        "                                ^^^^^^^^^^^^^^",
    ]
    assert lines[4].startswith("and rhs at <root>.")
    assert lines[4].endswith(".body.value.b.value: 2.0")
    assert lines[-1] == "the values differ"
    assert len(lines) <= 10


def message_of(lhs, rhs) -> list[str]:
    with pytest.raises(ValueError, match="StructuralEqual check failed") as caught:
        ir.assert_structural_equal(lhs, rhs)
    lines = str(caught.value).splitlines()
    assert len(lines) <= 10
    return lines


def test_a_variable_is_underlined_where_it_is_used():
    @T.prim_func(private=True)
    def straight(A: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            A[i, j] = A[i, j] + T.float32(1)

    @T.prim_func(private=True)
    def turned(A: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            A[i, j] = A[j, i] + T.float32(1)

    lines = message_of(straight, turned)
    assert lines[0].endswith("<root>.body.body.body.value.a.indices[0]: i")
    place = "                    ^"
    assert lines[2:4] == ["        A[i, j] = A[i, j] + T.float32(1.0)", place]
    assert lines[6:8] == ["        A[i, j] = A[j, i] + T.float32(1.0)", place]


def test_kinds_of_loops_and_whole_statements_are_underlined_at_their_first_line():
    @T.prim_func(private=True)
    def serial(A: T.Buffer(4, "float32")):
        for i in range(4):
            A[i] = T.float32(0)

    @T.prim_func(private=True)
    def parallel(A: T.Buffer(4, "float32")):
        for i in T.parallel(4):
            A[i] = T.float32(0)

    @T.prim_func(private=True)
    def once(A: T.Buffer(4, "float32")):
        A[0] = T.float32(0)

    lines = message_of(serial, parallel)
    assert lines[0].endswith("<root>.body.kind: <ForKind.SERIAL: 0>")
    assert lines[2:4] == ["    for i in range(4):", "    ^^^^^^^^^^^^^^^^^^"]
    assert lines[6:8] == ["    for i in T.parallel(4):", "    ^^^^^^^^^^^^^^^^^^^^^^^"]
    lines = message_of(serial, once)
    assert lines[0].endswith("<root>.body: For")
    assert lines[4].endswith("<root>.body: BufferStore")
    assert lines[6:8] == ["    A[0] = T.float32(0.0)", "    ^^^^^^^^^^^^^^^^^^^^^"]
    assert lines[-1] == "the kinds of node differ: For and BufferStore"


def test_what_one_side_lacks_has_a_path_that_says_so():
    with_key = tir.PrimFunc([], tir.Evaluate(0)).with_attr("key", 1)
    lines = message_of(tir.PrimFunc([], tir.Evaluate(0)), with_key)
    assert lines == [
        "StructuralEqual check failed, caused by lhs at <root>.attrs[<missing entry>]: {}",
        "and rhs at <root>.attrs[\"key\"]: {'key': 1}",
        "the keys differ: key",
    ]
    lines = message_of([1, 2], [1])
    assert lines[0].endswith("<root>[1]: [1, 2]")
    assert lines[1].endswith("<root>[<missing element #1>]: [1]")


@pytest.mark.parametrize(
    ("lhs", "rhs", "text"),
    [
        (tir.Add(var(), ir.IntImm("int32", 1)), tir.Sub(var(), ir.IntImm("int32", 1)),
         "the kinds of node differ: Add and Sub"),
        ([1, 2], [1], "the lengths differ: 2 and 1"),
        ({"a": 1}, {"b": 1}, "the keys differ: a, b"),
        (var(), var(), "two different free variables"),
        (ir.IRModule({"a": tir.PrimFunc([], tir.Evaluate(0))}),
         ir.IRModule({"b": tir.PrimFunc([], tir.Evaluate(0))}), "the key is missing on the right"),
    ],
)  # fmt: skip
def test_reasons(lhs, rhs, text):
    with pytest.raises(ValueError, match=text):
        ir.assert_structural_equal(lhs, rhs)


# ---- hashes


def test_hashes_are_equal_in_every_process():
    program = (
        "from weft import te, topi, ir\n"
        "x = te.placeholder((4, 4), name='x')\n"
        "f = te.create_prim_func([x, topi.nn.softmax(x)])\n"
        "print(ir.structural_hash(ir.IRModule({'main': f}, attrs={'b': 1, 'a': 'text'})))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_random_programs_equal_their_copies_and_differ_after_a_change(seed):
    func = program(seed)
    again = program(seed)
    assert again is not func
    assert both(func, again)
    assert both(func, ir.load_json(ir.save_json(func)))
    count = [0]

    class ChangeOne(Mutator):
        def visit_IntImm(self, imm):
            count[0] += 1
            if count[0] != seed % 7 + 1 or imm.dtype.is_bool:
                return imm
            return ir.IntImm(imm.dtype, imm.value - 1 if imm.value else 1)

    other = ChangeOne().visit(func)
    assert both(func, other) is (other is func)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_equality_and_digests_agree(first, second):
    one, other = program(first), program(second)
    same = structural_digest(one) == structural_digest(other)
    assert ir.structural_equal(one, other) is same


def test_equal_graphs_with_constants():
    def graph(value):
        x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            out = builder.emit(relax.op.add(x, relax.const(np.full(2, value, "float32"))))
            builder.emit_func_output(out)
        return builder.get()

    assert both(graph(1), graph(1))
    assert not both(graph(1), graph(2))


def test_te_functions_of_equal_expressions_are_equal():
    def make():
        x = te.placeholder((4, te.var("n")), name="x")
        return te.create_prim_func([x, topi.nn.softmax(x)])

    assert both(make(), make())


@R.function
def identity(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return x


def test_scripts_are_compared_like_what_is_built_by_hand():
    x = relax.Var("y", relax.TensorStructInfo((4,), "float32"))
    built = relax.Function([x], x, relax.TensorStructInfo((4,), "float32"))
    ir.assert_structural_equal(
        relax.transform.Normalize()(ir.IRModule({"f": built}))["f"],
        relax.transform.Normalize()(ir.IRModule({"f": identity.without_attr("global_symbol")}))[
            "f"
        ],
    )


def test_keys_tell_free_variables_apart_and_bound_ones_not():
    x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
    assert ir.structural_hash(x + 1) == ir.structural_hash(y + 1)
    assert structural_key(x + 1) != structural_key(y + 1)
    assert structural_key(x + 1) == structural_key(x + 1)
    assert structural_key(x + 1) != structural_key(x + 2)
    A = te.placeholder((8,), name="A")
    first, second = (te.create_prim_func([A, topi.exp(A)]) for _ in range(2))
    assert structural_key(first) == structural_key(second)
