"""What a summary says of a node, and that walks pass by only what they have nothing to do with."""

from __future__ import annotations

import random

import numpy as np

from weft import te
from weft.ir.expr import IntImm
from weft.ir.functor import Mutator, Visitor, collect, post_order_visit, substitute
from weft.ir.node import NODE_TYPES, Node, summary_of
from weft.ir.summary import IDENTITIES, bits_of, identities
from weft.script import tir as T
from weft.tir.expr import Add, BinaryExpr, Call, Mul, PrimExpr, Select, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, IfThenElse


@T.prim_func
def branches(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            if vi * 2 < n:
                B[vi, vj] = T.exp(A[vi, vj]) + T.float32(1)
            else:
                B[vi, vj] = T.Select(vj < 3, A[vi, vj], T.float32(0))


def everything_in(root: Node) -> list[Node]:
    nodes: list[Node] = []
    post_order_visit(root, nodes.append)
    return nodes


def test_a_summary_is_the_union_of_what_is_there():
    for node in everything_in(branches):
        inside = everything_in(node)
        classes = 0
        for part in inside:
            classes |= type(part).BIT
        assert summary_of(node) & ~IDENTITIES == classes
        named = [part for part in inside if part.IS_IDENTIFIED]
        assert summary_of(node) & IDENTITIES == identities(named)


def test_each_class_has_a_bit_of_its_own():
    bits = [kind.BIT for kind in NODE_TYPES.values() if not kind.IS_OPEN]
    assert len(set(bits)) == len(bits)
    assert all(bit & IDENTITIES == 0 and bit.bit_count() == 1 for bit in bits)


def test_bits_of_a_base_are_those_of_its_classes():
    assert bits_of(BinaryExpr) & (Add.BIT | Mul.BIT) == Add.BIT | Mul.BIT
    assert bits_of(BinaryExpr) & Call.BIT == 0
    assert bits_of((Call, Select)) == Call.BIT | Select.BIT
    assert bits_of(Var) == Var.BIT | SizeVar.BIT


def test_collect_is_a_filter_of_the_whole_walk():
    nodes = everything_in(branches)
    for kind in (*NODE_TYPES.values(), PrimExpr, BinaryExpr):
        assert collect(branches, kind) == [node for node in nodes if isinstance(node, kind)]


def test_a_module_is_open_and_never_passed_by():
    module = te.create_prim_func([te.placeholder((4,), name="A")])
    from weft.ir.module import IRModule

    mod = IRModule({"main": module})
    assert collect(mod, Select) == []
    mod["other"] = branches
    assert len(collect(mod, Select)) == 1


class _Loops(Visitor):
    def __init__(self) -> None:
        self.names: list[str] = []

    def visit_For(self, node: For) -> None:
        self.names.append(node.loop_var.name)
        self.visit_default(node)


class _Constants(Mutator):
    def visit_IntImm(self, node: IntImm) -> IntImm:
        return IntImm(node.dtype, node.value + 1) if node.value == 3 else node


class _Everything(Visitor):
    def __init__(self) -> None:
        self.count = 0

    def visit_default(self, node: Node) -> None:
        self.count += 1
        Visitor.visit_default(self, node)


def test_walks_find_what_they_have_methods_for():
    for _ in range(2):  # the second time the classes without methods are known
        loops = _Loops()
        loops.visit(branches.body)
        assert loops.names == ["i", "j"]
        stores = collect(_Constants().visit(branches.body), BufferStore)
        assert any("vj < 4" in str(store) for store in stores)
        assert (
            _Constants().visit(collect(branches, IfThenElse)[0].then_case)
            is collect(branches, IfThenElse)[0].then_case
        )


def test_a_walk_with_a_default_of_its_own_sees_every_node():
    for _ in range(2):
        walk = _Everything()
        walk.visit(branches.body)
        assert walk.count >= len(everything_in(branches.body))


def test_a_method_of_a_subclass_counts_though_its_base_has_none():
    class Base(Visitor):
        def visit_BufferStore(self, node: BufferStore) -> None:
            pass

    class Selects(Base):
        def __init__(self) -> None:
            self.seen = 0

        def visit_BufferStore(self, node: BufferStore) -> None:
            self.visit_default(node)

        def visit_Select(self, node: Select) -> None:
            self.seen += 1

    Base().visit(branches.body)
    walk = Selects()
    walk.visit(branches.body)
    assert walk.seen == 1


def test_substitution_of_random_variables_equals_a_walk_over_everything():
    rng = random.Random(0)
    variables = [Var(f"v{index}", "int32") for index in range(100)]
    for _ in range(200):
        expr: PrimExpr = variables[rng.randrange(100)]
        for _ in range(rng.randrange(1, 12)):
            other = rng.choice([rng.choice(variables), IntImm("int32", rng.randrange(9))])
            expr = rng.choice([Add, Mul])(*rng.sample([expr, other], 2))
        values = {variable: rng.randrange(-9, 9) for variable in variables}
        chosen = rng.sample(variables, rng.randrange(1, 40))
        part = substitute(expr, {var: IntImm("int32", values[var]) for var in chosen})
        assert not {id(var) for var in chosen} & {id(var) for var in collect(part, Var)}
        whole = substitute(part, {var: IntImm("int32", value) for var, value in values.items()})
        names = {var.name: np.int64(value) for var, value in values.items()}
        assert _value(whole, names) == _value(expr, names)


def _value(expr: PrimExpr, names: dict[str, np.int64]) -> int:
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, Var):
        return int(names[expr.name])
    assert isinstance(expr, Add | Mul)
    a, b = _value(expr.a, names), _value(expr.b, names)
    return a + b if isinstance(expr, Add) else a * b


def test_a_function_keeps_its_identity_where_nothing_changes():
    assert isinstance(branches, PrimFunc)
    other = Var("other", "int32")
    assert substitute(branches.body, {other: IntImm("int32", 1)}) is branches.body
