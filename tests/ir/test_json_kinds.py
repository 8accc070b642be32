"""Over each kind of node there is, and random functions: JSON and back, digests and equality."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.lib.generate import random_prim_func
from tests.lib.programs import matmul
from weft import ir, relax, te, tir
from weft.ir.node import NODE_TYPES, Array, Map, Node
from weft.ir.structural import compared_fields, structural_digest
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.struct_info import DTensorStructInfo, Placement
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

ROOMS = ("weft.ir.", "weft.tir.", "weft.relax.", "weft.te.")


@I.ir_module
class Graph:
    I.module_global_infos({"vdevice": [I.vdevice("llvm", 0)], "dummy": [I.dummy_global_info()]})

    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), flag: R.Tensor((), "bool"), pair: R.Tuple(R.Object)
    ) -> R.Object:
        n = T.int64()
        m = T.int64()
        if flag:
            y = R.add(x, R.const(1.5, "float32"))
        else:
            y = R.multiply(x, x)
        with R.dataflow():
            lv = R.match_cast(y, R.Tensor((m, 4), "float32"))
            both = R.tuple(lv, R.shape([n, 4]), R.prim_value(n), R.str("t"), R.dtype("int8"))
            first = both[0]
            packed = R.call_pure_packed("env.function", first, sinfo_args=R.Tensor(ndim=2))
            R.output(packed, lv)
        return packed


@T.prim_func(check_well_formed=False)
def statements(a: T.handle, n: T.int32, threshold: T.float32):
    A = T.match_buffer(a, (16, n), strides=[T.int32(), 1], offset_factor=4)
    B = T.alloc_buffer((16,), "float32", scope="shared")
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.parallel(4, annotations={"hint": [1, "two"]}):
            with T.block("sum"):
                vi = T.axis.spatial(16, i * 4 + j)
                vk = T.axis.reduce(n, T.truncmod(j, 2))
                T.where(i < 3)
                T.block_attr({"key": 0.5})
                C = T.match_buffer(A[vi, 0:n], (n,), strides=["s"], offset_factor=1)
                with T.init():
                    B[vi] = T.max_value("float32")
                B[vi] = T.min(B[vi], C[vk])
    while B[0] > threshold:
        if (n >= 2 and not (n == 3)) or n != 5:
            B[0] = T.Select(n <= 4, T.exp(B[0]), T.max(B[0], -B[1])) / T.float32(2)
        else:
            with T.LetStmt(n - T.truncdiv(n, 2)) as half:
                T.evaluate(half // 3 % 4 + half * n)
    with T.attr("scope", "pragma", 1):
        with T.Assert(n < 7, "small"):
            B[0:4] = T.Broadcast(T.Cast("float32", n), 4)
            B[T.Ramp(0, 2, 4)] = T.Shuffle([T.float32(1), T.float32(2)] * 2, [0, 1, 2, 3])
    data = T.allocate([16], "int8", "global")
    shown = T.decl_buffer([16], "int8", data=data)
    shown[0] = T.int8(1)
    fixed = T.allocate_const([1, 2, 3], "int32", [3])
    T.evaluate(T.Let(fixed[0] if False else n, where={n: n}))


def tensors() -> list[Node]:
    x = te.placeholder((4, te.size_var("k")), name="x")
    axis = te.reduce_axis((0, 8), "r")
    total = te.compute((4,), lambda i: te.sum(x[i, axis], axis=axis), name="total")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        ib.buffer_ptr(outs[0])[0] = ib.buffer_ptr(ins[0])[0]
        return ib.get()

    return [x, total, te.extern((1,), [total], body, name="extern", dtype="float32")]


def others() -> list[Node]:
    word = ir.PrimType("int32")
    pointer = ir.PointerType(word, "shared")
    buffer = tir.decl_buffer((8, 8), "float32", name="b")
    realize = tir.BufferRealize(
        buffer, [ir.Range(0, 8), ir.Range(0, 8)], tir.IntImm("bool", 1), tir.Evaluate(0)
    )
    function = relax.FuncStructInfo([relax.ObjectStructInfo()], relax.PrimStructInfo("int64"))
    return [
        ir.TupleType([word, pointer]), ir.FuncType([word], ir.TupleType([])), realize, function,
        relax.ExternFunc("env.f"), relax.TupleStructInfo([function]), ir.VDevice("llvm", 1, "g"),
        relax.ShapeStructInfo(ndim=2), ir.Op.get("tir.exp"), relax.Var("free", function),
        tir.IndexMap.from_func(lambda i, j: [j * 4, i]),
        DTensorStructInfo(
            relax.TensorStructInfo((4, 4), "float32"), DeviceMesh((2,), ir.Range(0, 2)),
            Placement.from_text("S[0]"),
        ),
        tir.TensorIntrin(matmul, matmul),
        tir.comm_reducer(lambda a, b: a + b, lambda dtype: tir.const(0, dtype))(
            tir.Var("v", "int32"), tir.IterVar((0, 4), "k", tir.IterVar.CommReduce)
        ),
    ]  # fmt: skip


def walk(root) -> list[Node]:
    """Every node below ``root``, through all that it keeps."""
    found, seen, stack = [], set(), [root]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Node):
            found.append(value)
            slots = type(value)._all_slots_ - {"_cache", "_summary", "span", "__weakref__"}
            stack.extend([getattr(value, name, None) for name in slots])
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, dict):
            stack.extend([*value, *value.values()])
    return found


EXAMPLES = [Graph, statements, *tensors(), *others()]


def names_of(kinds) -> list[str]:
    return sorted({kind.KIND for kind in kinds if kind.__module__.startswith(ROOMS)})


def test_there_is_an_example_of_every_kind_of_node():
    met = {type(node) for example in EXAMPLES for node in walk(example)}
    missing = set(names_of(NODE_TYPES.values())) - set(names_of(met))
    assert not missing, f"EXAMPLES has no {', '.join(sorted(missing))}: add one"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_each_example_comes_back_whole(example):
    text = ir.save_json(example)
    back = ir.load_json(text)
    ir.assert_structural_equal(back, example, map_free_vars=True)
    assert ir.save_json(back) == text
    json.loads(text)
    before, after = walk(example), walk(back)
    assert [type(node) for node in before] == [type(node) for node in after]
    for old, new in zip(before, after, strict=True):
        for name in type(old)._all_slots_ - {"_cache", "_summary", "span", "__weakref__"}:
            mine, its = getattr(old, name, None), getattr(new, name, None)
            assert type(mine) is type(its), (old, name)
            if isinstance(mine, bool | int | float | str):
                assert repr(mine) == repr(its)
            if isinstance(mine, Array | Map):
                assert len(mine) == len(its)


@given(st.integers(0, 10_000))
@settings(max_examples=40)
def test_random_functions_come_back_with_the_same_text_and_hash(seed):
    with np.errstate(over="ignore"):
        func = random_prim_func(seed).func
    text = ir.save_json(func)
    back = ir.load_json(text)
    assert back.script(show_meta=True) == func.script(show_meta=True)
    assert ir.structural_hash(back) == ir.structural_hash(func)
    assert ir.save_json(back) == text


@pytest.mark.parametrize("value", [weft.runtime.String("a\x01"), weft.runtime.ShapeTuple([2, 3])])
def test_values_of_the_runtime_keep_their_class(value):
    back = ir.load_json(ir.save_json([value, {"key": value}]))
    assert back == [value, {"key": value}]
    assert type(back[0]) is type(back[1]["key"]) is type(value)


def with_field(item: Node, name: str, value) -> Node:
    """A copy with one field set to anything, past the checks of the constructor."""
    copy = object.__new__(type(item))
    for slot in type(item)._all_slots_ - {"__weakref__", "_cache"}:
        if hasattr(item, slot):
            setattr(copy, slot, getattr(item, slot))
    copy._cache = None
    setattr(copy, name, value)
    return copy


def other_values(value) -> list:
    """Values beside that of a field, some of which look like a piece of a digest's text."""
    plain = [f"{value}", f"{value}n3;", "x)StringImm(sy", "", 0, 1, None, [], [value], {}]
    pointer = ir.PointerType(ir.PrimType("int8"))
    return [*plain, {"k": value}, tir.StringImm("x"), tir.Var("fresh", "int32"), pointer]


