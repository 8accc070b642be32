"""Python's functions of symbolic sizes, and torch's that take them for plain numbers."""

import math
import types

import numpy as np
import pytest
import torch
from torch import nn

import weft
from weft.relax.frontend.torch.capture import CaptureError

BATCH, LENGTH = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", max=512)


class Applies(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def assert_equal_at(function, sizes, length=LENGTH):
    model = Applies(function)
    shapes = ({0: BATCH, 1: length},)
    example = (torch.randn(*sizes[0]),)
    compiled = weft.compile(model, example, dynamic_shapes=shapes, cache=False)
    for size in sizes:
        x = torch.randn(*size)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)


PARTS = {
    "a rounded half": lambda n: round(n / 2),
    "a rounded multiple": lambda n: round(n * 0.75),
    "a quotient": lambda n: divmod(n, 3)[0],
    "a negative floor": lambda n: -(-n // 4),
    "a ceiling": lambda n: math.ceil(n / 4),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_length(name):
    def part(x):
        return x[:, : PARTS[name](x.shape[1])] * 2

    length = torch.export.Dim("length", min=8, max=512)
    assert_equal_at(part, [(2, 11), (3, 12), (2, 13), (5, 14), (2, 34)], length)


def test_a_remainder_of_the_length():
    def padded(x):
        return torch.nn.functional.pad(x, (0, divmod(x.shape[1], 5)[1]))

    assert_equal_at(padded, [(2, 11), (3, 12), (2, 2)])


@pytest.mark.parametrize(("width", "more"), [(64, 0), (48, 0), (64, 20)])
def test_a_spectrum_back_to_any_length(width, more):
    window = torch.hann_window(width)
    options = {"n_fft": 64, "hop_length": 16, "win_length": width, "window": window}

    def filtered(x):
        spectrum = torch.stft(x, **options, return_complex=True) * 0.7
        return torch.istft(spectrum, **options, length=x.shape[1] - 20 + more)

    length = torch.export.Dim("length", min=200, max=5000)
    assert_equal_at(filtered, [(2, 400), (3, 517), (2, 200)], length)


def test_one_signal_of_normalized_spectra_without_padding():
    options = {
        "n_fft": 16, "hop_length": 4, "normalized": True, "center": False, "window": torch.ones(16),
    }  # fmt: skip

    def filtered(x):
        spectrum = torch.stft(x[0], **options, return_complex=True)
        return torch.istft(spectrum, **options, length=x.shape[1] // 4 * 4)

    length = torch.export.Dim("length", min=40, max=500)
    assert_equal_at(filtered, [(2, 100), (3, 57)], length)


def test_a_size_of_which_the_model_trims_what_is_left():
    """Where nothing is left, the model skips the trimming, and so each call checks the length."""

    def trimmed(x):
        padded = torch.nn.functional.pad(x, (0, 8))
        more = padded.shape[1] - 3 * math.ceil(x.shape[1] / 3)
        return padded[:, more // 2 : -(more - more // 2)] if more else padded

    assert_equal_at(trimmed, [(2, 11), (3, 12), (2, 13)])


CHUNKS = {
    "cut off": lambda x: x[:, : x.shape[1] - x.shape[1] % 5] * 2,
    "padded and cut back": lambda x: (
        (
            torch.nn.functional.pad(x, (0, (8 - x.shape[1] % 8) % 8))
            .reshape(x.shape[0], -1, 8)
            .cumsum(-1)
            .reshape(x.shape[0], -1)[:, : x.shape[1]]
        )
        + x
    ),
}


@pytest.mark.parametrize("first", [11, 40])
@pytest.mark.parametrize("name", CHUNKS)
def test_whole_chunks(name, first):
    """Of lengths at which nothing is padded or cut off, too, whatever the example has."""
    length = torch.export.Dim("length", min=8, max=512)
    assert_equal_at(CHUNKS[name], [(2, first), (3, 10), (2, 16), (5, 33)], length)


@pytest.mark.parametrize("dim", [0, -1])
def test_elements_along_a_dimension_of_any_size(dim):
    def taken(x):
        order = x.argsort(dim)
        shared = order.narrow(-1 - dim, 0, 1)
        return x.take_along_dim(order, dim), torch.take_along_dim(x, shared, dim)

    assert_equal_at(taken, [(3, 11), (4, 12), (2, 2)])


def test_the_error_says_what_to_do_where_a_model_branches_on_a_size():
    def branch(x):
        return x * 2 if x.shape[1] % 4 == 0 else x + 1

    with pytest.raises(weft.TVMError, match=r"a divisor \(4 \* Dim\(name\)\)"):
        assert_equal_at(branch, [(2, 12)])


def test_the_error_says_which_line_makes_a_constant_of_a_size():
    def steps(x):
        return x * sum(range(x.shape[1]))

    line = r"test_sizes_in_python.py:\d+ in steps: return x \* sum\(range.*\n.*plain number"
    with pytest.raises(weft.TVMError, match=line):
        assert_equal_at(steps, [(2, 12)])


def test_the_order_of_products_is_the_one_for_the_sizes_of_the_example(monkeypatch):
    """torch.einsum asks a package for it, which makes plain numbers of the sizes."""
    asked = []

    def contract_path(equation, *shapes, **options):
        asked.append([tuple(int(size) for size in shape) for shape in shapes])
        return [(1, 2), (0, 1)], equation

    package = types.SimpleNamespace(contract_path=contract_path)
    module = torch.backends.opt_einsum.get_opt_einsum.__globals__
    monkeypatch.setitem(module, "_opt_einsum", package)
    monkeypatch.setitem(module, "is_available", lambda: True)
    monkeypatch.setitem(module, "enabled", True)
    weight = torch.randn(4, 6)

    def product(x):
        return torch.einsum("bnd,de,bme->bnm", x, weight, x[..., :1].expand(-1, -1, 6))

    class Product(nn.Module):
        forward = staticmethod(product)

    example = torch.randn(3, 5, 4)
    shapes = ({0: BATCH, 1: LENGTH},)
    compiled = weft.compile(Product(), (example,), dynamic_shapes=shapes, cache=False)
    assert asked[0] == [(3, 5, 4), (4, 6), (3, 5, 6)]
    for batch, length in ((3, 5), (2, 9), (7, 2)):
        x = torch.randn(batch, length, 4)
        expected = (x @ weight).sum(-1)[:, :, None] * x[:, None, :, 0]
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)


CUTS = {
    "split into pieces of a batch": lambda x: torch.cat([x, 2 * x, x.exp()]).split(x.shape[0]),
    "halves": lambda x: torch.cat([x, 2 * x]).chunk(2),
    "two of four": lambda x: torch.cat([x, 2 * x, x.exp(), x], 1).chunk(4, dim=1)[1:3],
    "halves of doubled rows": lambda x: x.repeat_interleave(2, 1).split(x.shape[1], -2),
    "a piece that is left": lambda x: torch.cat([x, x[:, :1]], 1).split([x.shape[1], 1], 1),
}


@pytest.mark.parametrize("name", CUTS)
def test_pieces_whose_number_no_size_changes(name):
    """Both halves of a batch that is doubled, as guided diffusion has them."""

    def cut(x):
        pieces = CUTS[name](x)
        return pieces[0] + 3 * pieces[1]

    assert_equal_at(cut, [(3, 5, 4), (2, 9, 4), (7, 2, 4)])


def test_rows_that_are_padded_to_whole_chunks_and_cut_back_are_reshaped():
    """At multiples of 8 the reshape shares memory, at others it copies: that is no difference."""

    def chunked(x):
        batch, length = x.shape[:2]
        missing = (8 - length % 8) % 8
        padded = nn.functional.pad(x[..., None].expand(-1, -1, -1, 3), (0, 0, 0, 0, 0, missing))
        sums = padded.reshape(batch, -1, 8, 4, 3).cumsum(2).reshape(batch, -1, 4, 3)
        return sums[:, :length].reshape(batch, length, -1) * 2

    length = torch.export.Dim("length", min=2, max=60)
    assert_equal_at(chunked, [(2, 12, 4), (3, 7, 4), (2, 31, 4), (5, 16, 4), (2, 8, 4)], length)


def test_a_number_of_numpy_beside_the_length_of_a_tensor_is_refused():
    """torch's reader of bytecode, which takes len(x), makes a tensor without values of it."""

    class Entropy(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = np.prod((5, 1))

        def forward(self, x):
            constant = self.count * np.log(2 * np.pi)
            return torch.zeros(len(x)) - 0.5 * constant - torch.sum(x, 1)

    with pytest.raises(CaptureError, match=r"len\(x\)"):
        weft.compile(Entropy(), (torch.randn(3, 5),), dynamic_shapes=({0: BATCH},), cache=False)
