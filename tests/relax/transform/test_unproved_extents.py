"""Extents that must agree and are not proved to are compared when the function runs."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import op
from weft.relax.reference import run
from weft.runtime.faults import IndexFault
from weft.tir import Var

pytestmark = pytest.mark.sampled(3)

A, B, C, D = (Var(name, "int64") for name in "abcd")


def info(*shape, dtype="float32"):
    return relax.TensorStructInfo(shape, dtype)


def index(*shape):
    return info(*shape, dtype="int64")


def norm(x, *weights):
    return op.nn.layer_norm(x, *weights, axes=[-1])


COMPARED = {
    "einsum": (
        [info(2, A), info(B, 3)], lambda x, y: op.einsum((x, y), "ij,jk->ik"),
        [(2, 3), (3, 3)], [(2, 3), (4, 3)],
    ),
    "einsum, one tensor": (
        [info(A, B)], lambda x: op.einsum((x,), "ii->i"), [(3, 3)], [(3, 4)],
    ),
    "matmul": ([info(2, A), info(B, 3)], op.matmul, [(2, 3), (3, 3)], [(2, 3), (4, 3)]),
    "stack": (
        [info(2, A), info(2, B)], lambda x, y: op.stack((x, y)),
        [(2, 3), (2, 3)], [(2, 3), (2, 4)],
    ),
    "layer_norm": (
        [info(2, A), info(B), info(B)], norm, [(2, 3), (3,), (3,)], [(2, 3), (4,), (4,)],
    ),
    "rms_norm": (
        [info(2, A), info(B)], lambda x, y: op.nn.rms_norm(x, y, axes=[-1]),
        [(2, 3), (3,)], [(2, 3), (4,)],
    ),
    "prelu": (
        [info(2, A), info(B)], lambda x, y: op.nn.prelu(x, y, axis=1),
        [(2, 3), (3,)], [(2, 3), (4,)],
    ),
    "attention": (
        [info(1, 2, 1, A), info(1, 2, 1, B)], lambda q, k: op.nn.attention(q, k, k),
        [(1, 2, 1, 3), (1, 2, 1, 3)], [(1, 2, 1, 3), (1, 2, 1, 4)],
    ),
    "lstm, batch": (
        [info(2, A, 3), info(8, 3), info(8, 2), info(8), info(8), info(B, 2), info(B, 2)],
        op.nn.lstm, [(2, 4, 3), (8, 3), (8, 2), (8,), (8,), (4, 2), (4, 2)],
        [(2, 4, 3), (8, 3), (8, 2), (8,), (8,), (5, 2), (5, 2)],
    ),
    "lstm, features": (
        [info(2, 1, A), info(8, B), info(8, 2), info(8), info(8), info(1, 2), info(1, 2)],
        op.nn.lstm, [(2, 1, 4), (8, 4), (8, 2), (8,), (8,), (1, 2), (1, 2)],
        [(2, 1, 4), (8, 5), (8, 2), (8,), (8,), (1, 2), (1, 2)],
    ),
    "lstm, gates": (
        [info(2, 1, 3), info(A, 3), info(B, 2), info(C), info(D), info(1, 2), info(1, 2)],
        op.nn.lstm, [(2, 1, 3), (8, 3), (8, 2), (8,), (8,), (1, 2), (1, 2)],
        [(2, 1, 3), (8, 3), (8, 2), (8,), (9,), (1, 2), (1, 2)],
    ),
    "gru": (
        [info(2, A, 3), info(6, 3), info(6, 2), info(6), info(6), info(B, 2)],
        op.nn.gru, [(2, 4, 3), (6, 3), (6, 2), (6,), (6,), (4, 2)],
        [(2, 4, 3), (6, 3), (6, 2), (6,), (6,), (5, 2)],
    ),
    "rnn": (
        [info(2, 1, 3), info(2, 3), info(2, 2), info(A), info(B), info(1, 2)],
        op.nn.rnn, [(2, 1, 3), (2, 3), (2, 2), (2,), (2,), (1, 2)],
        [(2, 1, 3), (2, 3), (2, 2), (4,), (2,), (1, 2)],
    ),
    "recurrent_layer, state and lengths": (
        [info(2, A, 3), info(2, 3), info(2, 2), info(2), info(2), info(B, 2), index(C)],
        lambda *a: op.nn.recurrent_layer(*a[:5], [a[5]], a[6]),
        [(2, 4, 3), (2, 3), (2, 2), (2,), (2,), (4, 2), (4,)],
        [(2, 4, 3), (2, 3), (2, 2), (2,), (2,), (5, 2), (4,)],
    ),
    "recurrent_layer, peepholes": (
        [info(2, 1, 3), info(8, 3), info(8, 2), info(8), info(8), info(1, 2), info(1, 2), info(A)],
        lambda *a: op.nn.recurrent_layer(*a[:5], a[5:], kind="lstm"),
        [(2, 1, 3), (8, 3), (8, 2), (8,), (8,), (1, 2), (1, 2), (6,)],
        [(2, 1, 3), (8, 3), (8, 2), (8,), (8,), (1, 2), (1, 2), (4,)],
    ),
    "deform_im2col": (
        [info(1, 1, A, 2), info(1, 2, B, 2)], lambda x, o: op.nn.deform_im2col(x, o, 1),
        [(1, 1, 3, 2), (1, 2, 3, 2)], [(1, 1, 3, 2), (1, 2, 4, 2)],
    ),
    "nll_loss": (
        [info(A, 3), index(B)], lambda x, t: op.nn.nll_loss(x, t, reduction="sum"),
        [(2, 3), (2,)], [(2, 3), (4,)],
    ),
    "nll_loss, one prediction": (
        [info(A), index(), info(B)], op.nn.nll_loss, [(3,), (), (3,)], [(3,), (), (4,)],
    ),
    "nll_loss, weights": (
        [info(2, A), index(2), info(B)], op.nn.nll_loss,
        [(2, 3), (2,), (3,)], [(2, 3), (2,), (4,)],
    ),
    "cross_entropy": (
        [info(A, 3), info(B, 3)], op.nn.cross_entropy_with_logits,
        [(2, 3), (2, 3)], [(2, 3), (4, 3)],
    ),
    "scatter_elements": (
        [info(5), index(A), info(B)], op.scatter_elements, [(5,), (3,), (3,)], [(5,), (3,), (4,)],
    ),
    "scatter_nd": (
        [info(5, 3), index(A, 1), info(B, 3)], op.scatter_nd,
        [(5, 3), (2, 1), (2, 3)], [(5, 3), (2, 1), (4, 3)],
    ),
    "scatter_nd, the rest": (
        [info(5, A), index(2, 1), info(2, B)], op.scatter_nd,
        [(5, 3), (2, 1), (2, 3)], [(5, 3), (2, 1), (2, 4)],
    ),
    "gather_nd": (
        [info(A, 3), index(B, 1)], lambda x, i: op.gather_nd(x, i, batch_dims=1),
        [(2, 3), (2, 1)], [(2, 3), (4, 1)],
    ),
    "slice_scatter": (
        [info(5, 3), info(A, 3)],
        lambda x, y: op.slice_scatter(x, y, relax.PrimValue(1), relax.PrimValue(4)),
        [(5, 3), (3, 3)], [(5, 3), (4, 3)],
    ),
    "slice_scatter, other axes": (
        [info(5, A), info(3, B)],
        lambda x, y: op.slice_scatter(x, y, relax.PrimValue(1), relax.PrimValue(4)),
        [(5, 3), (3, 3)], [(5, 3), (3, 4)],
    ),
    "conv1d": (
        [info(1, A, 4), info(4, B, 3)], lambda x, w: op.nn.conv1d(x, w, groups=2),
        [(1, 4, 4), (4, 2, 3)], [(1, 4, 4), (4, 1, 3)],
    ),
    "conv2d": (
        [info(1, A, 4, 4), info(2, B, 3, 3)], op.nn.conv2d,
        [(1, 3, 4, 4), (2, 3, 3, 3)], [(1, 3, 4, 4), (2, 4, 3, 3)],
    ),
    "conv2d, channels last": (
        [info(1, 4, 4, A), info(2, 3, 3, B)],
        lambda x, w: op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI"),
        [(1, 4, 4, 3), (2, 3, 3, 3)], [(1, 4, 4, 3), (2, 3, 3, 2)],
    ),
    "conv2d, channels in blocks": (
        [info(1, A, 4, 4, 2), info(2, B, 3, 3, 2)],
        lambda x, w: op.nn.conv2d(
            x, w, data_layout="NCHW2c", kernel_layout="OIHW2i", out_layout="NCHW"
        ),
        [(1, 3, 4, 4, 2), (2, 3, 3, 3, 2)], [(1, 3, 4, 4, 2), (2, 2, 3, 3, 2)],
    ),
    "conv3d": (
        [info(1, A, 3, 3, 3), info(2, 3, 3, 3, 3)], op.nn.conv3d,
        [(1, 3, 3, 3, 3), (2, 3, 3, 3, 3)], [(1, 4, 3, 3, 3), (2, 3, 3, 3, 3)],
    ),
    "conv1d_transpose": (
        [info(1, A, 4), info(B, 2, 3)], op.nn.conv1d_transpose,
        [(1, 3, 4), (3, 2, 3)], [(1, 3, 4), (4, 2, 3)],
    ),
    "conv2d_transpose": (
        [info(1, A, 4, 4), info(B, 2, 3, 3)], op.nn.conv2d_transpose,
        [(1, 3, 4, 4), (3, 2, 3, 3)], [(1, 3, 4, 4), (4, 2, 3, 3)],
    ),
    "batch_norm": (
        [info(2, A, 2), *[info(B)] * 4],
        lambda *args: op.nn.batch_norm(*args, axis=1, training=False),
        [(2, 3, 2), *[(3,)] * 4], [(2, 3, 2), *[(4,)] * 4],
    ),
    "batch_norm, one channel given": (
        [info(2, A, 2), *[info(B)] * 4], lambda *args: op.nn.batch_norm(*args, axis=1),
        [(2, 4, 2), *[(4,)] * 4], [(2, 4, 2), *[(1,)] * 4],
    ),
    "group_norm": (
        [info(2, A, 2), info(B), info(B)],
        lambda *args: op.nn.group_norm(*args, num_groups=2, channel_axis=1, axes=[2]),
        [(2, 4, 2), (4,), (4,)], [(2, 4, 2), (6,), (6,)],
    ),
    "instance_norm": (
        [info(2, A, 2), info(B), info(B)],
        lambda *args: op.nn.instance_norm(*args, channel_axis=1, axes=[2]),
        [(2, 4, 2), (4,), (4,)], [(2, 4, 2), (5,), (5,)],
    ),
    "attention, heads": (
        [info(1, 2, A, 4), info(1, 3, B, 4)], lambda q, k: op.nn.attention(q, k, k),
        [(1, 2, 4, 4), (1, 3, 2, 4)], [(1, 2, 4, 4), (1, 3, 3, 4)],
    ),
    "grid_sample": (
        [info(A, 1, 3, 3), info(B, 2, 2, 2)], op.image.grid_sample,
        [(2, 1, 3, 3), (2, 2, 2, 2)], [(2, 1, 3, 3), (4, 2, 2, 2)],
    ),
    "quantize": (
        [info(2, A), info(B), info(C, dtype="int8")],
        lambda *args: op.quantize(*args, axis=1), [(2, 3), (3,), (3,)], [(2, 3), (3,), (4,)],
    ),
    "dequantize": (
        [info(2, A, dtype="int8"), info(B), info(B, dtype="int8")],
        lambda *args: op.dequantize(*args, axis=1), [(2, 3), (3,), (3,)], [(2, 3), (4,), (4,)],
    ),
    "multinomial_from_uniform": (
        [info(2, 3), info(A, 1), index(B, 1)], op.multinomial_from_uniform,
        [(2, 3), (2, 1), (2, 1)], [(2, 3), (2, 1), (4, 1)],
    ),
    "pixel_shuffle": (
        [info(1, A, 2, 2)], lambda x: op.nn.pixel_shuffle(x, 2), [(1, 4, 2, 2)], [(1, 5, 2, 2)],
    ),
    "collapse_sum_to": (
        [info(A, 4, B), info(C, 1, D)],
        lambda x, y: op.collapse_sum_to(x, relax.ShapeExpr([4, D])),
        [(2, 4, 3), (5, 1, 3)], [(2, 4, 3), (5, 1, 2)],
    ),
    "collapse_sum_like": (
        [info(A, B), info(C)], op.collapse_sum_like, [(2, 3), (3,)], [(2, 3), (2,)],
    ),
    "window of a pool": (
        [info(1, 1, A)], lambda x: op.nn.max_pool1d(x, 2), [(1, 1, 2)], [(1, 1, 1)],
    ),
    "window that skips": (
        [info(1, 1, A)], lambda x: op.nn.max_pool1d(x, 2, strides=2), [(1, 1, 0)], [(1, 1, 1)],
    ),
    "padded window": (
        [info(1, A, B, 1)],
        lambda x: op.nn.avg_pool2d(x, 3, padding=1, layout="NHWC"),
        [(1, 1, 1, 1)], [(1, 0, 1, 1)],
    ),
    "rounded up": (
        [info(1, 1, A)], lambda x: op.nn.avg_pool1d(x, 3, strides=2, ceil_mode=True),
        [(1, 1, 2)], [(1, 1, 1)],
    ),
    "kernel": (
        [info(1, 2, 3, A), info(2, 2, 3, 2)],
        lambda x, w: op.nn.conv2d(x, w, dilation=2, padding=[2, 0, 2, 0]),
        [(1, 2, 3, 3), (2, 2, 3, 2)], [(1, 2, 3, 2), (2, 2, 3, 2)],
    ),
    "kernel of unknown extent": (
        [info(1, 2, 3), info(2, 2, A)], op.nn.conv1d,
        [(1, 2, 3), (2, 2, 3)], [(1, 2, 3), (2, 2, 4)],
    ),
    "one element": (
        [info(1, 2, 1, A), info(2, 2, 1, 2)], op.nn.conv2d,
        [(1, 2, 1, 2), (2, 2, 1, 2)], [(1, 2, 1, 1), (2, 2, 1, 2)],
    ),
    "squeeze": ([info(A, 3)], lambda x: op.squeeze(x, [0]), [(1, 3)], [(4, 3)]),
}  # fmt: skip
"""Parameters, the operator, shapes that fit and shapes that do not: a match_cast tells them."""

BROADCAST = {
    "two symbols": ([info(A), info(B)], op.add, [(3,), (3,)], [(3,), (4,)]),
    "two symbols, 1": ([info(A), info(B)], op.add, [(3,), (1,)], [(4,), (3,)]),
    "more than a number": ([info(3), info(A)], op.add, [(3,), (3,)], [(3,), (4,)]),
    "less than a number": ([info(3), info(A)], op.multiply, [(3,), (1,)], [(3,), (2,)]),
    "where": (
        [info(3, dtype="bool"), info(A), info(3)], op.where,
        [(3,), (3,), (3,)], [(3,), (4,), (3,)],
    ),
    "ewise_fma": (
        [info(A), info(B), info(3)], op.ewise_fma, [(3,), (3,), (3,)], [(4,), (4,), (3,)],
    ),
    "broadcast_to": (
        [info(A), info(B)], lambda x, y: op.broadcast_to(x, relax.ShapeExpr([2, B])),
        [(3,), (3,)], [(3,), (2,)],
    ),
    "broadcast_to, a number": (
        [info(3), info(B)], lambda x, y: op.broadcast_to(x, relax.ShapeExpr([2, B])),
        [(3,), (3,)], [(3,), (2,)],
    ),
    "matmul": (
        [info(A, 2, 2), info(B, 2, 2)], op.matmul, [(3, 2, 2), (1, 2, 2)], [(3, 2, 2), (4, 2, 2)],
    ),
    "linear, bias": (
        [info(2, 4), info(A, 4), info(B)], op.linear,
        [(2, 4), (3, 4), (3,)], [(2, 4), (3, 4), (4,)],
    ),
    "attention, bias": (
        [info(1, A, 1, 4), info(1, B, 1, 4), info(1, 1, C, D)],
        lambda q, k, b: op.nn.attention(q, k, k, b),
        [(1, 2, 1, 4), (1, 3, 1, 4), (1, 1, 2, 3)], [(1, 2, 1, 4), (1, 3, 1, 4), (1, 1, 2, 4)],
    ),
    "index_tensor": (
        [info(5, 5), index(A), index(B)], lambda x, i, j: op.index_tensor(x, (i, j)),
        [(5, 5), (3,), (3,)], [(5, 5), (3,), (2,)],
    ),
    "index_put": (
        [info(5), index(A), info(B)], lambda x, i, v: op.index_put(x, (i,), v),
        [(5,), (3,), (3,)], [(5,), (3,), (4,)],
    ),
    "index_put, indices": (
        [info(5, 5), index(A), index(B), info(A)],
        lambda x, i, j, v: op.index_put(x, (i, j), v),
        [(5, 5), (3,), (3,), (3,)], [(5, 5), (3,), (4,), (3,)],
    ),
    "gather_elements": (
        [info(3, A), index(3, B)], op.gather_elements, [(3, 4), (3, 4)], [(3, 4), (3, 5)],
    ),
    "scatter_elements, more than data": (
        [info(5, C), index(A, D), info(A, D)], op.scatter_elements,
        [(5, 4), (3, 4), (3, 4)], [(5, 4), (3, 5), (3, 5)],
    ),
    "groups of channels": (
        [info(1, 4, 4, 4), info(A, 2, 3, 3)], lambda x, w: op.nn.conv2d(x, w, groups=2),
        [(1, 4, 4, 4), (4, 2, 3, 3)], [(1, 4, 4, 4), (5, 2, 3, 3)],
    ),
    "groups of a norm": (
        [info(2, A, 2), info(A), info(A)],
        lambda *args: op.nn.group_norm(*args, num_groups=2, channel_axis=1, axes=[2]),
        [(2, 4, 2), (4,), (4,)], [(2, 5, 2), (5,), (5,)],
    ),
}  # fmt: skip
"""Extents that may be 1, and indices: the kernel compares each index that it reads."""

BUILDS = (("native", "default"), ("bytecode", "default"), ("bytecode", "default_build"))


def data_of(infos, shapes):
    """Data that any of the operators takes: indices are 0, other numbers near 1."""
    generator = np.random.default_rng(0)
    found = []
    for part, shape in zip(infos, shapes, strict=True):
        kind = np.dtype(str(part.dtype))
        values = generator.uniform(0.5, 1.5, shape) if kind.kind == "f" else np.ones(shape)
        found.append(np.asarray(values * (kind != np.int64), kind))
    return found


def tensors(value):
    """A result's arrays, in order."""
    fields = value if isinstance(value, tuple | list | weft.ir.Array) else [value]
    return [np.asarray(getattr(field, "numpy", lambda field=field: field)()) for field in fields]


