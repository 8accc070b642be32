"""Programs that are imported without decomposition, and those that must not be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import weft
from weft.relax.frontend.torch import exported_program, from_exported_program
from weft.relax.frontend.torch.as_captured import converters_as_captured
from weft.relax.frontend.torch.registry import converters_with, overload_name


class Model(nn.Module):
    """A function as a module."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.linspace(-1, 1, 54).reshape(2, 3, 3, 3))

    def forward(self, x):
        return self.function(x, self.weight)


def captured(model: nn.Module, *inputs: torch.Tensor):
    """The exported program, and the converters for it as it is, or None."""
    program = torch.export.export(model.eval(), inputs)
    return program, converters_as_captured(program.graph_module, converters_with())


def check(program, *inputs: torch.Tensor) -> None:
    """Compare what weft compiles of a program with PyTorch."""
    model = weft.compile(from_exported_program(program, unwrap_unit_return_tuple=True))
    expected = program.module()(*inputs)
    np.testing.assert_allclose(model(*inputs), expected.detach(), rtol=1e-5, atol=1e-5)


def images(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


PLAIN = {
    "relu_ of a convolution": lambda x, w: nn.functional.conv2d(x, w).relu_(),
    "add_ and relu_ of a sum": lambda x, w: (x + 1).add_(x, alpha=2).relu_() * x,
    "hardtanh_ twice": lambda x, w: nn.functional.hardtanh_(nn.functional.hardtanh_(x * 9), 0, 6),
    "views": lambda x, w: x.reshape(-1).contiguous().view(3, -1).transpose(0, 1).flatten(),
    "a strided convolution": lambda x, w: nn.functional.conv2d(x, w, None, 2, 1, 2),
    "a convolution of a single image": lambda x, w: nn.functional.conv2d(x[0], w, w[:, 0, 0, 0]),
    "dropout": lambda x, w: nn.functional.dropout(x, 0.5, training=False) + 1,
    "dropout_ of a view": lambda x, w: nn.functional.dropout(x[0, 0, 0], 0.5, False, True) * x,
    "kinds of dropout_ of an input": lambda x, w: (
        nn.functional.alpha_dropout(nn.functional.dropout(x, 0.5, False, True), 0.5, False, True)
        + nn.functional.dropout2d(x, 0.5, False, True)
        + nn.functional.feature_alpha_dropout(x, 0.5, False, True)
    ),
    "relu_ of dropout_": lambda x, w: nn.functional.dropout(x * 2, 0.5, False, True).relu_(),
}


@pytest.mark.parametrize("name", PLAIN)
def test_these_need_no_decomposition(name):
    x = images(1, 3, 8, 8)
    program, converters = captured(Model(PLAIN[name]), x)
    assert converters is not None
    check(program, x)


def write_to_view(x, w):
    y = x + 1
    y[0].mul_(2)
    return y


def read_before_and_after(x, w):
    y = x * 2
    z = y.sum()
    y.relu_()
    return y + z


def write_after_contiguous(x, w):
    y = x * 2
    y.contiguous().add_(1)
    return y


def write_to_input(x, w):
    return x.add_(1) * 2


def write_of_another_type(x, w):
    return (x * 10).to(torch.float16).sin().add_(x).to(torch.float32)


CHANGING = {
    "what is added has another type": write_of_another_type,
    "a view is written": write_to_view,
    "another reads what is written": read_before_and_after,
    "an input is written": write_to_input,
}


def check_changed(function, module) -> None:
    x = images(1, 3, 8, 8)
    result = weft.compile(module)(x.clone())
    last = result[-1] if isinstance(result, tuple | list) else result
    np.testing.assert_allclose(last, function(x.clone(), None), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CHANGING)
def test_these_are_decomposed(name):
    program, converters = captured(Model(CHANGING[name]), images(1, 3, 8, 8))
    assert converters is None
    check_changed(CHANGING[name], from_exported_program(program))


def test_contiguous_that_gives_its_input():
    program, _ = captured(Model(write_after_contiguous), images(1, 3, 8, 8))
    check_changed(write_after_contiguous, from_exported_program(program))


def test_a_write_to_what_dropout_may_have_passed_on_is_decomposed():
    def function(x, w):
        return nn.functional.dropout(x * 2, 0.5, training=False).add_(1)

    assert captured(Model(function), images(4))[1] is None


def test_a_write_to_a_view_that_dropout_in_place_passed_on_is_decomposed():
    def function(x, w):
        y = x * 2
        nn.functional.dropout(y.flatten(), 0.5, training=False, inplace=True).add_(1)
        return y

    program, converters = captured(Model(function), images(4))
    assert converters is None
    check(program, images(4))


def test_dropout_in_place_that_trains_is_decomposed():
    def function(x, w):
        return nn.functional.dropout(x * 2, 0.5, training=True, inplace=True)

    assert captured(Model(function), images(4))[1] is None


def test_batch_normalisation_that_trains_is_decomposed():
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2))
    x = images(2, 3, 8, 8)
    assert captured(model, x)[1] is not None
    program = torch.export.export(model.train(), (x,))
    assert converters_as_captured(program.graph_module, converters_with()) is None


