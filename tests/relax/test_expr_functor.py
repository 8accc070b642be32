"""PyExprVisitor and PyExprMutator, as users subclass them."""

import pytest

from weft import relax
from weft.ir.op import Op
from weft.relax import op
from weft.relax.builder import normalize
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from weft.relax.struct_info import TensorStructInfo
from weft.script import relax as R
from weft.support.errors import IRTypeError

INFO = TensorStructInfo((3, 4), "float32")


@pytest.fixture
def mod(build):
    return build(lambda x, y: op.add(op.multiply(x, y), y), INFO, INFO)


def names(func):
    return [b.value.op.name for block in func.body.blocks for b in block.bindings]


@mutator
class EwiseFMARewriter(PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op != Op.get("relax.add"):
            return call
        value = self.lookup_binding(call.args[0])
        if not isinstance(value, relax.Call) or value.op != Op.get("relax.multiply"):
            return call
        return relax.Call(Op.get("relax.ewise_fma"), [*value.args, call.args[1]], None, None)


def test_rewrite_keeps_what_became_unused(mod):
    func = EwiseFMARewriter().visit_expr(mod["main"])
    assert names(func) == ["relax.multiply", "relax.ewise_fma"]
    assert names(relax.analysis.remove_all_unused(func)) == ["relax.ewise_fma"]
    assert relax.analysis.well_formed(func)


def test_nothing_changed_is_the_same_object(mod):
    assert PyExprMutator().visit_expr(mod["main"]) is mod["main"]


def test_returned_nested_calls_are_bound(mod):
    @mutator
    class Twice(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            return op.nn.relu(op.exp(call)) if call.op is Op.get("relax.add") else call

    func = Twice().visit_expr(mod["main"])
    assert names(func) == ["relax.multiply", "relax.add", "relax.exp", "relax.nn.relu"]
    assert relax.analysis.well_formed(func)


def test_changed_struct_info_reaches_later_uses(mod):
    @mutator
    class ToInt(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            is_product = call.op is Op.get("relax.multiply")
            return op.astype(call.args[0], "float32") if is_product else call

    func = ToInt().visit_expr(mod["main"])
    assert relax.analysis.well_formed(func)

    class Half(PyExprMutator):
        def visit_call_(self, call):
            if call.op is Op.get("relax.multiply"):
                return op.sum(call.args[0], axis=0)
            return self.visit_expr_post_order(call)

    func = Half().visit_expr(mod["main"])
    first, second = func.body.blocks[0].bindings
    assert first.var.struct_info == TensorStructInfo((4,))
    assert second.value.args[0] is first.var


def test_override_of_a_binding(mod):
    class Renamer(PyExprMutator):
        def visit_dataflow_var_def_(self, var):
            fresh = relax.DataflowVar(var.name_hint + "_new", var.struct_info)
            self.set_var_remap(var.vid, fresh)
            return fresh

    func = Renamer().visit_expr(mod["main"])
    assert func.body.blocks[0].bindings[0].var.name_hint == "lv_new"
    assert relax.analysis.well_formed(func)


def test_visitor_sees_every_call(mod):
    @visitor
    class Collector(PyExprVisitor):
        def __init__(self):
            self.found = []

        def visit_op_(self, op):
            self.found.append(op.name)

        def visit_var_def_(self, var):
            self.found.append(var.name_hint)

    collector = Collector()
    collector.visit_expr(mod["main"])
    assert collector.found == ["x0", "x1", "relax.multiply", "lv", "relax.add", "gv"]


def test_branches_are_rewritten():
    cond = relax.Var("c", TensorStructInfo((), "bool"))
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("main", [cond, x]):
        bb.emit_func_output(bb.emit(relax.If(cond, op.add(op.multiply(x, x), x), x)))

    func = EwiseFMARewriter().visit_expr(bb.get()["main"])
    branch = func.body.blocks[0].bindings[0].value.true_branch
    assert [b.value.op.name for b in branch.blocks[0].bindings] == [
        "relax.multiply",
        "relax.ewise_fma",
    ]
    assert relax.analysis.well_formed(func)


def test_decorator_wants_the_right_base():
    with pytest.raises(IRTypeError, match="must be a subclass of PyExprMutator"):
        mutator(PyExprVisitor)


def test_foreign_objects_are_refused():
    with pytest.raises(IRTypeError, match="expected a graph expression, got int"):
        PyExprVisitor().visit_expr(3)


def test_deep_functions_are_walked():
    x = relax.Var("x", INFO)
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        expr = x
        for _ in range(3000):
            expr = op.exp(expr)
        bb.emit_func_output(bb.emit(expr))
    assert len(PyExprMutator().visit_expr(bb.get()["main"]).body.blocks[0].bindings) == 3000


def test_each_call_is_normalised_once_however_deep_it_stands(monkeypatch):
    calls = []
    original = normalize._HANDLERS[relax.Call]
    monkeypatch.setitem(
        normalize._HANDLERS,
        relax.Call,
        lambda normalizer, call: calls.append(call) or original(normalizer, call),
    )
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    flag = relax.Var("flag", R.Tensor((), "bool"))
    depth = 20
    body = relax.SeqExpr([], x)
    for _ in range(depth):
        inner = relax.Var("inner", R.Tensor((4,), "float32"))
        value = relax.VarBinding(inner, relax.If(flag, body, relax.op.exp(x)))
        body = relax.SeqExpr([relax.BindingBlock([value])], inner)
    func = bb.normalize(relax.Function([x, flag], body, R.Tensor((4,), "float32")))
    assert len(calls) == depth
    calls.clear()
    PyExprMutator().visit_expr(func)
    assert len(calls) == depth


@pytest.mark.parametrize("base", [PyExprMutator, PyExprVisitor, EwiseFMARewriter])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("visit_call", "visit_call_"),
        ("visit_Call", "visit_call_"),
        ("visit_RelaxCall", "visit_call_"),
        ("visit_TupleGetItem", "visit_tuple_getitem_"),
        ("visit_var", "visit_var_"),
        ("visit_function", "visit_function_"),
    ],
)
def test_a_method_that_would_never_be_called_is_refused(base, name, meant):
    with pytest.raises(IRTypeError, match=f"Mine.{name} would never be called: write {meant}$"):
        type("Mine", (base,), {name: lambda self, op: op})


def test_other_methods_are_the_users_own():
    names = ("visit_binding", "visit_var_def", "visit_expr", "visit_twice", "visited_calls")
    mine = type("Mine", (PyExprMutator,), {name: lambda self, op: op for name in names})
    type("Further", (mine,), {"visit_twice": lambda self, op: op})
