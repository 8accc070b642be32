"""Exported functions: symbols, parameters, effects, several methods, structure of arguments."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.ir.structural import assert_structural_equal
from weft.relax.frontend import nn
from weft.relax.frontend.nn.exporter import Exporter
from weft.script import from_source
from weft.script import ir as I
from weft.script import relax as R


class Scale(nn.Module):
    def __init__(self):
        self.factor = nn.Parameter((4,))

    def forward(self, x: nn.Tensor):
        return x * self.factor

    def shift(self, x: nn.Tensor, by: nn.Tensor):
        return x + by


def exported(module, spec, **options):
    mod, params = module.export_tvm(spec, **options)
    assert_structural_equal(from_source(mod.script(show_meta=True)), mod)
    return mod, params


def test_the_exported_function():
    @I.ir_module
    class Expected:
        @R.function
        def forward(x: R.Tensor(("n", 4), "float32"), factor: R.Tensor((4,), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                mul = R.multiply(x, factor)
                gv = mul
                R.output(gv)
            return gv

    module = Scale()
    mod, params = exported(module, {"forward": {"x": nn.spec.Tensor(["n", 4], "float32")}})
    assert_structural_equal(mod, Expected)
    assert [name for name, _ in params] == ["factor"]
    assert params[0][1] is module.factor


def test_debug_adds_an_effect():
    @I.ir_module
    class Expected:
        @R.function
        def _initialize_effect():
            with R.dataflow():
                _io = R.null_value()
                lv = (_io,)
                gv = lv
                R.output(gv)
            return gv

        @R.function
        def forward(x: R.Tensor((4,), "float32"), _io: R.Object, factor: R.Tensor((4,), "float32")):
            R.func_attr({"num_input": 2})
            with R.dataflow():
                mul = R.multiply(x, factor)
                gv = mul, (_io,)
                R.output(gv)
            return gv

    spec = {"forward": {"x": nn.spec.Tensor([4], "float32")}}
    assert_structural_equal(exported(Scale(), spec, debug=True)[0], Expected)


def test_packed_parameters_and_effects():
    @I.ir_module
    class Expected:
        @R.function
        def _initialize_effect():
            with R.dataflow():
                _io = R.null_value()
                lv = (_io,)
                gv = lv
                R.output(gv)
            return gv

        @R.function
        def forward(
            x: R.Tensor((4,), "float32"),
            packed_effects: R.Tuple(R.Object),
            packed_params: R.Tuple(R.Tensor((4,), "float32")),
        ):
            R.func_attr({"num_input": 2})
            with R.dataflow():
                io = packed_effects[0]
                factor = packed_params[0]
                mul = R.multiply(x, factor)
                gv = mul, (io,)
                R.output(gv)
            return gv

    spec = {"forward": {"x": nn.spec.Tensor([4], "float32"),
                        "$": {"param_mode": "packed", "effect_mode": "packed"}}}  # fmt: skip
    assert_structural_equal(exported(Scale(), spec, debug=True)[0], Expected)
    assert "$" in spec["forward"]


def test_modes_none_leave_them_out():
    spec = {"shift": {"x": nn.spec.Tensor([4], "float32"), "by": nn.spec.Tensor([4], "float32"),
                      "$": {"param_mode": "none", "effect_mode": "none"}}}  # fmt: skip
    mod, _ = exported(Scale(), spec, debug=True)
    assert [param.name_hint for param in mod["shift"].params] == ["x", "by"]
    assert mod["shift"].attrs["num_input"] == 2


def test_a_name_is_one_symbol_within_a_function():
    spec = {name: {"x": nn.spec.Tensor(["n", 4], "float32")} for name in ("forward",)}
    spec["shift"] = {"x": nn.spec.Tensor(["n", 4], "float32"),
                     "by": nn.spec.Tensor(["n", 1], "float32")}  # fmt: skip
    mod, _ = exported(Scale(), spec)
    x, by, _ = [param.struct_info.shape.values[0] for param in mod["shift"].params]
    assert x is by
    assert mod["forward"].params[0].struct_info.shape.values[0] is not x


def test_a_symbol_of_the_user_stays_the_same_one():
    n = tir.Var("n", "int64")
    spec = {"forward": {"x": nn.spec.Tensor([n, 4], "float32")}}
    mod, _ = exported(Scale(), spec)
    assert mod["forward"].params[0].struct_info.shape.values[0] is n


def test_parameters_are_as_before_after_an_export():
    layer = nn.Linear("k", 4)
    before = layer.weight._expr
    exported(layer, {"forward": {"x": nn.spec.Tensor([2, "k"], "float32")}})
    assert layer.weight._expr is before


def test_parameters_are_as_before_after_an_error():
    class Broken(Scale):
        def forward(self, x: nn.Tensor):
            raise ZeroDivisionError

    module = Broken()
    before = module.factor._expr
    with pytest.raises(ZeroDivisionError):
        module.export_tvm({"forward": {"x": nn.spec.Tensor([4], "float32")}})
    assert module.factor._expr is before
    assert Exporter.current() is None
    assert relax.BlockBuilder.current() is None


class Structured(nn.Module):
    def forward(self, pair, n, scale=None):
        first, (second, third) = pair
        assert isinstance(pair, tuple)
        assert isinstance(pair[1], list)
        made = first.reshape(n, 2) + second
        return [made, (third,)] if scale is None else made * scale


def test_nested_arguments_and_integers():
    two = nn.spec.Tensor(["n", 2], "float32")
    spec = {"forward": {"pair": (nn.spec.Tensor([8], "float32"), [two, two]), "n": int}}
    mod, _ = exported(Structured(), spec)
    vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x, y = np.arange(8, dtype="float32"), np.ones((4, 2), "float32")
    made, (third,) = vm["forward"]((x, (y, 2 * y)), weft.runtime.ShapeTuple([4]))
    np.testing.assert_array_equal(made.numpy(), x.reshape(4, 2) + 1)
    np.testing.assert_array_equal(third.numpy(), 2 * y)


def test_arguments_left_out_keep_their_defaults():
    class Optional(nn.Module):
        def forward(self, x: nn.Tensor, y=None, z=None):
            assert y is None
            return x if z is None else x + z

    four = nn.spec.Tensor([4], "float32")
    mod, _ = exported(Optional(), {"forward": {"x": four, "z": four}})
    assert [param.name_hint for param in mod["forward"].params] == ["x", "z"]
    assert "R.add(x, z)" in mod.script()


def test_objects_are_arguments():
    class Handle(nn.Object):
        pass

    class Model(nn.Module):
        def forward(self, handle, x: nn.Tensor):
            assert isinstance(handle, Handle)
            return handle, x

    spec = {"forward": {"handle": nn.spec.Object(Handle), "x": nn.spec.Tensor([2], "float32")}}
    mod, _ = exported(Model(), spec)
    assert isinstance(mod["forward"].params[0].struct_info, relax.ObjectStructInfo)


def test_allow_extern_returns_a_third_item():
    spec = {"forward": {"x": nn.spec.Tensor([4], "float32")}}
    assert len(Scale().export_tvm(spec, allow_extern=True)) == 3


def test_wrong_results():
    class Model(nn.Module):
        def forward(self, x: nn.Tensor):
            return {"x": x}

    with pytest.raises(TypeError, match="forward: Unsupported return type: dict; a method returns"):
        Model().export_tvm({"forward": {"x": nn.spec.Tensor([4], "float32")}})


def test_exports_do_not_nest():
    class Model(nn.Module):
        def forward(self, x: nn.Tensor):
            self.export_tvm({"forward": {"x": nn.spec.Tensor([4], "float32")}})

    with pytest.raises(ValueError, match="a module is being exported already in this thread"):
        Model().export_tvm({"forward": {"x": nn.spec.Tensor([4], "float32")}})
