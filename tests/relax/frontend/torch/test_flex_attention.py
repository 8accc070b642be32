"""FlexAttention: scores and masks that are functions of the user."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import weft
from tests.lib.aten import check_model
from weft.ir.functor import collect
from weft.relax.expr import Call
from weft.relax.frontend.torch import from_exported_program
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([0] * 5 + [1] * 9 + [2] * 6)
TABLE = torch.linspace(-1, 1, 39)


@pytest.fixture(autouse=True)
def _without_gradients():
    """PyTorch's FlexAttention refuses gradients on CPUs, of parameters too."""
    with torch.no_grad():
        yield


class Attention(torch.nn.Module):
    """FlexAttention with some functions, on three inputs."""

    def __init__(self, score=None, mask=None, **options):
        super().__init__()
        self.score, self.options = score, options
        self.blocks = blocks_of(mask) if mask else None

    def forward(self, *inputs):
        return flex_attention(*inputs, score_mod=self.score, block_mask=self.blocks, **self.options)


def blocks_of(mask, queries=20, keys=20):
    return create_block_mask(mask, 2, 4, queries, keys, device="cpu")


def inputs(queries=20, keys=20, heads=4, shared=4, features=8, dtype=torch.float32):
    shapes = (2, heads, queries, features), (2, shared, keys, features), (2, shared, keys, 12)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


SCORES = {
    "distances": lambda score, b, h, q, k: score + SLOPES[h] * (k - q),
    "subtracted": lambda score, b, h, q, k: score - (q - k).abs() * 0.1 + b,
    "on the left": lambda score, b, h, q, k: TABLE[k - q + 19] + score,
    "never": lambda score, b, h, q, k: torch.where(q >= k, score, -float("inf")),
    "both": lambda score, b, h, q, k: torch.where(k < 7, score + SLOPES[h], -float("inf")) + 1,
    "soft cap": lambda score, b, h, q, k: 2.0 * torch.tanh(score / 2.0),
    "scaled": lambda score, b, h, q, k: score * SLOPES[h],
    "of two": lambda score, b, h, q, k: torch.where(q == k, score + 1, score * 0.5),
    "twice": lambda score, b, h, q, k: score + score,
    "from above": lambda score, b, h, q, k: 1.0 - score,
    "weighed": lambda score, b, h, q, k: torch.add(score, SLOPES[h], alpha=2),
}
MASKS = {
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q >= k) & (q - k < 4),
    "documents": lambda b, h, q, k: DOCUMENTS[q] == DOCUMENTS[k],
    "by head": lambda b, h, q, k: (h < 2) | (k == q),
    "blind": lambda b, h, q, k: (q > 3) & (k < 9),
    "keys": lambda b, h, q, k: k < 11,
}


class Several(torch.nn.Module):
    """The results of several models, which one compilation gives."""

    def __init__(self, models):
        super().__init__()
        self.models = torch.nn.ModuleList(models)

    def forward(self, *inputs):
        return [model(*inputs) for model in self.models]


def test_functions_of_scores():
    models = [Attention(score, MASKS["window"]) for score in SCORES.values()]
    check_model(Several([*models, Attention(SCORES["distances"])]), *inputs())


@pytest.mark.parametrize(
    ("name", "is_fused"),
    [("distances", True), ("on the left", True), ("never", True), ("soft cap", False),
     ("twice", False), ("from above", False)],
)  # fmt: skip
def test_a_function_that_adds_to_scores_takes_the_fused_attention(name, is_fused):
    program = torch.export.export(Attention(SCORES[name], MASKS["window"]), tuple(inputs()))
    names = {call.op.name for call in calls_of(from_exported_program(program))}
    assert ("relax.nn.attention_bias" in names) is is_fused
    assert ("relax.nn.softmax" in names) is not is_fused


def calls_of(mod):
    return [call for call in collect(mod["main"], Call) if hasattr(call.op, "name")]


def test_masks():
    check_model(Several(Attention(None, mask) for mask in MASKS.values()), *inputs())


def test_a_mask_whose_blocks_the_model_computes():
    class Computed(Attention):
        def forward(self, *inputs):
            self.blocks = blocks_of(MASKS["causal"])
            return super().forward(*inputs)

    check_model(Computed(), *inputs())


def test_without_functions():
    check_model(Attention(scale=0.3), *inputs(queries=5, keys=7))


def test_queries_share_heads_of_keys():
    models = [
        Attention(score, MASKS["causal"], enable_gqa=True) for score in (None, SCORES["soft cap"])
    ]
    check_model(Several(models), *inputs(shared=2))


def test_double_precision():
    model = Attention(SCORES["distances"], MASKS["causal"])
    check_model(model.double(), *inputs(dtype=torch.float64))


def test_biases_beside_numbers_of_16_bits_are_added_in_float32():
    def far(score, b, h, q, k):
        return score + (k - q) * 0.25 + 300.0  # in bfloat16, 300 and 300.25 are the same

    model, arguments = Attention(far), inputs(dtype=torch.bfloat16)
    with torch.no_grad():
        expected = model(*[argument.float() for argument in arguments])
    result = weft.compile(model, tuple(arguments))(*arguments)
    torch.testing.assert_close(result.float(), expected, rtol=2e-2, atol=2e-2)


def test_the_sum_of_exponentials():
    class WithSum(Attention):
        def forward(self, *inputs):
            mixed, others = super().forward(*inputs)
            return mixed, others.lse

    options = {"return_aux": AuxRequest(lse=True)}
    models = [WithSum(SCORES["distances"], mask, **options) for mask in (None, MASKS["blind"])]
    check_model(Several(models), *inputs())


def test_any_length():
    length = torch.export.Dim("length", min=2, max=64)
    shapes = ({2: length}, {2: length}, {2: length})

    class Learned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.slopes = torch.nn.Parameter(SLOPES)

        def forward(self, query, key, value):
            def score(score, b, h, q, k):
                return score + self.slopes[h] * (q - k)

            return flex_attention(query, key, value, score_mod=score)

    others = [inputs(5, 5), inputs(33, 33)]
    check_model(Learned(), *inputs(), dynamic_shapes=shapes, others=others)


def test_a_function_of_rows_is_refused():
    rows = torch.randn(20, 3)

    def score(score, b, h, q, k):
        return score + (rows[q] * rows[k]).sum()

    program = torch.export.export(Attention(score), tuple(inputs()))
    with pytest.raises(UnsupportedError, match=r"a function of scalars, .* of shape \(3,\)"):
        from_exported_program(program)
