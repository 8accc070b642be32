"""Programs that people give to ``torch.compile(backend="weft")``: none may run in PyTorch."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import nn

from weft.dynamo import backend as backend_module
from weft.dynamo.backend import FallbackWarning

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning"),
]
PADDING = torch.tensor([[False, False, True], [False, False, False]])
CAUSAL = torch.ones(3, 3, dtype=torch.bool).triu(1)


@pytest.fixture(autouse=True)
def _no_fallback():
    torch._dynamo.reset()
    torch.manual_seed(0)
    backend_module._told.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield


def check(function, *args, dynamic=None, **kwargs):
    """Compare values, types, shapes and strides with PyTorch's."""
    found = torch.compile(function, backend="weft", dynamic=dynamic)(*args, **kwargs)
    expected = function(*args, **kwargs)
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    torch.testing.assert_close(found, expected)
    for mine, its in zip(found, expected, strict=True):
        assert mine is None or mine.numel() == 0 or mine.stride() == its.stride()


@torch.no_grad()
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    "masks",
    [
        {}, {"src_key_padding_mask": PADDING}, {"src_mask": CAUSAL},
        {"src_mask": CAUSAL, "src_key_padding_mask": PADDING},
    ],
)  # fmt: skip
def test_encoder_layers_that_torch_runs_as_one_operator(norm_first, masks):
    kind = "gelu" if norm_first else "relu"
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, batch_first=True, norm_first=norm_first, activation=kind
    )
    check(layer.eval(), torch.randn(2, 3, 8), **masks)


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [
        {}, {"need_weights": False, "key_padding_mask": PADDING},
        {"average_attn_weights": False, "attn_mask": CAUSAL},
    ],
)  # fmt: skip
def test_self_attention_that_torch_runs_as_one_operator(options):
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    check(lambda x: layer(x, x, x, **options), torch.randn(2, 3, 8))


def test_checks_that_have_effects():
    x = torch.randn(4, 4)
    check(lambda s: torch.linalg.matrix_power(s @ s.mT + torch.eye(4), -1), x)


def test_results_whose_elements_are_one_overlap_or_lie_apart():
    def function(x):
        y = x + 1
        rows = y[None].expand(3, 4, 6).transpose(1, 2)
        return x.sum().expand(2, 3), rows, y[:, ::2], x[:0].sum(1, keepdim=True).expand(0, 4)

    check(function, torch.randn(4, 6))


def test_overlapping_results_are_compact():
    found = torch.compile(lambda x: (x + 1).unfold(0, 3, 1), backend="weft")(torch.arange(5.0))
    assert found.tolist() == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]


@torch.no_grad()
def test_channels_last_of_symbolic_sizes():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).to(memory_format=torch.channels_last)
    fast = torch.compile(model.eval(), backend="weft", dynamic=True)
    for size in (8, 9):
        x = torch.randn(2, 3, size, 7).to(memory_format=torch.channels_last)
        found, expected = fast(x), model(x)
        torch.testing.assert_close(found, expected)
        assert found.stride() == expected.stride()


def test_the_step_of_an_optimiser():
    mine = nn.Parameter(torch.randn(4))
    its = copy.deepcopy(mine)
    fast, plain = torch.optim.Adam([mine], lr=torch.tensor(0.1)), torch.optim.Adam([its], lr=0.1)
    step = torch.compile(fast.step, backend="weft")
    for _ in range(3):
        mine.grad = its.grad = torch.linspace(-1, 1, 4)
        step()
        plain.step()
    torch.testing.assert_close(mine, its)


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"enable_gqa": True, "scale": 0.3}, {"attn_mask": True}],
)
def test_gradients_of_attention(options):
    heads = 2 if "enable_gqa" in options else 4
    shapes = (2, 4, 5, 8), (2, heads, 6, 8), (2, heads, 6, 8)
    if "is_causal" in options:
        shapes = (2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8)
    if "attn_mask" in options:
        options = {"attn_mask": torch.rand(5, 6) > 0.4}
    gradients = []
    for attention in (
        torch.compile(nn.functional.scaled_dot_product_attention, backend="weft"),
        nn.functional.scaled_dot_product_attention,
    ):
        torch.manual_seed(1)
        sides = [torch.randn(shape, requires_grad=True) for shape in shapes]
        result = attention(*sides, **options)
        (result * torch.linspace(-1, 1, 8)).sum().backward()
        gradients.append([result, *(side.grad for side in sides)])
    torch.testing.assert_close(*gradients)


def test_a_ragged_nested_tensor_runs_in_torch():
    rows = [torch.randn(2, 3), torch.randn(4, 3)]
    x = torch.nested.nested_tensor(rows, layout=torch.jagged)
    with pytest.warns(FallbackWarning, match="rows of a nested tensor; pad it"):
        found = torch.compile(lambda x: x * 2, backend="weft")(x)
    torch.testing.assert_close(found.values(), x.values() * 2)
