"""FuseTransposes: attention reads and writes in place what would be transposed for it."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.fuse_transposes import FuseTransposes

HEADS_FIRST = (2, 3, 5, 4)
"""Batch, heads, length, features."""
SWAP = (0, 2, 1, 3)


def module_of(body, dims=HEADS_FIRST, operands=3):
    """``body(builder, *tensors)`` in a dataflow block."""
    tensors = [
        relax.Var(name, relax.TensorStructInfo(dims, "float32")) for name in "qkv"[:operands]
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", tensors):
        with builder.dataflow():
            out = builder.emit_output(body(builder, *tensors))
        builder.emit_func_output(out)
    return builder.get()


def swapped(builder, tensor, axes=SWAP):
    return builder.emit(op.permute_dims(tensor, axes))


def heads_first(builder, q, k, v):
    made = op.nn.attention(*[swapped(builder, one) for one in (q, k, v)], causal_mask="TopLeft")
    return op.permute_dims(builder.emit(made), SWAP)


def one_tensor(builder, x):
    same = swapped(builder, x)
    return op.permute_dims(builder.emit(op.nn.attention(same, same, same)), SWAP)


def used_again(builder, q, k, v):
    keys = swapped(builder, k)
    made = builder.emit(op.nn.attention(swapped(builder, q), keys, swapped(builder, v)))
    return op.add(made, keys)


def features_last_but_one(builder, q, k, v):
    made = [swapped(builder, one, (0, 2, 3, 1)) for one in (q, k, v)]
    return op.permute_dims(builder.emit(op.nn.attention(*made)), (0, 3, 1, 2))


def as_it_is(builder, q, k, v):
    return op.nn.attention(q, k, v)


def left(mod):
    """The operators that ``main`` still calls."""
    calls = collect(mod["main"].body, Call)
    return sorted([call.op.name.rpartition(".")[2] for call in calls if hasattr(call.op, "name")])


CASES = {
    "all four": (heads_first, HEADS_FIRST, 3, []),
    "one tensor": (one_tensor, HEADS_FIRST, 1, []),
    "keys are used again": (used_again, HEADS_FIRST, 3, ["add", "permute_dims"]),
    "the last axis moves": (
        features_last_but_one, HEADS_FIRST, 3, ["attention", *["permute_dims"] * 4],
    ),
    "none": (as_it_is, HEADS_FIRST, 3, ["attention"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_left_and_what_is_computed(case):
    body, dims, operands, expected = CASES[case]
    before = module_of(body, dims, operands)
    after = FuseTransposes()(before)
    assert well_formed(after)
    assert left(after) == expected
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(dims).astype("float32") for _ in range(operands)]
    want = run(before, "main", *arrays)
    np.testing.assert_allclose(run(after, "main", *arrays), want, rtol=1e-5, atol=1e-6)
    compiled = weft.compile(before, target="llvm -num-cores=2 -vector-width=128")
    np.testing.assert_allclose(compiled(*arrays), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1, 7])
def test_one_kernel_at_any_length(length):
    dims = (1, 2, length, 8)
    mod = module_of(heads_first, dims)
    arrays = [np.random.default_rng(k).standard_normal(dims).astype("float32") for k in range(3)]
    compiled = weft.compile(mod, target="llvm -num-cores=2 -vector-width=128")
    want = run(mod, "main", *arrays)
    np.testing.assert_allclose(compiled(*arrays), want, rtol=1e-4, atol=1e-5)
