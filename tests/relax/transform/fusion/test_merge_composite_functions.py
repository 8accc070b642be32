"""MergeCompositeFunctions: which composites become one function of a backend."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.dpl import is_op
from weft.relax.transform import FuseOpsByPattern, MergeCompositeFunctions
from weft.script import ir as I
from weft.script import relax as R


def partitioned(module, backends):
    """Each operator named as a composite of its backend, then merged."""
    patterns = [
        (f"{backend}.{name.rsplit('.', 1)[1]}", is_op(name)(varg_default_wildcard=True))
        for name, backend in backends.items()
    ]
    return MergeCompositeFunctions()(FuseOpsByPattern(patterns)(module))


def backends_of(module):
    found = [func.attrs.get("Codegen") for func in module.functions.values()]
    return sorted(str(name) for name in found if name is not None)


def run(module, *arrays):
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), weft.cpu())
    return machine["main"](*(weft.nd.array(array) for array in arrays)).numpy()


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Chain
        with R.dataflow():
            a = cls.fused_exp(x)
            b = cls.fused_sin(a)
            R.output(b)
        return b

    @R.function(private=True)
    def fused_exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "lib.exp", "Primitive": 1})
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    @R.function(private=True)
    def fused_sin(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "lib.sin", "Primitive": 1})
        with R.dataflow():
            y = R.sin(x)
            R.output(y)
        return y


def test_a_chain_becomes_one_function_that_holds_its_composites():
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Expected
            with R.dataflow():
                b = cls.fused_exp_sin_lib(x)
                R.output(b)
            return b

        @R.function
        def fused_exp_sin_lib(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Codegen": "lib"})

            @R.function
            def exp(x1: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                R.func_attr({"Composite": "lib.exp"})
                with R.dataflow():
                    y = R.exp(x1)
                    R.output(y)
                return y

            a = exp(x)

            @R.function
            def sin(x2: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                R.func_attr({"Composite": "lib.sin"})
                with R.dataflow():
                    y = R.sin(x2)
                    R.output(y)
                return y

            b = sin(a)
            return b

    assert_structural_equal(MergeCompositeFunctions()(Chain), Expected)


@I.ir_module
class Diamond:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(a)
            c = R.cos(a)
            d = R.add(b, c)
            R.output(d)
        return d


@pytest.mark.parametrize(
    ("cos", "expected"), [("one", ["one"]), ("two", ["one", "one", "two"]), (None, ["one", "one"])]
)
def test_a_group_never_needs_its_own_result(cos, expected):
    """With cos elsewhere, add cannot join exp and sin: cos lies between."""
    backends = {"relax.exp": "one", "relax.sin": "one", "relax.add": "one"}
    if cos:
        backends["relax.cos"] = cos
    made = partitioned(Diamond, backends)
    assert backends_of(made) == expected
    assert relax.analysis.well_formed(made)
    assert not [f for f in made.functions.values() if "Composite" in f.attrs]


def test_backends_are_kept_apart():
    made = partitioned(Diamond, {"relax.exp": "one", "relax.sin": "two"})
    assert backends_of(made) == ["one", "two"]


def test_a_module_without_composites_is_returned_as_it_is():
    assert MergeCompositeFunctions()(Diamond) is Diamond


def test_a_composite_that_is_called_twice_is_one_local_function():
    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(a)
                R.output(b)
            return b

    made = partitioned(Twice, {"relax.exp": "lib"})
    (merged,) = (func for func in made.functions.values() if "Codegen" in func.attrs)
    values = [binding.value for block in merged.body.blocks for binding in block.bindings]
    assert [isinstance(value, relax.Function) for value in values] == [True, False, False]
    x = np.linspace(0, 1, 4).astype("float32")
    np.testing.assert_allclose(np.exp(np.exp(x)), run(Twice, x), rtol=1e-5)