def test_the_digest_sees_every_field_that_equality_compares():
    checked = set()
    for item in {type(node): node for example in EXAMPLES for node in walk(example)}.values():
        digest = structural_digest(item, True)
        for name, _ in compared_fields(item):
            if not hasattr(item, name):
                continue  # a kind of variable that has no such field
            for value in other_values(getattr(item, name)):
                changed = with_field(item, name, value)
                equal = ir.structural_equal(item, changed, map_free_vars=True)
                assert (structural_digest(changed, True) == digest) is equal, (item, name, value)
                if not equal:
                    checked.add((type(item).KIND, name))
    assert ("Var", "type_annotation") in checked
    assert ("RelaxVar", "struct_info") in checked
    assert ("StringImm", "value") in checked


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("[]{}()#:;nps01", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("k:;1", max_size=2), inner, max_size=2)
        | st.text("sx)(S;1", max_size=3).map(tir.StringImm)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        (["a", "bpsc"], ["apsb", "c"]),
        (["ap2;sb", "c"], ["a", "b2;sc"]),
        ({"a": "b", "c": "d"}, {"a": "bkc-1:psd", "": ""}),
        ([["a"], "b"], ["[1;psa", "b"]),
        ([tir.StringImm("a"), "b"], [tir.StringImm("apsb"), ""]),
    ],
)
def test_a_text_does_not_run_into_what_follows(lhs, rhs):
    """Without their lengths, the parts of these pairs are the same bytes, or nearly."""
    assert structural_digest(lhs) != structural_digest(rhs)


@given(SMALL, SMALL)
@settings(max_examples=400)
def test_values_have_one_digest_exactly_where_they_are_equal(lhs, rhs):
    same = structural_digest(lhs) == structural_digest(rhs)
    assert same is ir.structural_equal(lhs, rhs)
