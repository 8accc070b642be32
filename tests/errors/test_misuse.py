"""Misuse of modules, functions, te, topi, the block builder and passes: short errors of weft."""

from __future__ import annotations

import pytest

import weft
from weft import ir, relax, te, tir, topi, transform
from weft.relax.frontend import nn
from weft.support.errors import TVMError

X = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
A = te.placeholder((4, 8), name="A")
I = tir.Var("i", "int32")


def builder():
    return relax.BlockBuilder()


CASES = {
    "a module's key": (lambda m: m[5], "expected a function's name or GlobalVar, got int"),
    "None as a key": (lambda m: m[None], "expected a function's name or GlobalVar, got NoneType"),
    "a new key": (lambda m: m.clone().__setitem__(5, m["main"]), "or GlobalVar, got int"),
    "update": (lambda m: m.clone().update(5), "expected a dict from names to functions, got int"),
    "functions": (lambda m: ir.IRModule([m["main"]]), "expected a dict from names .* got list"),
    "operator's name": (lambda m: ir.Op.get(5), "expected the name of an operator, got int"),
    "attribute": (lambda m: m["main"].with_attr(5), "name of an attribute or a dict, got int"),
    "json": (lambda m: ir.load_json(5), "load_json: expected a text, got int"),
    "no list of params": (lambda m: tir.PrimFunc(5, tir.Evaluate(0)), "list of param.* got int"),
    "no body": (lambda m: tir.PrimFunc([], 5), "a statement as its body, got int"),
    "substitute": (lambda m: tir.stmt_functor.substitute(I, 6), "a mapping .*, got int"),
    "a list of statements": (lambda m: tir.SeqStmt(5), "expected a list or tuple, got int"),
    "for kind": (lambda m: tir.For(I, 0, 1, "zz", tir.Evaluate(0)), "a kind such as .*SERIAL"),
    "extent": (lambda m: tir.For(I, 0, 1.5, 0, tir.Evaluate(0)), "extent: expected an integer"),
    "load": (lambda m: tir.BufferLoad(5, [0]), "BufferLoad: expected a Buffer, got int"),
    "shape": (lambda m: te.placeholder(None), r"expected a shape such as \(128, 128\), got None"),
    "text as shape": (lambda m: te.placeholder("abc"), "expected a shape such as .* got 'abc'"),
    "half an extent": (lambda m: te.placeholder((1.5,)), "a shape holds integers, got 1.5"),
    "no function": (lambda m: te.compute((4,), 5), "a function from indices to a value, got int"),
    "rank": (lambda m: te.compute((4,), lambda i: A[i]), "A has 2 dimensions, got 1 indices"),
    "truth": (lambda m: te.compute((4,), lambda i: i and 1), "has no truth value; use tir.all"),
    "reducer": (lambda m: te.comm_reducer(5, 6), "comm_reducer: expected two functions, got int"),
    "extern's inputs": (lambda m: te.extern((4,), 5, lambda i, o: 5), "tensors as inputs, got 5"),
    "sum of a number": (lambda m: topi.sum(5), "sum: expected a te.Tensor, got int"),
    "axis": (lambda m: topi.sum(A, axis=7), "axis 7 is out of range for a 2-dimensional tensor"),
    "axes": (lambda m: topi.transpose(A, 5), "axis 5 is out of range"),
    "flatten": (lambda m: topi.nn.flatten(te.placeholder(())), "at least 1 dimension, got shape"),
    "tuple": (lambda m: relax.Tuple(5), "expected a list or tuple, got int"),
    "field": (lambda m: X["a"], "expected the number of a field, got 'a'"),
    "arguments": (lambda m: relax.Call(ir.Op.get("relax.add"), 5), "a list of arguments, got int"),
    "parameters": (lambda m: relax.Function([5], X), r"expected a list of relax.Var, got \[5\]"),
    "reshape": (lambda m: relax.op.reshape(X, None), "relax.reshape: expected a shape"),
    "te function": (lambda m: builder().emit_te(5), "a function on te tensors, got int"),
    "function's name": (lambda m: builder().add_func(m["main"], 5), "expected a name, got int"),
    "update of a number": (lambda m: builder().update_func(5, m["main"]), "a GlobalVar, got int"),
    "unique name": (lambda m: builder().get_unique_name(5), "expected a name, got int"),
    "scope": (lambda m: builder().end_scope(), "end_scope: no scope is open"),
    "block": (lambda m: builder().end_block(), "end_block: no block is open"),
    "dataflow": (lambda m: builder().dataflow().__enter__(), "dataflow: no function is open"),
    "builder's module": (lambda m: relax.BlockBuilder(5), "expected an IRModule, got int"),
    "function's params": (lambda m: builder().function("f", 5), "a list of relax.Var .* got int"),
    "mutator": (lambda m: relax.expr_functor.mutator(5), "5 must be a subclass of PyExprMutator"),
    "unused": (lambda m: relax.analysis.remove_all_unused(m), "expected a relax Function, got IRM"),
    "passes": (lambda m: transform.Sequential(5), "expected a list of passes, got int"),
    "config": (lambda m: transform.PassContext(config=5), "config: expected a dict, got int"),
    "instruments": (lambda m: transform.PassContext(instruments=5), "expected a list, got int"),
    "bind": (lambda m: relax.transform.BindParams("main", 5), "a dict from parameters .* got int"),
    "entries": (lambda m: relax.transform.DeadCodeElimination("main")(m), "a list of functions"),
    "rules": (lambda m: relax.transform.LegalizeOps(5), "a dict from operator .* got int"),
    "layer's arguments": (lambda m: nn.Conv2D("a"), "Conv2D: .*missing out_channels, kernel_size"),
    "layer's groups": (
        lambda m: nn.Conv2D(4, 4, 3, groups=0),
        "Conv2D: groups: expected .*, got 0",
    ),
    "norm's groups": (lambda m: nn.GroupNorm(3, 4), "GroupNorm: 4 channels are not a multiple of"),
    "features": (lambda m: nn.Linear(-1, 4), "Linear: in_features: .*of 0 or more.* got -1"),
    "layer's dtype": (lambda m: nn.Linear(1, 4, dtype=5), "Linear: dtype: expected a data type"),
    "extra_vars": (lambda m: weft.script.from_source("", 5), "extra_vars: expected a dict"),
}


@pytest.mark.parametrize("case", CASES)
def test_misuse(module, case):
    action, match = CASES[case]
    with pytest.raises(TVMError, match=match) as caught:
        action(module)
    assert len(str(caught.value).splitlines()) <= 10


def test_a_function_that_ends_inside_of_a_dataflow_block():
    bb = builder()
    with pytest.raises(TVMError, match="the function ended inside of the block; call emit_func"):
        with bb.function("main", [X]):
            with bb.dataflow():
                bb.emit_func_output(X)


def test_the_users_own_error_inside_of_a_function_stays():
    bb = builder()
    with pytest.raises(ValueError, match="mine"):
        with bb.function("main", [X]), bb.dataflow():
            raise ValueError("mine")
    with bb.function("main", [X]):
        bb.emit_func_output(X)
    assert "main" in bb.get()
