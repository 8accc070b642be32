"""Extents that must agree and are not proved to are compared when the function runs."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import op
from weft.tir import Var

A, B = Var("a", "int64"), Var("b", "int64")


def info(*shape):
    return relax.TensorStructInfo(shape, "float32")


def norm(x, *weights):
    return op.nn.layer_norm(x, *weights, axes=[-1])


CASES = {
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
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_extents_are_compared(name):
    infos, make, fitting, wrong = CASES[name]
    params = [relax.Var(f"x{index}", item) for index, item in enumerate(infos)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(*params))
        builder.emit_func_output(out)
    mod = builder.get()
    generator = np.random.default_rng(0)
    data = [generator.standard_normal(shape).astype("float32") for shape in fitting]
    expected = relax.reference.run(mod, "main", *data)
    for mode, pipeline in (
        ("native", "default"), ("bytecode", "default"), ("bytecode", "default_build"),
    ):  # fmt: skip
        executable = relax.build(mod, "llvm", pipeline=pipeline)
        machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        np.testing.assert_allclose(machine["main"](*data).numpy(), expected, rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match=r"expected shape .*4"):
            machine["main"](*[np.ones(shape, "float32") for shape in wrong])
