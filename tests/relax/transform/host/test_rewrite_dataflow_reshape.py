"""RewriteDataflowReshape: which outputs of a block are views, and that none shares memory."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax.op.base import call_tir_inplace
from weft.relax.reference import run
from weft.relax.transform import LegalizeOps
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.script import tir as T

X = np.arange(24, dtype="float32").reshape(2, 3, 4)


def module(*outputs):
    """Each output is what a function makes of x and of exp(x)."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.exp(x))
            results = [builder.emit_output(output(builder, x, made)) for output in outputs]
        builder.emit_func_output(relax.Tuple(results))
    return builder.get()


def flat(tensor, size=24):
    return relax.op.reshape(tensor, (size,))


def of_result(_, __, made):
    return flat(made)


def of_input(_, x, __):
    return flat(x)


def of_view_of_input(builder, x, _):
    return relax.op.reshape(builder.emit(flat(x)), (4, 6))


def of_view_of_result(builder, _, made):
    return relax.op.reshape(builder.emit(flat(made)), (4, 6))


@pytest.mark.parametrize(
    ("outputs", "views"),
    [
        ([of_result], 1), ([of_input], 0), ([of_result, of_result], 0),
        ([of_view_of_input], 1), ([of_view_of_result], 1),
    ],
)  # fmt: skip
def test_only_a_tensor_of_its_own_is_returned_as_a_view(outputs, views):
    mod = module(*outputs)
    made = RewriteDataflowReshape()(LegalizeOps()(mod))
    calls = [getattr(call.op, "name", "") for call in collect(made["main"], relax.Call)]
    assert calls.count("relax.reshape") == views
    compiled, expected = weft.compile(mod), run(mod, "main", X)
    x = X.copy()
    first, second = compiled(x), compiled(x)
    arrays = [x, *first, *second]
    for index, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:index])
    for found in (first, second):
        for array, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-6)


@T.prim_func
def negated(A: T.Buffer((2, 3, 4), "float32")):
    for i, j, k in T.grid(2, 3, 4):
        with T.block("A"):
            u, v, w = T.axis.remap("SSS", [i, j, k])
            A[u, v, w] = -A[u, v, w]


@pytest.mark.parametrize("is_needed_later", [False, True])
def test_what_is_written_in_place_has_no_view_that_is_needed_later(is_needed_later):
    builder = relax.BlockBuilder()
    kernel = builder.add_func(negated, "negated")
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.exp(x))
            view = builder.emit(flat(made))
            first = builder.emit_output(relax.op.sum(view))
            over = builder.emit(call_tir_inplace(kernel, (made,), [0], made.struct_info))
            second = builder.emit_output(relax.op.sum(view if is_needed_later else x))
            third = builder.emit_output(flat(over))
        builder.emit_func_output(relax.Tuple([first, second, third]))
    mod = builder.get()
    after = RewriteDataflowReshape()(LegalizeOps()(mod))
    calls = [getattr(call.op, "name", "") for call in collect(after["main"], relax.Call)]
    assert calls.count("relax.reshape") == (1 if is_needed_later else 2)
    machine = relax.VirtualMachine(weft.relax.build(after), weft.cpu())
    expected = [np.exp(X).sum(), (np.exp(X) if is_needed_later else X).sum(), -np.exp(X).ravel()]
    for mine, its in zip(machine["main"](X), expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), its, rtol=1e-5)


def test_a_copy_of_the_same_shape_is_its_argument():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "int32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            squared = builder.emit(relax.op.multiply(x, x))
            same = builder.emit(relax.op.subtract(squared, relax.const(0, "int32")))
            result = builder.emit_output(relax.op.negative(same))
        builder.emit_func_output(result)
    mod = builder.get()
    rewritten = RewriteDataflowReshape()(LegalizeOps()(mod))
    names = [
        binding.value.args[0].name_hint for binding in rewritten["main"].body.blocks[0].bindings
    ]
    assert names == ["multiply", "tir_negative"]
    numbers = np.arange(6, dtype="int32").reshape(2, 3)
    np.testing.assert_array_equal(weft.compile(mod, cache=False)(numbers), -(numbers**2))
