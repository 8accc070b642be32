"""TopologicalSort: four orders, and the edges that are no uses."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np
import pytest

from weft.relax.transform import TopologicalSort
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError

X = np.arange(6, dtype="float32").reshape(2, 3)


@I.ir_module
class Mixed:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a1 = R.exp(y)
            b1 = R.sin(x)
            one = R.const(1, "float32")
            a2 = R.add(a1, one)
            b2 = R.cos(b1)
            c = R.add(b2, a2)
            R.output(c)
        return c


@I.ir_module
class DepthFirst:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            b1 = R.sin(x)
            b2 = R.cos(b1)
            a1 = R.exp(y)
            one = R.const(1, "float32")
            a2 = R.add(a1, one)
            c = R.add(b2, a2)
            R.output(c)
        return c


@I.ir_module
class BreadthFirst:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            one = R.const(1, "float32")
            b1 = R.sin(x)
            a1 = R.exp(y)
            b2 = R.cos(b1)
            a2 = R.add(a1, one)
            c = R.add(b2, a2)
            R.output(c)
        return c


@I.ir_module
class BreadthFirstFromOutputs:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            one = R.const(1, "float32")
            a1 = R.exp(y)
            b1 = R.sin(x)
            a2 = R.add(a1, one)
            b2 = R.cos(b1)
            c = R.add(b2, a2)
            R.output(c)
        return c


@pytest.mark.parametrize(
    ("order", "direction", "expected"),
    [
        ("depth-first", "from-inputs", DepthFirst),
        ("breadth-first", "from-inputs", BreadthFirst),
        ("depth-first", "from-outputs", DepthFirst),
        ("breadth-first", "from-outputs", BreadthFirstFromOutputs),
    ],
)
def test_orders(check, order, direction, expected):
    made = check(TopologicalSort(order, direction), Mixed, expected, X, X)
    assert TopologicalSort(order, direction)(made) is made


def test_outputs_are_sorted_by_their_use_and_unused_bindings_come_first(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(x)
                unused = R.cos(x)
                R.output(a, b)
            c = R.exp(b)
            return (c, a)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                unused = R.cos(x)
                b = R.sin(x)
                a = R.exp(x)
                R.output(a, b)
            c = R.exp(b)
            return (c, a)

    check(TopologicalSort("depth-first", "from-outputs"), Before, Expected, X)


def test_a_symbol_is_defined_before_it_is_used(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor("float32", ndim=1)):
            with R.dataflow():
                n = T.int64()
                cast = R.match_cast(y, R.Tensor((n,), "float32"))
                a = R.exp(x)
                b = R.ones(R.shape([n]), "float32")
                out = (a, b, cast)
                R.output(out)
            return out

    for order in ("depth-first", "breadth-first"):
        for direction in ("from-inputs", "from-outputs"):
            made = TopologicalSort(order, direction)(Before)
            check(TopologicalSort(order, direction), Before, made, X, X[0])
            names = [binding.var.name_hint for binding in made["main"].body.blocks[0].bindings]
            assert names.index("cast") < names.index("b")


def test_later_blocks_take_up_what_earlier_ones_made(check):
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(a)
                R.output(a, b)
            _ = R.print(b, format="")
            with R.dataflow():
                c = R.add(a, b)
                d = R.exp(x)
                e = R.add(c, d)
                R.output(e)
            return e

    check(TopologicalSort("depth-first", "from-outputs"), Before, Before)


def test_unknown_orders_are_errors():
    with pytest.raises(PassError, match="order: expected 'depth-first' or 'breadth-first', got"):
        TopologicalSort("sideways")
    with pytest.raises(PassError, match="direction: expected 'from-inputs' or 'from-outputs', got"):
        TopologicalSort(direction="sideways")
