"""What weft does around torch.export: examples, guards that torch cannot prove, numbers of data."""

from __future__ import annotations

import math

import pytest
import torch

import weft
from weft.relax.frontend.torch.capture import CaptureError, capture
from weft.relax.frontend.torch.deferred_guards import may_be_ignored
from weft.relax.frontend.torch.example_inputs import prepared
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
Dim = torch.export.Dim


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Weighted(torch.nn.Module):
    def forward(self, x, more):
        return x + 3 * more["y"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_tensor_that_is_given_twice_is_two_inputs(dynamic):
    """torch.export makes one input of both, so that the other argument has no effect."""
    n = Dim("n")
    shapes = {"dynamic_shapes": ({0: n}, {"y": {0: n}})} if dynamic else {}
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    model = weft.compile(Weighted(), (x, {"y": x}), **shapes)
    torch.testing.assert_close(model(x, {"y": y}), x + 3 * y)


@pytest.mark.parametrize("extent", [0, 1, 2])
def test_examples_may_have_any_extent_of_a_dimension_that_varies(extent):
    n = Dim("n", max=50)
    x = torch.randn(extent, 4)
    shapes = {"x": {0: n}, "more": {"y": {0: n}}}
    model = weft.compile(Weighted(), (x, {"y": x}), dynamic_shapes=shapes)
    for rows in (0, 1, 2, 7, 50):
        x, y = torch.randn(rows, 4), torch.randn(rows, 4)
        torch.testing.assert_close(model(x, {"y": y}), x + 3 * y)


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (({0: Dim("n")},), (3, 1)),
        (({0: Dim("n"), 1: Dim("m", min=5)},), (3, 5)),
        (({1: Dim("m", max=2)},), (1, 2)),
        (({1: Dim("m", max=1)},), (1, 1)),
        (({0: Dim.DYNAMIC},), (3, 1)),
        (({0: Dim.DYNAMIC(min=4, max=9)},), (4, 1)),
        (({0: Dim.AUTO, 1: Dim.STATIC},), (1, 1)),
        (({0: 2 * Dim("half")},), (1, 1)),
        (((Dim("n"), None),), (3, 1)),
        (({},), (1, 1)),
        ((None,), (1, 1)),
        (None, (1, 1)),
        ({"x": {0: Dim("n")}}, (3, 1)),
        ({"other": {0: Dim("n")}}, (1, 1)),
    ],
)
def test_extents_that_are_changed(spec, shape):
    class Model(torch.nn.Module):
        def forward(self, x):
            return x

    x = torch.full((1, 1), 7)
    (value,), _ = prepared(Model(), (x,), {}, spec)
    assert tuple(value.shape) == shape
    assert (value == 7).all()
    (), named = prepared(Model(), (), {"x": x}, spec)
    assert tuple(named["x"].shape) == shape
    assert tuple(x.shape) == (1, 1)


def test_nested_arguments_keep_their_kinds():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x

    n = Dim("n")
    given = [{"a": torch.ones(1)}, (torch.ones(0), "text"), 3]
    (value,), _ = prepared(Model(), (given,), {}, ([{"a": {0: n}}, ({0: n}, None), None],))
    assert [type(item) for item in value] == [dict, tuple, int]
    assert [value[0]["a"].shape[0], value[1][0].shape[0]] == [3, 3]


def test_a_guard_that_only_weft_proves():
    """For every size from 100 on, a row of 1 is not a multiple of ``n // 10 + 1`` rows."""

    def folded(x):
        frames = x.shape[0] // 10 + 1
        return x[: frames * 10 - 10].reshape(frames - 1, 10).flatten(0, 1).sum() + (
            1 if 1 % frames else 2
        )

    model, x = Function(folded), torch.randn(200)
    shapes = {"args": ({0: Dim("n", min=100, max=5000)},)}
    compiled = weft.compile(model, (x,), dynamic_shapes=shapes)
    for size in (100, 101, 5000):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), folded(x), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("size", [7, 8])
def test_a_guard_that_does_not_hold_for_all_sizes_is_refused(size):
    def special(x):
        return x * 2 if x.shape[0] == 7 else x

    with pytest.raises(CaptureError, match=r"(?s)Constraints violated.*7"):
        capture(Function(special), (torch.ones(size),), None, {"args": ({0: Dim("n", max=9)},)})


def test_sizes_at_which_an_extent_becomes_one_are_refused_when_the_model_is_called():
    """torch takes n - 1 to differ from 1; the model serves all other sizes."""

    def differences(x):
        return torch.diff(x, dim=1), x[:, 1:].unfold(1, 1, 1).mean(-1)

    shapes = {"args": ({1: Dim("n")},)}
    model = weft.compile(Function(differences), (torch.randn(2, 9),), dynamic_shapes=shapes)
    for size in (9, 3, 4, 30):
        x = torch.randn(2, size)
        for found, expected in zip(model(x), differences(x), strict=True):
            torch.testing.assert_close(found, expected)
    with pytest.raises(
        weft.TVMError, match=r"(?s)expected .* != .*2.*took for granted at .*compile"
    ):
        model(torch.randn(2, 2))


def test_a_line_that_runs_in_pytorch_only_is_told_from_wrong_inputs():
    """The number of residuals depends on the rank, which only the data tell."""

    def solved(x, y):
        return torch.linalg.lstsq(x, y, driver="gels").solution

    inputs = (torch.randn(5, 3), torch.randn(5, 2))
    with pytest.raises(
        CaptureError, match=r'(?s)at test_capture.*torch\.compile\(model, backend="weft"'
    ):
        weft.compile(Function(solved), inputs)


SIZE = "L['x'].size()[0]"