def check(case, error, message):
    """Shapes that fit compute what the reference does; the others end in the error."""
    infos, make, fitting, wrong = case
    params = [relax.Var(f"x{number}", item) for number, item in enumerate(infos)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(*params))
        builder.emit_func_output(out)
    mod = builder.get()
    data = data_of(infos, fitting)
    expected = tensors(run(mod, "main", *data))
    for mode, pipeline in BUILDS:
        executable = relax.build(mod, "llvm", pipeline=pipeline)
        machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        for found, wanted in zip(tensors(machine["main"](*data)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        with pytest.raises(error, match=message):
            machine["main"](*data_of(infos, wrong))


@pytest.mark.parametrize("name", COMPARED)
def test_extents_are_compared(name):
    check(COMPARED[name], ValueError, r"expected shape .*, got \(")


@pytest.mark.parametrize("name", BROADCAST)
def test_extents_that_broadcast_end_in_an_index_error(name):
    check(BROADCAST[name], IndexFault, r"index -?\d+ is out of bounds for buffer")


def test_no_heads_of_keys_is_an_error():
    infos, make, fitting, _ = COMPARED["attention, heads"]
    none = [(1, 2, 4, 4), (1, 3, 0, 4)]
    check((infos, make, fitting, none), ValueError, r"expected shape .*, got \(1, 2, 4, 4\)")