def sums_of_parts(x, w):
    """Operators of which none has a converter: one result, several, none that computes anything."""
    pairs = torch.meshgrid(x[0, 0, :, 0], x[0, 0, 0], indexing="xy")
    shuffled = nn.functional.pixel_shuffle(nn.functional.dropout2d(x, 0.5, training=False), 2)
    angle = nn.functional.cosine_similarity(x, x.flip(0), dim=1)
    steps = torch.diff(x, dim=-1)
    return shuffled.sum(1) * pairs[1].sum() + angle.mean() + steps.mean() + pairs[0].mean()


@pytest.mark.parametrize("dynamic", [None, {"x": {0: torch.export.Dim.DYNAMIC}, "weight": None}])
def test_operators_without_converters_are_decomposed_at_their_places(dynamic, monkeypatch):
    def whole(*_):
        raise AssertionError("the whole program is decomposed")

    x, weight = images(3, 4, 8, 8), images(6, 4, 3, 3)
    model = Model(lambda x, w: sums_of_parts(torch.nn.functional.conv2d(x, w, padding="same"), w))
    model.forward = lambda x, weight: model.function(x, weight[:4])
    program = torch.export.export(model.eval(), (x, weight), dynamic_shapes=dynamic)
    names = {overload_name(node.target) for node in program.graph.nodes}
    assert {"aten.diff.default", "aten.conv2d.padding", "aten.meshgrid.indexing"} <= names
    assert not {"aten.diff.default", "aten.conv2d.padding"} & {*converters_with()}
    monkeypatch.setattr(exported_program, "decompose", whole)
    compiled = weft.compile(program, cache=False)
    for batch in (3,) if dynamic is None else (3, 2, 5):
        x = images(batch, 4, 8, 8)
        expected = program.module()(x, weight)
        np.testing.assert_allclose(compiled(x, weight), expected, rtol=1e-4, atol=1e-4)
    assert {overload_name(node.target) for node in program.graph.nodes} == names


class TakesInput(nn.Module):
    def forward(self, input, len):
        return torch.diff(input) * len


def test_inputs_keep_their_names_beside_an_operator_without_a_converter():
    x, y = images(3, 4), images(3, 3)
    program = torch.export.export(TakesInput(), (x, y))
    module = from_exported_program(program)
    assert [var.name_hint for var in module["main"].params] == ["input", "len"]
    np.testing.assert_allclose(weft.compile(program)(x, len=y), torch.diff(x) * y, rtol=1e-6)


def test_norms_without_running_statistics_need_no_decomposition():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True),
        nn.BatchNorm2d(4, track_running_stats=False),
    )  # fmt: skip
    x = images(2, 3, 8, 8)
    program, converters = captured(model, x)
    assert converters is not None
    check(program, x)


def spectrum(x, w):
    return torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs()


OF_CHANGES = {
    "GRUCell": (nn.GRUCell(4, 5), (3, 4)),
    "quantile": (Model(lambda x, w: torch.quantile(x, 0.3, dim=1)), (3, 4)),
    "stft": (Model(spectrum), (2, 64)),
}


@pytest.mark.parametrize("name", OF_CHANGES)
def test_operators_that_torch_makes_of_changes_are_decomposed_at_their_places(name, monkeypatch):
    def whole(*_):
        raise AssertionError("the whole program is decomposed")

    monkeypatch.setattr(exported_program, "decompose", whole)
    model, shape = OF_CHANGES[name]
    x = images(*shape)
    check(torch.export.export(model, (x,)), x)


def test_both_states_of_an_lstm_cell():
    cell, x = nn.LSTMCell(4, 5), images(3, 4)
    for mine, its in zip(weft.compile(cell, (x,), cache=False)(x), cell(x), strict=True):
        torch.testing.assert_close(mine, its)


def test_symbolic_sizes_need_no_decomposition():
    model, x = Model(lambda x, w: nn.functional.conv2d(x, w).relu_().flatten(1)), images(4, 3, 8, 8)
    shapes = {"x": {0: torch.export.Dim("n")}}
    program = torch.export.export(model, (x,), dynamic_shapes=shapes)
    assert converters_as_captured(program.graph_module, converters_with()) is not None
    for count in (4, 1, 7):
        check(program, images(count, 3, 8, 8))


def test_a_number_as_an_input_is_decomposed():
    model, x = Model(lambda x, w: x), images(4)
    model.forward = lambda x, n: x * n
    shapes = {"x": None, "n": torch.export.Dim.DYNAMIC}
    program = torch.export.export(model, (x, 3), dynamic_shapes=shapes)
    assert converters_as_captured(program.graph_module, converters_with()) is None
