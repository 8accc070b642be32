"""Weights that come one at a time, results that go as soon as they are there."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax.analysis import well_formed
from weft.relax.transform import LazyGetInput, LazySetOutput, LazyTransformParams
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import PassError


@I.ir_module
class Plain:
    @R.function
    def transform_params(a: R.Tensor((2, 3), "float32"), b: R.Tensor((2, 3), "float32")):
        c = R.exp(a)
        d = R.add(c, b)
        return (d, c, d, R.const(2.0, "float32"))


@I.ir_module
class Weights:
    @R.function
    def main_transform_params(
        params: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")),
    ):
        with R.dataflow():
            b = params[1]
            a = params[0]
            d = R.add(a, b)
            out = (d, b)
            R.output(out)
        return out


def machine(mod):
    return relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())


def test_inputs_are_asked_for_before_their_first_use():
    @I.ir_module
    class Expected:
        @R.function
        def transform_params(get: R.Callable((R.Prim("int64"), R.Object), R.Object)):
            R.func_attr({"num_input": 1})
            raw = get(R.prim_value(0), R.str("a"))
            a = R.match_cast(raw, R.Tensor((2, 3), "float32"))
            c = R.exp(a)
            raw1 = get(R.prim_value(1), R.str("b"))
            b = R.match_cast(raw1, R.Tensor((2, 3), "float32"))
            d = R.add(c, b)
            return (d, c, d, R.const(2.0, "float32"))

    made = LazyGetInput()(Plain)
    assert_structural_equal(made, Expected)
    assert well_formed(made)


def test_outputs_are_handed_over_behind_their_bindings():
    @I.ir_module
    class Expected:
        @R.function(pure=False)
        def transform_params(
            a: R.Tensor((2, 3), "float32"),
            b: R.Tensor((2, 3), "float32"),
            put: R.Callable((R.Prim("int64"), R.Object), R.Tuple([]), False),
        ):
            c = R.exp(a)
            put(R.prim_value(1), c)
            d = R.add(c, b)
            put(R.prim_value(0), d)
            put(R.prim_value(2), d)
            put(R.prim_value(3), R.const(2.0, "float32"))
            return R.tuple()

    made = LazySetOutput()(Plain)
    assert_structural_equal(made, Expected)
    assert well_formed(made)


def test_inputs_that_are_no_weights_stay():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor(("n", 3), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.add(x, w)
                R.output(y)
            return (y, w)

    first = LazyGetInput()(Before)["main"]
    assert [param.name_hint for param in first.params] == ["x", "fget_param"]
    assert first.attrs["num_input"] == 2
    assert well_formed(first)
    second = LazySetOutput()(Before)["main"]
    assert [param.name_hint for param in second.params] == ["x", "fset_output", "w"]
    calls = [binding.value for block in second.body.blocks for binding in block.bindings]
    assert calls[0].args[1] is second.params[2]
    assert well_formed(second)
    private = relax.transform.Sequential([LazyGetInput(), LazySetOutput()])
    mod = weft.IRModule({"main": Before["main"].without_attr("global_symbol")})
    assert private(mod) is mod


def test_weights_of_a_tuple_are_read_freed_and_handed_over():
    @I.ir_module
    class Expected:
        @R.function(pure=False)
        def main_transform_params():
            raw = R.call_packed("get_item", R.prim_value(1), sinfo_args=(R.Object,))
            cast = R.match_cast(raw, R.Tensor((3,), "float32"))
            b: R.Tensor((3,), "float32") = cast
            raw1 = R.call_packed("get_item", R.prim_value(0), sinfo_args=(R.Object,))
            cast1 = R.match_cast(raw1, R.Tensor((2, 3), "float32"))
            a: R.Tensor((2, 3), "float32") = cast1
            d = R.add(a, b)
            _ = R.vm.kill_object(a)
            _ = R.call_packed("set_item", R.prim_value(1), b, sinfo_args=(R.Object,))
            _ = R.vm.kill_object(b)
            _ = R.call_packed("set_item", R.prim_value(0), d, sinfo_args=(R.Object,))
            out = R.tuple()
            return out

    made = LazyTransformParams()(Weights)
    assert_structural_equal(made, Expected)
    assert well_formed(made)


def test_the_lazy_function_computes_the_same():
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.ones(3, "float32")
    asked, made = [], {}

    def get(index):
        asked.append(index)
        return weft.nd.array((x, y)[index])

    def put(index, value):
        made[index] = value.numpy()

    weft.register_func("tests.lazy.get", get, override=True)
    weft.register_func("tests.lazy.put", put, override=True)
    mod = LazyTransformParams("tests.lazy.get", "tests.lazy.put")(Weights)
    machine(mod)["main_transform_params"]()
    assert asked == [1, 0]
    assert sorted(made) == [0, 1]
    np.testing.assert_array_equal(made[0], x + y)
    np.testing.assert_array_equal(made[1], y)


def test_callbacks_take_more_arguments_and_symbols_stay():
    @I.ir_module
    class Before:
        @R.function
        def transform_params(
            params: R.Tuple(R.Tensor((4,), "float32"), R.Shape(["n"])), unused: R.Object
        ):
            R.func_attr({"relax.force_pure": True})
            return (unused,)

    loader, target = (relax.Var(name, relax.ObjectStructInfo()) for name in ("loader", "target"))
    made = LazyTransformParams(
        extra_get_item_params=[loader], extra_set_item_params=[target]
    )(Before)["transform_params"]  # fmt: skip
    assert [param.name_hint for param in made.params] == ["loader", "target", "symbolic_var_holder"]
    assert "relax.force_pure" not in made.attrs
    calls = [binding.value for block in made.body.blocks for binding in block.bindings]
    assert calls[0].args[0] is made.params[0]
    assert int(calls[0].args[1].value) == 1
    assert calls[-1].args[0] is made.params[1]
    plain = LazyTransformParams(fset_item=None)(Plain)["transform_params"]
    assert [field.name_hint for field in plain.body.body.fields[:3]] == ["d", "c", "d"]
    assert not plain.params


def test_what_cannot_be_is_refused():
    with pytest.raises(PassError, match="fget_item: expected a name, got None"):
        LazyTransformParams(None)

    @R.function
    def transform_params(x: R.Tensor((3,), "float32")):
        return x

    mod = weft.IRModule({"transform_params": transform_params})
    with pytest.raises(PassError, match="expected a function that returns a tuple, got x"):
        LazyTransformParams()(mod)
    wrong = weft.IRModule({"main": transform_params.with_attr("num_input", 2)})
    with pytest.raises(PassError, match="num_input: expected 0 to 1, the number of parameters"):
        LazyGetInput()(wrong)
