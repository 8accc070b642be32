"""An object that stands in many places of an expression is visited once."""

from __future__ import annotations

import pytest

from weft import relax
from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.ir.json_text import load_json, save_json
from weft.ir.module import IRModule
from weft.ir.structural import _Comparer, _Hasher, structural_equal, structural_hash
from weft.tir import op
from weft.tir.analysis import undefined_vars
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Let, Mul, Var
from weft.tir.stmt import BufferStore, Evaluate
from weft.tir.stmt_functor import redefined


def squared(value, times):
    """The value squared so often: so many objects, a tree of twice as many for each."""
    for _ in range(times):
        value = Mul(value, value)
    return value


class Count(Visitor):
    """How many multiplications were visited."""

    products = 0

    def visit_Mul(self, node):
        self.products += 1
        self.visit_default(node)


@pytest.mark.parametrize("times", [20, 40, 200])
def test_a_visitor_visits_each_object_once(times):
    count = Count()
    count.visit(squared(Var("x", "int32"), times))
    assert count.products == times


@pytest.mark.parametrize("times", [20, 40, 200])
def test_a_mutator_rebuilds_each_object_once_and_one_object_stays_one(times):
    x, y = Var("x", "int32"), Var("y", "int32")
    result = substitute(squared(x, times), {x: y})
    products = collect(result, Mul)
    assert len(products) == times
    assert all(item.a is item.b for item in products)
    assert collect(result, Var) == [y]


def test_statements_are_looked_at_one_by_one():
    """Between two stores a buffer may change, and so may what a walk knows."""
    a, count = decl_buffer((4,), "int32", "a"), Count()
    product = Mul(BufferLoad(a, [0]), BufferLoad(a, [0]))
    stores = [BufferStore(a, product, [place]) for place in range(3)]
    count.visit(stores)
    assert count.products == 3


def test_what_a_let_of_one_variable_defines_twice_is_visited_twice():
    v, x = Var("v", "int32"), Var("x", "int32")
    square = Mul(v, v)

    class Inlined(Mutator):
        def __init__(self):
            self.values = {}

        def visit_Let(self, let):
            self.values[let.var] = self.visit(let.value)
            return self.visit(let.body)

        def visit_Var(self, var):
            return self.values.get(var, var)

    one, two = op.const(1, "int32"), op.const(2, "int32")
    result = Inlined().visit(op.add(Let(v, op.add(x, one), square), Let(v, op.add(x, two), square)))
    assert str(result) == "(x + 1) * (x + 1) + (x + 2) * (x + 2)"
    result = Inlined().visit(op.add(square, Let(v, op.add(x, one), square)))
    assert str(result) == "v * v + (x + 1) * (x + 1)"


def test_a_let_that_is_copied_twice_keeps_its_variable_in_what_it_shares():
    """FuseTIR writes ``f(x)`` where it is used, each time with the same body of f."""
    t, u, w, x = [Var(name, "int32") for name in "tuwx"]
    body = Let(u, Mul(t, t), Let(w, Mul(u, u), Mul(w, w)))
    places = [Let(t, op.add(x, op.const(number, "int32")), body) for number in range(3)]
    copy = redefined(Evaluate(op.add(op.add(places[0], places[1]), places[2])))
    assert undefined_vars(copy, [x]) == []
    assert Var.same_as(undefined_vars(copy, [])[0], x)
    value = copy.value
    for let in (value.a.a, value.a.b, value.b):
        assert [v.name for v in collect(let, Var)].count("u") == 1


def test_lets_of_other_variables_share_what_they_have_in_common():
    value = Var("x", "int32")
    for number in range(40):
        t = Var(f"t{number}", "int32")
        value = Let(t, value, op.add(Mul(t, t), value))
    count = Count()
    count.visit(value)
    assert count.products == 40


def test_a_state_sees_each_object_once():
    a, x = decl_buffer((4,), "int32", "a"), Var("x", "int32")

    class Places(Visitor):
        def __init__(self):
            self.inside, self.seen = False, []

        def visit_BufferLoad(self, load):
            outer, self.inside = self.inside, True
            with self.apart(True):
                self.visit(load.indices)
            self.inside = outer

        def visit_Mul(self, node):
            self.seen.append(self.inside)

    place = Mul(x, x)
    load = BufferLoad(a, [place])
    walk = Places()
    walk.visit(op.add(op.add(place, load), op.add(BufferLoad(a, [op.add(place, place)]), place)))
    assert walk.seen == [False, True]
    walk.visit(load)  # another expression: nothing is known of it
    assert walk.seen == [False, True, True]


