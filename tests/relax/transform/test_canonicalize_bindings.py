"""CanonicalizeBindings where dataflow variables must not leave their block."""

import weft
from weft.relax.analysis import well_formed
from weft.relax.transform import CanonicalizeBindings
from weft.script import ir as I
from weft.script import relax as R


def test_a_field_of_a_tuple_stays_where_its_variable_is_not_visible():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            with R.dataflow():
                lv = R.add(x, y)
                gv = (lv, y)
                R.output(gv)
            with R.dataflow():
                a = gv[0]
                b = gv[1]
                c = R.add(a, b)
                R.output(c)
            return c

    made = CanonicalizeBindings()(Before)
    assert well_formed(made)
    text = made.script()
    assert "gv[0]" in text  # of a dataflow variable
    assert "gv[1]" not in text  # of a parameter


def test_a_tuple_of_all_fields_stays_where_the_tuple_is_not_visible():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                t = R.split(x, 2)
                a = t[0]
                b = t[1]
                R.output(a, b)
            w = (a, b)
            return w

    assert well_formed(CanonicalizeBindings()(Before))


def test_fields_within_one_block_are_followed():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(x)
                pair = (lv, x)
                first = pair[0]
                out = R.add(first, first)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(x)
                out = R.add(lv, lv)
                R.output(out)
            return out

    weft.ir.assert_structural_equal(CanonicalizeBindings()(Before), Expected)
