"""Views, joins, indexing, scattering and products, beside torch: one build for each family."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

import weft
from tests.lib.aten import check_model, check_overload
from tests.lib.aten_samples import check_calls

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]

_SPEC = importlib.util.spec_from_file_location(
    "structure_cases", Path(__file__).with_name("structure_cases.py")
)
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)

FLOAT_INT = [pytest.param("float32"), pytest.param("int64")]
ANY = [*FLOAT_INT, pytest.param("bool", marks=pytest.mark.slow)]


@pytest.mark.parametrize("dtype", ANY)
@pytest.mark.parametrize("family", ["views", "strided", "joins", "gathering", "scattering"])
def test_structure(family, dtype):
    calls = getattr(cases, family)(dtype)
    if dtype == "bool":  # torch adds no bools
        calls = [call for call in calls if "_add" not in call.name]
    check_calls(calls, at_once=40)


@pytest.mark.parametrize("dtype", FLOAT_INT)
@pytest.mark.parametrize("family", ["accumulating", "products"])
def test_arithmetic_structure(family, dtype):
    check_calls(getattr(cases, family)(dtype), at_once=40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", ["views", "joins", "gathering", "scattering", "accumulating", "products"]
)
def test_structure_of_float16(family):
    check_calls(getattr(cases, family)("float16"), at_once=40)


def test_a_view_as_another_type_of_the_same_bytes():
    check_overload("aten.view.dtype", torch.randn(5, 6), torch.int32)


def test_as_strided_of_what_shares_storage_is_refused():
    with pytest.raises(Exception, match="as_strided: the tensor .* make it contiguous first"):
        check_overload("aten.as_strided.default", torch.randn(5, 6)[:, :3], [2, 2], [6, 1])


class Shapes(torch.nn.Module):
    """Views whose extents are symbolic."""

    def forward(self, x):
        flat = x.flatten(1)
        first, second = flat.split([6, 6], dim=1)
        rolled = torch.roll(x, 1, 0)
        tall = x.permute(1, 0, 2)[:, : x.shape[0] - 1]
        both = torch.cat([x, x.flip(0)], 0)
        return first + second, rolled, tall, both, x.repeat(2, 1, 1), x.unbind(1), x[-1]


class Chosen(torch.nn.Module):
    """Indexing along symbolic extents, and by masks."""

    def forward(self, x, index):
        y = x.clone()
        y[x > 0] = 1.0
        y[index] = 2.0
        picked = x[index, :2]
        return y, picked, x[x > 0], x[x[:, 0] > 0] + 1, torch.nonzero(x), x.gather(
            0, index[:, None].expand(-1, x.shape[1])
        )  # fmt: skip


def test_views_of_symbolic_extents():
    n = torch.export.Dim("n", min=3, max=64)
    check_model(
        Shapes(), torch.randn(5, 3, 4), dynamic_shapes=({0: n},),
        others=[(torch.randn(3, 3, 4),), (torch.randn(11, 3, 4),)],
    )  # fmt: skip


def test_indices_and_masks_of_symbolic_extents():
    n, k = torch.export.Dim("n", min=2, max=64), torch.export.Dim("k", min=2, max=64)
    check_model(
        Chosen(), torch.randn(5, 4), torch.tensor([0, 4, 2]), dynamic_shapes=({0: n}, {0: k}),
        others=[(torch.randn(8, 4), torch.tensor([7, 1])), (-torch.ones(3, 4), torch.tensor([0]))],
    )  # fmt: skip


class Filled(torch.nn.Module):
    """Places of a mask that take the elements of another tensor, as many as there are."""

    def forward(self, x, source):
        return x.masked_scatter(x > 0, source), x.masked_scatter(x > 0, x[x > 0].exp())


def test_a_mask_that_holds_nowhere_needs_no_elements():
    k = torch.export.Dim("k", min=0, max=64)
    check_model(
        Filled(), torch.randn(5, 4), torch.randn(20), dynamic_shapes=({}, {0: k}),
        others=[(-torch.ones(5, 4), torch.randn(0)), (torch.ones(5, 4), torch.randn(21))],
    )  # fmt: skip


class FilledAtHigh(torch.nn.Module):
    """Elements of one tensor at those places of another that are above one half."""

    def forward(self, x, source):
        return x.masked_scatter(x > 0.5, source)


@pytest.mark.parametrize("shape", [(2,), (2, 1)], ids=["vector", "matrix"])
def test_a_source_with_too_few_elements_is_an_error(shape):
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    model = weft.compile(FilledAtHigh(), (x, torch.ones(shape)))
    assert model(x, torch.tensor([3.0, 4.0]).reshape(shape)).tolist() == [[3.0, 0.0], [4.0, 0.0]]
    with pytest.raises(weft.TVMError, match="masked_scatter: expected at least as many elements"):
        model(torch.ones(2, 2), torch.ones(shape))
    assert model(x, torch.zeros(shape)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_source_of_symbolic_length_with_too_few_elements_is_an_error():
    k = torch.export.Dim("k", min=0, max=64)
    x = torch.tensor([1.0, 0.0, 1.0])
    model = weft.compile(FilledAtHigh(), (x, torch.ones(5)), dynamic_shapes=({}, {0: k}))
    assert model(x, torch.tensor([3.0, 4.0])).tolist() == [3.0, 0.0, 4.0]
    for count in (0, 1):
        with pytest.raises(weft.TVMError, match="masked_scatter: expected at least as many"):
            model(x, torch.ones(count))