# ---- calls of a graph that is not normalised yet

FOUR = relax.TensorStructInfo((4,), "float32")


def doubled(value, times):
    """The value added to itself so often: calls nested in calls, through tuples too."""
    for number in range(times):
        if number % 3 == 2:
            value = relax.TupleGetItem(relax.Tuple([value, value]), number % 2)
        value = relax.op.add(value, value)
    return value


def function_of(times):
    x = relax.Var("x", FOUR)
    y = relax.Var("y", FOUR)
    block = relax.BindingBlock([relax.VarBinding(y, doubled(x, times))])
    return relax.Function([x], relax.SeqExpr([block], y), FOUR)


class CountCalls(Visitor):
    calls = 0

    def visit_RelaxCall(self, node):
        self.calls += 1
        self.visit_default(node)


class CountCallsOfUsers(relax.PyExprVisitor):
    calls = 0

    def visit_call_(self, op):
        self.calls += 1
        super().visit_call_(op)


@pytest.mark.parametrize("times", [20, 40, 80])
@pytest.mark.parametrize("kind", [CountCalls, CountCallsOfUsers])
def test_visitors_visit_each_call_once(kind, times):
    count, func = kind(), function_of(times)
    (count.visit_expr if kind is CountCallsOfUsers else count.visit)(func)
    assert count.calls == times


@pytest.mark.parametrize("times", [20, 40, 80])
def test_mutators_rebuild_each_call_once(times):
    class Rename(Mutator):
        calls = 0

        def visit_RelaxCall(self, node):
            self.calls += 1
            return self.visit_default(node).with_(op=relax.op.multiply(X, X).op)

    rename = Rename()
    result = rename.visit(function_of(times))
    assert rename.calls == times
    assert len(collect(result, relax.Call)) == times


X = relax.Var("x", FOUR)


@pytest.mark.parametrize("times", [20, 40, 80])
def test_a_mutator_of_users_computes_each_call_once(times):
    class Rename(relax.PyExprMutator):
        calls = 0

        def visit_call_(self, op):
            self.calls += 1
            op = super().visit_call_(op)
            return relax.op.multiply(*op.args)

    rename, func = Rename(), function_of(times)
    result = rename.visit_expr(func)
    assert rename.calls == times
    assert [str(call.op.name) for call in collect(result, relax.Call)] == ["relax.multiply"] * times
    assert relax.analysis.well_formed(IRModule({"main": result}))


def test_branches_compute_their_own():
    """What one branch bound is not seen by the other, nor by what comes after."""
    x, flag = relax.Var("x", FOUR), relax.Var("flag", relax.TensorStructInfo((), "bool"))
    y, z = relax.Var("y", FOUR), relax.Var("z", FOUR)
    shared = doubled(x, 4)
    branch = relax.If(flag, shared, relax.op.add(shared, shared))
    block = relax.BindingBlock(
        [relax.VarBinding(y, branch), relax.VarBinding(z, relax.op.multiply(shared, shared))]
    )
    func = relax.Function([flag, x], relax.SeqExpr([block], z), FOUR)
    result = relax.PyExprMutator().visit_expr(func)
    assert relax.analysis.well_formed(IRModule({"main": result}))
    values = [binding.value for binding in collect(result, relax.VarBinding)]
    assert [isinstance(value, relax.Call) for value in values].count(True) == 3 * 4 + 2


def test_statements_in_an_expression_are_looked_at_one_by_one():
    x, shared = X, doubled(X, 2)
    variables = [relax.Var(name, FOUR) for name in "abc"]
    block = relax.BindingBlock([relax.VarBinding(var, shared) for var in variables])
    outer = relax.op.add(relax.SeqExpr([block], variables[-1]), x)
    for count in (CountCalls(), CountCallsOfUsers()):
        (count.visit_expr if isinstance(count, CountCallsOfUsers) else count.visit)(outer)
        assert count.calls == 1 + 3 * 2


@pytest.mark.parametrize("work", ["equal", "hash"])
def test_comparing_and_hashing_look_at_each_call_a_few_times(work, monkeypatch):
    steps = 0
    kind, name = (_Comparer, "nodes") if work == "equal" else (_Hasher, "form_of_node")
    plain = getattr(kind, name)

    def counted(self, *args):
        nonlocal steps
        steps += 1
        return plain(self, *args)

    monkeypatch.setattr(kind, name, counted)
    counts = []
    for times in (60, 120, 240):
        steps = 0
        if work == "equal":
            assert structural_equal(function_of(times), function_of(times))
        else:
            assert structural_hash(function_of(times)) == structural_hash(function_of(times))
        counts.append(steps)
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0


