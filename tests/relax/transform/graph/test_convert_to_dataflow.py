"""ConvertToDataflow: where blocks begin and end, and what leaves them."""

import numpy as np

from weft.relax.transform import ConvertToDataflow
from weft.script import ir as I
from weft.script import relax as R

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_effects_and_branches_end_a_block(check):
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(c: R.Prim("bool"), x: R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            b = R.add(a, a)
            _ = R.print(b, format="{}")
            d = R.sin(b)
            if c:
                e = R.cos(d)
                f = R.add(e, d)
            else:
                f = d
            g = R.exp(f)
            h = R.add(g, a)
            return h

    @I.ir_module
    class Expected:
        @R.function(pure=False)
        def main(c: R.Prim("bool"), x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(a, b)
            _ = R.print(b, format="{}")
            d = R.sin(b)
            if c:
                with R.dataflow():
                    e = R.cos(d)
                    f0 = R.add(e, d)
                    R.output(f0)
                f = f0
            else:
                f = d
            with R.dataflow():
                g = R.exp(f)
                h = R.add(g, a)
                R.output(h)
            return h

    check(ConvertToDataflow(), Before, Expected)


def test_min_size_counts_bindings(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            b = R.add(a, a)
            return b

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(b)
            return b

    check(ConvertToDataflow(min_size=3), Before, Before)
    check(ConvertToDataflow(min_size=2), Before, Expected, X)


def test_a_block_grows_over_its_neighbours(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            with R.dataflow():
                b = R.add(a, a)
                R.output(b)
            c = R.sin(b)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                c = R.sin(b)
                R.output(c)
            return c

    made = check(ConvertToDataflow(min_size=5), Before, Expected, X)
    assert ConvertToDataflow(min_size=1)(made) is made
