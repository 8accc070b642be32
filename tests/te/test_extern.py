"""``te.extern`` and ``te.extern_primfunc``: tensors that statements write."""

from __future__ import annotations

import numpy as np
import pytest

from weft import te, tir
from weft.script import tir as T
from weft.tir import ir_builder
from weft.tir.interp import run

A = te.placeholder((4,), name="A")
I = te.placeholder((4,), "int32", name="I")


def values(inputs, outputs, *arrays):
    """What a function computes, for arrays in the order of the inputs."""
    results = [np.zeros([extent.value for extent in out.shape], str(out.dtype)) for out in outputs]
    run(te.create_prim_func([*inputs, *outputs]), *arrays, *results)
    return results


def loop(*rules):
    """A body that stores ``rules[n](element of every input)`` into output n."""

    def body(ins, outs):
        builder = ir_builder.create()
        sources = [builder.buffer_ptr(buffer) for buffer in ins]
        targets = [builder.buffer_ptr(buffer) for buffer in outs]
        with builder.for_range(0, 4, "i") as i:
            for target, rule in zip(targets, rules, strict=True):
                target[i] = rule(*[source[i] for source in sources])
        return builder.get()

    return body


def test_one_output():
    out = te.extern((4,), [A], loop(lambda a: a * 2.0), name="out")
    assert (out.name, out.dtype, out.ndim) == ("out", "float32", 1)
    (found,) = values([A], [out], np.arange(4, dtype="float32"))
    assert found.tolist() == [0, 2, 4, 6]


def test_the_inputs_may_stand_alone():
    out = te.extern((4,), A, loop(lambda a: a + 1.0))
    assert [tensor.name for tensor in out.op.input_tensors] == ["A"]
    assert te.extern((4,), (A,), loop(lambda a: a)).dtype == "float32"


def test_no_inputs():
    out = te.extern((4,), [], loop(lambda: tir.const(3, "int8")), dtype="int8")
    assert values([], [out])[0].tolist() == [3, 3, 3, 3]


def test_several_outputs_of_several_types():
    low, high = te.extern(
        [(4,), (4,)], [A, I], loop(lambda a, i: a - 1.0, lambda a, i: i + 1),
        name="pair", dtype=["float32", "int32"],
    )  # fmt: skip
    assert (low.name, high.name) == ("pair.v0", "pair.v1")
    first, second = values(
        [A, I], [low, high], np.arange(4, dtype="float32"), np.arange(4, dtype="int32")
    )
    assert (first.tolist(), second.tolist()) == ([-1, 0, 1, 2], [1, 2, 3, 4])


def test_one_dtype_for_all_outputs():
    outs = te.extern([(4,), (4,)], [A], loop(lambda a: a, lambda a: a), dtype="float32")
    assert [out.dtype for out in outs] == ["float32", "float32"]


def test_the_result_of_one_is_the_input_of_another():
    first = te.extern((4,), [A], loop(lambda a: a + 1.0), name="first")
    second = te.extern((4,), [first], loop(lambda a: a * 10.0), name="second")
    last = te.compute((4,), lambda i: second[i] - first[i], name="last")
    (found,) = values([A], [last], np.arange(4, dtype="float32"))
    assert found.tolist() == [9, 18, 27, 36]


def test_buffers_of_the_caller():
    source = tir.decl_buffer((4,), "float32", "source")
    target = tir.decl_buffer((4,), "float32", "target")
    seen = []

    def body(ins, outs):
        seen.append((ins, outs))
        return loop(lambda a: a * 3.0)(ins, outs)

    out = te.extern((4,), [A], body, in_buffers=source, out_buffers=[target], name="out")
    assert seen == [([source], [target])]
    (found,) = values([A], [out], np.arange(4, dtype="float32"))
    assert found.tolist() == [0, 3, 6, 9]


def test_an_expression_is_evaluated():
    out = te.extern(
        (4,), [A], lambda ins, outs: tir.call_packed("fill", ins[0], outs[0]), name="filled"
    )
    text = te.create_prim_func([A, out]).script()
    assert 'T.call_packed("fill"' in text
    assert 'with T.block("filled"):' in text


def test_tags_and_attributes():
    out = te.extern((4,), [A], loop(lambda a: a), tag="mine", attrs={"rule": "r"})
    assert (out.op.tag, dict(out.op.attrs)) == ("mine", {"rule": "r"})
    assert 'T.block_attr({"rule": "r"})' in te.create_prim_func([A, out]).script()


@pytest.mark.parametrize(
    ("shape", "inputs", "options", "error", "message"),
    [
        ((4,), [3], {}, TypeError, "extern e: expected tensors as inputs, got 3"),
        ((4,), [A, I], {}, ValueError, "extern e: the output dtype is not clear; give dtype="),
        ((4,), [], {}, ValueError, "extern e: the output dtype is not clear"),
        ([(4,), (4,)], [A], {"dtype": ["int32"] * 3}, ValueError, "got 3 dtypes for 2 outputs"),
        ((4,), [A], {"out_buffers": [tir.decl_buffer((4,))] * 2}, ValueError,
         "extern e: got 1 input and 2 output buffers for 1 and 1 tensors"),
        ((4,), [A, A], {"in_buffers": tir.decl_buffer((4,))}, ValueError,
         "got 1 input and 1 output buffers for 2 and 1 tensors"),
        ((-4,), [A], {}, ValueError, "an extent must not be negative, got -4"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_what_is_refused(shape, inputs, options, error, message):
    with pytest.raises(error, match=message):
        te.extern(shape, inputs, loop(lambda *a: a[0]), name="e", **options)


@pytest.mark.parametrize("result", [None, "text", [tir.Evaluate(0)]], ids=str)
def test_a_body_that_is_no_statement(result):
    with pytest.raises(TypeError, match="extern e: the function must return a statement, got"):
        te.extern((4,), [A], lambda ins, outs: result, name="e")


@T.prim_func
def scaled_sum(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"),
               total: T.Buffer((4,), "float32"), larger: T.Buffer((4,), "float32")):  # fmt: skip
    T.func_attr({"global_symbol": "scaled_sum"})
    for i in range(4):
        total[i] = x[i] + y[i] * T.float32(2)
        larger[i] = T.max(x[i], y[i])


def test_a_function_of_tensorir_gives_tensors():
    b = te.compute((4,), lambda i: A[i] * 10.0, name="b")
    total, larger = te.extern_primfunc([b, A], scaled_sum)
    assert (total.name, larger.name) == ("scaled_sum.v0", "scaled_sum.v1")
    data = np.array([1, -2, 3, -4], "float32")
    first, second = values([A], [total, larger], data)
    np.testing.assert_array_equal(first, data * 12)
    np.testing.assert_array_equal(second, np.maximum(data, data * 10))


def test_a_function_of_tensorir_without_outputs():
    with pytest.raises(ValueError, match="the function has 4 buffers, 4 inputs leave no output"):
        te.extern_primfunc([A, A, A, A], scaled_sum)


def test_a_function_of_tensorir_under_another_name():
    total, _ = te.extern_primfunc([A, A], scaled_sum, name="mine", attrs={"rule": 1})
    assert (total.op.name, dict(total.op.attrs)) == ("mine", {"rule": 1})


def test_recurrences_are_not_there():
    with pytest.raises(NotImplementedError, match="te.scan cannot be turned into TensorIR"):
        te.scan(A, A, A)
