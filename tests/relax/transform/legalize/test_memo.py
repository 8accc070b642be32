"""LegalizeOps remembers lowerings: what must be one PrimFunc, and what must not."""

import logging

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import op
from weft.relax.transform import LegalizeOps
from weft.tir.function import PrimFunc

INFO = relax.TensorStructInfo((2, 3), "float32")
RNG = np.random.default_rng(4)


def graph(body, *infos):
    bb = relax.BlockBuilder()
    inputs = [relax.Var(f"x{index}", info) for index, info in enumerate(infos)]
    with bb.function("main", inputs):
        with bb.dataflow():
            out = bb.emit_output(relax.Tuple([bb.emit(item) for item in body(*inputs)]))
        bb.emit_func_output(out)
    return bb.get()


def lowered(mod):
    """(the lowered module, how many PrimFuncs it has, its results on random inputs)"""
    after = LegalizeOps()(mod)
    assert relax.analysis.well_formed(after)
    count = sum(isinstance(func, PrimFunc) for func in after.functions.values())
    machine = relax.VirtualMachine(relax.build(after, "llvm"), weft.cpu())
    arrays = [RNG.normal(size=(2, 3)).astype("float32") for _ in mod["main"].params]
    found = machine["main"](*[weft.nd.array(array) for array in arrays])
    return count, arrays, [item.numpy() for item in found]


def test_equal_calls_share_and_take_their_own_arguments():
    mod = graph(lambda x, y: [op.subtract(x, y), op.subtract(y, x)], INFO, INFO)
    count, (x, y), found = lowered(mod)
    assert count == 1
    np.testing.assert_array_equal(found[0], x - y)
    np.testing.assert_array_equal(found[1], y - x)


def test_one_argument_twice_is_not_two_arguments():
    mod = graph(lambda x, y: [op.subtract(x, x), op.subtract(x, y)], INFO, INFO)
    _, (x, y), found = lowered(mod)
    np.testing.assert_array_equal(found[0], x - x)
    np.testing.assert_array_equal(found[1], x - y)


def test_attributes_tell_calls_apart():
    mod = graph(lambda x: [op.sum(x, 0), op.sum(x, 1), op.sum(x, 0, True)], INFO)
    count, (x,), found = lowered(mod)
    assert count == 3
    np.testing.assert_allclose(found[0], x.sum(0), rtol=1e-6)
    np.testing.assert_allclose(found[1], x.sum(1), rtol=1e-6)
    np.testing.assert_allclose(found[2], x.sum(0, keepdims=True), rtol=1e-6)


def test_numbers_that_stand_in_the_kernel_tell_calls_apart():
    values = (2, 3, 2, -0.0, 0.0)
    mod = graph(lambda x: [op.multiply(x, relax.const(v, "float32")) for v in values], INFO)
    count, (x,), found = lowered(mod)
    assert count == 4
    for got, value in zip(found, values, strict=True):
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x * np.float32(value)))
        np.testing.assert_array_equal(got, x * np.float32(value))


def test_tensors_that_are_constants_are_arguments():
    weights = [RNG.normal(size=(2, 3)).astype("float32") for _ in range(2)]
    mod = graph(lambda x: [op.add(x, relax.const(w)) for w in weights], INFO)
    count, (x,), found = lowered(mod)
    assert count == 1
    for got, weight in zip(found, weights, strict=True):
        np.testing.assert_array_equal(got, x + weight)


def test_shapes_in_arguments_and_dtypes_tell_calls_apart():
    mod = graph(lambda x: [op.reshape(x, (3, 2)), op.reshape(x, (6,)), op.astype(x, "int32")], INFO)
    count, _, found = lowered(mod)
    assert count == 3
    assert [item.shape for item in found] == [(3, 2), (6,), (2, 3)]


def test_symbols_of_one_function_share_and_get_their_own_sizes():
    n, m = weft.tir.Var("n", "int64"), weft.tir.Var("m", "int64")
    infos = [relax.TensorStructInfo((dim, 3), "float32") for dim in (n, m, n)]
    mod = graph(lambda x, y, z: [op.exp(x), op.exp(y), op.exp(z)], *infos)
    after = LegalizeOps()(mod)
    assert sum(isinstance(func, PrimFunc) for func in after.functions.values()) == 1
    calls = [binding.value for binding in after["main"].body.blocks[0].bindings[:3]]
    assert [call.struct_info.shape[0] for call in calls] == [n, m, n]


def test_a_rule_runs_once_for_equal_calls(monkeypatch):
    exp = weft.ir.Op.get("relax.exp")
    rule, runs = exp.get_attr("FLegalize"), []

    def counted(bb, call):
        runs.append(call)
        return rule(bb, call)

    monkeypatch.setitem(exp.attributes, "FLegalize", counted)
    LegalizeOps()(graph(lambda x, y: [op.exp(x), op.exp(y), op.exp(x)], INFO, INFO))
    assert len(runs) == 1


def test_a_custom_rule_runs_for_every_call():
    runs = []

    def rule(bb, call):
        runs.append(call)
        return bb.call_te(weft.topi.negative, call.args[0])

    mod = graph(lambda x, y: [op.exp(x), op.exp(y)], INFO, INFO)
    after = LegalizeOps({"relax.exp": rule})(mod)
    assert len(runs) == 2
    assert sum(isinstance(func, PrimFunc) for func in after.functions.values()) == 1


@pytest.mark.parametrize("enabled", [False, True])
def test_operators_without_a_rule_are_logged_if_asked(enabled, caplog):
    mod = graph(lambda x: [op.wrap_param(x, "float32")], INFO)
    with caplog.at_level(logging.WARNING):
        LegalizeOps(enable_warning=enabled)(mod)
    found = [r.getMessage() for r in caplog.records if r.name.endswith("legalize_ops")]
    expected = ["LegalizeOps: no rule for relax.wrap_param; it stays as it is"]
    assert found == (expected if enabled else [])
