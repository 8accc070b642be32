"""Runs functions of nn tensors: exported, through text and back, compiled, on arrays."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax.frontend import nn
from weft.relax.frontend.nn.exporter import Exporter
from weft.script import from_source


def checked(mod):
    """The module, after a check that its text gives the same module."""
    assert_structural_equal(from_source(mod.script(show_meta=True)), mod)
    return mod


def plain(value):
    """Results as numpy arrays."""
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    return value.numpy() if isinstance(value, weft.nd.NDArray) else value


def export_function(function, specs, module=None, **options):
    names = [f"x{index}" for index in range(len(specs))]
    method = nn.spec.MethodSpec(function, names, specs, "plain", "plain")
    spec = nn.spec.ModuleSpec(module or nn.Module(), ["main"], [method])
    mod, params = Exporter(**options).build(spec)
    return checked(mod), params


@pytest.fixture
def export():
    """``export(function, *specs)``: the module whose main is a function of nn tensors."""

    def run(function, *specs, **options):
        return export_function(function, specs, **options)[0]

    return run


@pytest.fixture
def apply():
    """``apply(function, *arrays, dims=())``: its results; ``dims`` are shapes with symbols."""

    def run(function, *arrays, dims=()):
        shapes = [*dims, *[None] * (len(arrays) - len(dims))]
        specs = [
            nn.spec.Tensor(shape or array.shape, str(array.dtype))
            for shape, array in zip(shapes, arrays, strict=True)
        ]
        mod, _ = export_function(function, specs)
        vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
        return plain(vm["main"](*[weft.nd.array(array) for array in arrays]))

    return run


@pytest.fixture
def call():
    """``call(layer, *arrays, dims=())``: a module's results with the data its parameters hold."""

    def run(layer, *arrays, dims=(), forward=None):
        shapes = [*dims, *[None] * (len(arrays) - len(dims))]
        specs = [
            nn.spec.Tensor(shape or array.shape, str(array.dtype))
            for shape, array in zip(shapes, arrays, strict=True)
        ]
        mod, params = export_function(forward or layer.forward, specs, layer)
        vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
        data = [param.data for _, param in params]
        return plain(vm["main"](*[weft.nd.array(array) for array in arrays], *data))

    return run


@pytest.fixture
def random():
    """``random(*shape)``: normal float32 numbers."""
    source = np.random.default_rng(0)

    def make(*shape, dtype="float32"):
        return source.standard_normal(shape).astype(dtype)

    return make


@pytest.fixture
def fill(random):
    """``fill(layer)``: random data in all parameters, by name."""

    def run(layer):
        data = {name: random(*item.shape) for name, item in layer.named_parameters()}
        layer.load_state_dict(data)
        return data

    return run
