"""Modules as functions of their own."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.ir.structural import assert_structural_equal
from weft.relax.frontend import nn
from weft.script import from_source


class Scale(nn.Module):
    define_subroutine = True

    def __init__(self, size, power=1):
        self.weight = nn.Parameter((size,))
        self.power = power

    def forward(self, x: nn.Tensor):
        for _ in range(self.power):
            x = x * self.weight
        return x


class MLPBlock(nn.Module):
    define_subroutine = True

    def __init__(self, parts):
        self.parts = nn.ModuleList(parts)

    def forward(self, pair, plus=0):
        x, y = pair
        return self.parts(x) + plus, y


class Model(nn.Module):
    def __init__(self, *parts):
        self.block = MLPBlock(parts)

    def forward(self, x: nn.Tensor, y: nn.Tensor):
        first, second = self.block((x, y), plus=1)
        return first, self.block((second, x))[0]


def exported(model, shape):
    spec = {"forward": {"x": nn.spec.Tensor(shape, "float32"),
                        "y": nn.spec.Tensor(shape, "float32")}}  # fmt: skip
    mod, params = model.export_tvm(spec)
    assert_structural_equal(from_source(mod.script(show_meta=True)), mod)
    return mod, params


def names(mod):
    return sorted(var.name_hint for var in mod.functions)


@pytest.mark.parametrize("shape", [[2, 3], ["n", 3]], ids=["static", "symbolic"])
def test_nested_subroutines_compute_the_same(shape, fill, random):
    model = Model(Scale(3), Scale(3, power=2))
    data = list(fill(model).values())
    mod, _ = exported(model, shape)
    assert names(mod) == ["forward", "mlp_block", "mlp_block1", "scale", "scale1"]
    assert mod["scale"].attrs.get("global_symbol") is None
    x, y = random(2, 3), random(2, 3)
    vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
    first, second = vm["forward"](x, y, *data)
    product = data[0] * data[1] ** 2
    np.testing.assert_allclose(first.numpy(), x * product + 1, rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), y * product, rtol=1e-5)


def test_equal_calls_share_a_function():
    mod, _ = exported(Model(Scale(3), Scale(3)), ["n", 3])
    assert names(mod) == ["forward", "mlp_block", "mlp_block1", "scale"]


def test_layers_that_differ_in_their_code_share_nothing():
    """A class, shapes and types do not tell all: here the power does."""
    mod, _ = exported(Model(Scale(3), Scale(3, power=2)), [1, 3])
    assert "scale1" in names(mod)


def test_a_second_export_starts_anew():
    model = Model(Scale(3))
    first, _ = exported(model, ["n", 3])
    second, _ = exported(model, ["n", 3])
    assert_structural_equal(first, second)


def test_symbols_are_the_functions_own():
    mod, _ = exported(Model(Scale(3)), ["n", 3])
    symbols = [mod[name].params[0].struct_info.shape.values[0] for name in names(mod)]
    assert len({id(symbol) for symbol in symbols}) == len(symbols)


def test_what_a_subroutine_needs():
    with pytest.raises(ValueError, match="Scale, a class with define_subroutine,: no function is "):
        Scale(3)(nn.Tensor.placeholder([3], "float32"))

    class Odd(nn.Module):
        define_subroutine = True

        def forward(self, x: nn.Tensor):
            return "x"

    with pytest.raises(TypeError, match="odd: a module with define_subroutine returns tensors or "):
        Odd().export_tvm({"forward": {"x": nn.spec.Tensor([3], "float32")}})


def test_outside_of_dataflow_blocks_too(random):
    bb, layer = relax.BlockBuilder(), Scale(3)
    x = relax.Var("x", relax.TensorStructInfo((tir.Var("n", "int64"), 3), "float32"))
    with bb.function("main", [x, layer.weight._expr]):
        bb.emit_func_output(layer(nn.Tensor(_expr=x))._expr)
    vm = relax.VirtualMachine(relax.build(bb.get()), weft.cpu())
    rows, weight = random(4, 3), random(3)
    np.testing.assert_allclose(vm["main"](rows, weight).numpy(), rows * weight, rtol=1e-6)
