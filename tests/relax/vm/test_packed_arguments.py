"""What a registered function sees of the tensors that a compiled graph passes to it."""

from __future__ import annotations

import numpy as np

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Extern:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32")):
        with R.dataflow():
            y = R.call_dps_packed("test.matmul", (x, w), R.Tensor((2, 4), "float32"))
            z = R.call_dps_packed("test.matmul", (y, y), R.Tensor((2, 2), "float32"))
            R.output(z)
        return z


def test_tensors_arrive_with_their_shapes_and_are_written_through():
    seen = []

    @weft.register_func("test.matmul", override=True)
    def matmul(x, w, out):
        seen.append((x.shape, w.shape, out.shape))
        np.matmul(x.numpy(), w.numpy().T, out=np.from_dlpack(out))

    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((2, 3), (4, 3)))
    machine = relax.VirtualMachine(relax.build(Extern, "llvm"), weft.cpu())
    result = machine["main"](weft.nd.array(x), weft.nd.array(w)).numpy()
    assert seen == [((2, 3), (4, 3), (2, 4)), ((2, 4), (2, 4), (2, 2))]
    np.testing.assert_allclose(result, (x @ w.T) @ (x @ w.T).T, rtol=1e-5)