@pytest.mark.parametrize(
    ("bounds", "guard", "is_ignored"),
    [
        ("8 <= n <= 99", f"(1 % (1 + ({SIZE} // 8))) != 0", True),
        ("7 <= n <= 99", f"(1 % (1 + ({SIZE} // 8))) != 0", False),
        ("2049 <= n <= 9999", f"math.ceil({SIZE} / 2048) != 1", True),
        ("2048 <= n <= 9999", f"math.ceil({SIZE} / 2048) != 2", False),
        ("2048 <= n <= 9999", f"math.ceil({SIZE} / 2048) != 1", True),
        ("n <= 60", f"(-1) + {SIZE} != 1", True),
        ("", f"{SIZE} // 2 != 0", True),
        ("", f"{SIZE} % 2 != 0", False),
        ("n <= 60", f"(({SIZE} + (64 + (-1)*({SIZE} % 64)) % 64) // 64) == 1", True),
        ("n <= 65", f"(({SIZE} + (64 + (-1)*({SIZE} % 64)) % 64) // 64) == 1", False),
        ("n <= 60", f"{SIZE} // (3 - {SIZE}) == 1", False),
        ("n <= 9", f"{SIZE} != 7", False),
        ("8 <= n <= 9", f"{SIZE} != 7", True),
        ("n <= 9", f"{SIZE} * L['more']['y'].size()[1] >= 0", True),
        ("1 <= n", f"{SIZE} >= 0", True),
        ("8 <= n <= 9", f"{SIZE} ** 2 != 3", False),
        ("8 <= n <= 9", f"{SIZE} != ", False),
        ("-oo <= n", f"{SIZE} >= 0", False),
    ],
)
def test_guards_in_the_words_of_torch(bounds, guard, is_ignored):
    line = f"  - Not all values of n = {SIZE} in the specified range {bounds} satisfy the "
    report = f"Constraints violated (n)! For more information ...\n{line}generated guard {guard}."
    assert may_be_ignored(report) is is_ignored
    assert not may_be_ignored(
        f"{report}\n  - You marked n as dynamic but your code specialized it."
    )
    assert not may_be_ignored("Constraints violated (n)!")


def test_quotients_that_are_rounded_need_no_floats():
    def padded(x):
        missing = math.ceil(x.shape[0] / 8) * 8 - x.shape[0]
        return torch.nn.functional.pad(x, (0, missing)).reshape(-1, 8).sum(1)

    model = Function(padded)
    shapes = {"args": ({0: Dim("n", min=9, max=1000)},)}
    compiled = weft.compile(model, (torch.randn(20),), dynamic_shapes=shapes)
    for size in (9, 16, 17, 1000):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), padded(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s: x.roll(-round(s.item() * 3), -1),
        lambda x, s: x * (s.item() / 2 + 1) - abs(s.item()),
        lambda x, s: x[0] + s.item() * x.shape[1],
    ],
)
def test_numbers_that_are_computed_from_a_float_of_the_data(function):
    x = torch.randn(4, 6)
    shapes = {"args": ({1: Dim("n", max=40)}, None)}
    model = weft.compile(Function(function), (x, torch.tensor(1.25)), dynamic_shapes=shapes)
    for size, scale in ((6, 1.25), (1, 0.5), (40, 2.0), (5, 0.1)):
        x, s = torch.randn(4, size), torch.tensor(scale)
        torch.testing.assert_close(model(x, s), function(x, s))


class Gradient(torch.nn.Module):
    """A gradient within a model."""

    def forward(self, x):
        return torch.func.grad(lambda z: (z**3).sum())(x)


def test_gradients_of_torch_func_are_refused_and_compiled():
    """torch.export's program reads a constant in the place of the input."""
    x, told = torch.randn(4), r'loses the inputs of torch\.func\.grad.*backend="weft"'
    with pytest.raises(UnsupportedError, match=told):
        weft.compile(Gradient(), (x,), cache=False)
    compiled = torch.compile(Gradient(), backend="weft")
    torch.testing.assert_close(compiled(x), 3 * x**2)


class Forward(torch.nn.Module):
    """A derivative in forward mode."""

    def forward(self, x):
        return torch.func.jvp(lambda z: z.sin() * z.sum(), (x,), (torch.ones_like(x),))


def test_derivatives_in_forward_mode():
    x, model = torch.randn(4), Forward()
    torch.testing.assert_close(weft.compile(model, (x,), cache=False)(x), model(x))


def test_a_model_that_catches_an_error_of_a_layer():
    """So a chain of layers finds out which of them take lengths."""

    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 6), torch.nn.Tanh()])

        def forward(self, x, lengths):
            for layer in self.layers:
                try:
                    x = layer(x, lengths=lengths)
                except TypeError:
                    x = layer(x)
            return x * lengths[:, None]

    inputs = (torch.randn(3, 4), torch.rand(3))
    model = Chain()
    compiled = weft.compile(model, inputs, cache=False)
    torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)


def test_what_torch_calls_only_with_plain_sizes_is_told_without_its_c_stack():
    class Plain(torch.nn.Module):
        def forward(self, x):
            if isinstance(x.shape[0], torch.SymInt):
                raise RuntimeError(
                    "Cannot call storage_offset() on tensor with symbolic sizes/strides\n"
                    "Exception raised from throw_cannot_call (most recent call first):\n"
                    "frame #0: c10::Error::Error(c10::SourceLocation) + 0x9d (libc10.so)"
                )
            return x * 2

    shapes = ({0: Dim("n", min=2, max=60)},)
    with pytest.raises(CaptureError, match="no code of symbolic sizes") as caught:
        weft.compile(Plain(), (torch.randn(3, 4),), dynamic_shapes=shapes, cache=False)
    assert "storage_offset" in str(caught.value)
    assert "c10" not in str(caught.value)