def test_equality_does_not_depend_on_what_is_shared():
    x = X
    once, twice = relax.op.exp(x), relax.op.add(relax.op.exp(x), relax.op.exp(x))
    shared = relax.op.add(once, once)
    assert structural_equal(shared, twice)
    assert structural_hash(shared) == structural_hash(twice)
    other = relax.op.add(relax.op.exp(x), relax.op.exp(relax.op.exp(x)))
    assert not structural_equal(shared, other)
    assert structural_hash(shared) != structural_hash(other)


def test_types_of_tuples_of_tuples_are_compared_once():
    first = second = FOUR
    for _ in range(60):
        first = relax.TupleStructInfo([first, first])
        second = relax.TupleStructInfo([second, second])
    assert structural_equal(first, second)
    assert structural_hash(first) == structural_hash(second)
    assert not structural_equal(first, relax.TupleStructInfo([first, second]))


def test_json_has_an_entry_for_each_call():
    texts = [save_json(function_of(times)) for times in (30, 60, 120)]
    assert [text.count('expr:Call"') for text in texts] == [30, 60, 120]
    again = load_json(texts[2])
    assert structural_equal(again, function_of(120))
    assert len(collect(again, relax.Call)) == 120


def test_a_function_of_nested_calls_is_no_well_formed_one_and_normalising_makes_it_so():
    module = IRModule({"main": function_of(60)})
    assert not relax.analysis.well_formed(module)
    normal = relax.transform.Normalize()(module)
    assert relax.analysis.well_formed(normal)
    assert len(collect(normal, relax.Call)) == 60


# ---- tuples of tuples, without a call


def tuples(value, times):
    for _ in range(times):
        value = relax.Tuple([value, value])
    return value


def function_of_tuples(times):
    """A function that returns the tuple of tuples, and one that takes a part of it."""
    x, y = relax.Var("x", FOUR), relax.Var("y")
    block = relax.BindingBlock([relax.VarBinding(y, tuples(x, times))])
    return relax.Function([x], relax.SeqExpr([block], y), relax.ObjectStructInfo())


class CountTuples(Visitor):
    tuples = 0

    def visit_Tuple(self, node):
        self.tuples += 1
        self.visit_default(node)


class CountTuplesOfUsers(relax.PyExprVisitor):
    tuples = 0

    def visit_tuple_(self, op):
        self.tuples += 1
        super().visit_tuple_(op)


@pytest.mark.parametrize("times", [20, 40, 80])
@pytest.mark.parametrize("kind", [CountTuples, CountTuplesOfUsers])
def test_visitors_visit_each_tuple_of_tuples_once(kind, times):
    """The innermost, which holds leaves, at both of its places."""
    count, func = kind(), function_of_tuples(times)
    (count.visit_expr if kind is CountTuplesOfUsers else count.visit)(func)
    assert count.tuples == times + 1


@pytest.mark.parametrize("times", [20, 40, 80])
def test_mutators_rebuild_each_tuple_of_tuples_once(times):
    x, y = relax.Var("x", FOUR), relax.Var("y", FOUR)

    class Replace(Mutator):
        def visit_RelaxVar(self, var):
            return y

    result = Replace().visit(tuples(x, times))
    assert len(collect(result, relax.Tuple)) <= times + 1
    assert collect(result, relax.Var) == [y]


@pytest.mark.parametrize("times", [20, 40, 80])
def test_a_mutator_of_users_rebuilds_each_tuple_of_tuples_once(times):
    class Rename(relax.PyExprMutator):
        tuples = 0

        def visit_tuple_(self, op):
            self.tuples += 1
            return super().visit_tuple_(op)

    rename = Rename()
    result = rename.visit_expr(function_of_tuples(times))
    assert rename.tuples == times + 1
    assert len(collect(result, relax.Tuple)) <= times + 1


@pytest.mark.parametrize("is_result", [False, True])
def test_passes_take_tuples_of_tuples(is_result):
    func = function_of_tuples(60)
    if is_result:
        func = func.with_(body=relax.SeqExpr([], tuples(func.params[0], 60)))
    module = IRModule({"main": func})
    steps = "Normalize CanonicalizeBindings EliminateCommonSubexpr DeadCodeElimination".split()
    for step in steps:
        module = getattr(relax.transform, step)()(module)
        assert len(collect(module["main"], relax.Tuple)) <= 61
