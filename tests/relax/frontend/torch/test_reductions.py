"""Reductions, scans and sorting beside torch, over no, one, none and several elements."""

from __future__ import annotations

import math

import pytest
import torch

from tests.lib.aten import check_model
from tests.lib.aten_samples import Call, calls_of, check_calls, values

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]
f16, f32, i64, u8, b8 = torch.float16, torch.float32, torch.int64, torch.uint8, torch.bool
ops = torch.ops.aten
NAN = torch.tensor([[1.0, math.nan, 3.0], [2.0, 2.0, -1.0]])
TIES = torch.tensor([[3, 1, 3, 2], [0, 0, 5, 0]])


@pytest.mark.parametrize("name", ["sum", "nansum", "prod", "any", "all", "count_nonzero"])
def test_reductions_of_every_type(name):
    calls = calls_of(f"aten.{name}.default", [f32, i64, b8])
    dims = {"sum": "dim_IntList", "prod": "dim_int", "any": "dims", "all": "dims"}.get(name)
    if dims:
        dim = 0 if name == "prod" else [0]
        calls += calls_of(f"aten.{name}.{dims}", [f32, i64, b8], args=(dim, True))
        calls += calls_of(f"aten.{name}.{dims}", [f32], [(2, 3), (0, 3)], args=(dim,))
    check_calls([*calls, Call(calls[0].overload, (NAN,), {})])


def test_whether_all_or_any_hold():
    held = [torch.tensor(x) for x in (True, False, [True, False], [[True, True]])]
    overloads = ops._is_all_true.default, ops._is_any_true.default
    check_calls([Call(overload, (x,), {}) for overload in overloads for x in held])


def test_sums_in_another_type_and_over_all_dimensions():
    x = values((2, 3, 4), f16)
    check_calls([
        Call(ops.sum.dim_IntList, (x, [0, -1]), {"dtype": f32}),
        Call(ops.sum.dim_IntList, (x, []), {}), Call(ops.sum.dim_IntList, (x, None, True), {}),
        Call(ops.mean.dim, (x, [1, 2], True), {}), Call(ops.mean.default, (x,), {"dtype": f32}),
        Call(ops.mean.dim, (values((0, 3), f32), [0]), {}),
        Call(ops.mean.default, (values((), f32),), {}),
        Call(ops.trace.default, (values((3, 4), f32),), {}),
        Call(ops.trace.default, (values((3, 2), i64),), {}),
        Call(ops.prod.dim_int, (values((2, 3), f32), 1, True), {"dtype": b8}),
        Call(ops.sum.dim_IntList, (values((2, 3), b8), [0]), {"dtype": b8}),
    ])  # fmt: skip


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_extremes(name):
    full = f"aten.{name}.default"
    calls = calls_of(full, [f32, i64, b8, u8], [(), (1,), (2, 3)])
    calls += calls_of(full, [f32], [(2, 3), (2, 0, 3)], args=([0], True))
    check_calls([*calls, Call(calls[0].overload, (NAN, [1]), {})])


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_with_places(name):
    calls = calls_of(f"aten.{name}.dim", [f32, i64, b8], [(1,), (2, 3)], args=(0, True))
    calls += calls_of(f"aten.{name}.dim", [f32], [()], args=(0,))
    calls += calls_of(f"aten.{name}.default", [f32, i64], [(), (2, 3)])
    overload = calls[0].overload
    check_calls([*calls, Call(overload, (NAN, 1), {}), Call(overload, (TIES, -1), {})])
    calls = calls_of(f"aten.arg{name}.default", [f32, i64], [(), (1,), (2, 3)])
    overload = calls[0].overload
    check_calls([*calls, Call(overload, (NAN, 1, True), {}), Call(overload, (TIES,), {})])


def test_smallest_and_largest():
    x = values((2, 3), f32)
    check_calls([Call(ops.aminmax.default, (x,), {}),
                 Call(ops.aminmax.default, (x,), {"dim": 1, "keepdim": True})])  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", ["var", "std"])
def test_spreads(name):
    x = values((2, 3, 4), f32) + 100
    correction, dim = (getattr(getattr(ops, name), o) for o in ("correction", "dim"))
    mean = getattr(ops, f"{name}_mean").correction
    check_calls([
        Call(correction, (x, [0, 2]), {"correction": 0, "keepdim": True}),
        Call(correction, (x,), {"correction": 2.5}), Call(correction, (x, None), {}),
        Call(correction, (x[:, 0, :1].half(), [0]), {}), Call(dim, (x, [1], False), {}),
        Call(correction, (x[0, 0, 0],), {}), Call(correction, (x[0, 0, :1], [0]), {}),
        Call(correction, (x[:0], [0]), {}), Call(mean, (x, [-1]), {"correction": 1}),
    ])  # fmt: skip


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
def test_norms(order):
    x = values((2, 3, 2), f32)
    full = ops.linalg_vector_norm.default
    check_calls([
        Call(full, (x, order), {}), Call(full, (x, order, [0, 2], True), {}),
        Call(full, (x[0, 0, 0], order), {}), Call(full, (x.half(), order, [1]), {}),
    ])  # fmt: skip


def test_sums_of_exponentials():
    x = torch.tensor([[1000.0, 999.0], [-math.inf, -math.inf], [math.inf, 1.0]])
    check_calls([
        Call(ops.logsumexp.default, (x, [1]), {}),
        Call(ops.logsumexp.default, (x, [0, 1], True), {}),
        Call(ops.logsumexp.default, (x[0, 0], [0]), {}),
        Call(ops.logsumexp.default, (values((0, 3), f32), [0]), {}),
        Call(ops.logcumsumexp.default, (x, 1), {}),
        Call(ops.logcumsumexp.default, (x[:, 1], 0), {}),
    ])  # fmt: skip


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_scans(name):
    full = f"aten.{name}.default"
    calls = calls_of(full, [f32, i64, b8], args=(0,))
    calls.append(Call(calls[0].overload, (NAN, -1), {}))
    if name.startswith("cumm"):
        calls.append(Call(calls[0].overload, (TIES, 1), {}))
    else:
        calls.append(Call(calls[0].overload, (values((2, 3), f16), 1), {"dtype": f32}))
    check_calls(calls)


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable_with_nan_last(descending):
    calls = calls_of("aten.sort.default", [f32, i64, b8], args=(0, descending))
    stable = {"stable": True, "dim": 1, "descending": descending}
    check_calls([*calls, Call(ops.sort.stable, (TIES,), stable),
                 Call(ops.sort.default, (NAN, 1, descending), {}),
                 Call(ops.topk.default, (TIES, 2, 1, descending), {}),
                 Call(ops.topk.default, (NAN, 2, -1, descending), {}),
                 Call(ops.topk.default, (NAN[0, 0], 1, 0, descending), {})])  # fmt: skip


def test_counts_of_integers_and_of_runs():
    n = torch.tensor([3, 0, 3, 1])
    runs, line = torch.tensor([[1, 1, 2], [2, 2, 0]]), torch.tensor([0.5, 0.5, -1.0, 0.5])
    check_calls([
        Call(ops.bincount.default, (n,), {}), Call(ops.bincount.default, (n, None, 6), {}),
        Call(ops.bincount.default, (n, values((4,), f32)), {}),
        Call(ops.bincount.default, (n[:0], None, 2), {}),
        Call(ops.repeat_interleave.Tensor, (n,), {}),
        Call(ops.repeat_interleave.Tensor, (n[:0],), {}),
        Call(ops.unique_consecutive.default, (runs, True, True), {}),
        Call(ops.unique_consecutive.default, (line, True, True, 0), {}),
        Call(ops.unique_consecutive.default, (line[:1], True), {}),
    ])  # fmt: skip


def test_elements_by_rank():
    check_calls([
        Call(ops.kthvalue.default, (values((2, 3), f32), 2), {}),
        Call(ops.kthvalue.default, (TIES, 3, 1, True), {}),
        Call(ops.median.dim, (NAN, 1), {}), Call(ops.median.dim, (TIES, 0, True), {}),
        Call(ops.median.default, (TIES,), {}), Call(ops.median.default, (NAN[1],), {}),
        Call(ops.median.default, (NAN,), {}), Call(ops.nanmedian.default, (NAN,), {}),
        Call(ops.nanmedian.dim, (NAN, 1), {}), Call(ops.mode.default, (TIES, 1), {}),
        Call(ops.mode.default, (TIES, 0, True), {}), Call(ops.mode.default, (TIES > 1, 1), {}),
        Call(ops.median.default, (values((), f32),), {}),
    ])  # fmt: skip


@pytest.mark.parametrize("right", [False, True])
def test_search(right):
    edges, x = torch.tensor([1.0, 2.0, 2.0, 5.0]), torch.tensor([[0.0, 2.0], [math.nan, 9.0]])
    rows = torch.stack([edges, edges * 2])
    check_calls([
        Call(ops.searchsorted.Tensor, (edges, x), {"right": right}),
        Call(ops.searchsorted.Tensor, (rows, x), {"right": right, "out_int32": True}),
        Call(ops.searchsorted.Scalar, (edges, 2.0), {"right": right}),
        Call(ops.bucketize.Tensor, (x, edges), {"right": right}),
        Call(ops.bucketize.Scalar, (2, edges), {"right": right}),
        Call(ops.isin.Tensor_Tensor, (x, edges), {"invert": right}),
        Call(ops.isin.Tensor_Scalar, (TIES, 3), {"invert": right}),
    ])  # fmt: skip


def test_histograms():
    torch.manual_seed(0)
    x = torch.randn(50)
    check_calls([Call(ops.histc.default, (x,), {"bins": 7}),
                 Call(ops.histc.default, (x, 5, -1, 2), {}),
                 Call(ops.histc.default, (x[:1], 4), {})])  # fmt: skip


class Distinct(torch.nn.Module):
    def forward(self, x):
        distinct, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return distinct * 2, inverse, counts


def test_distinct_elements_have_a_size_of_their_own():
    check_model(Distinct(), TIES, others=[(TIES % 2,), (TIES * 0,)])


class Statistics(torch.nn.Module):
    def forward(self, x):
        value, place = x.max(dim=0)
        return (
            x.sum(0), x.mean(0), x.var(0), x.std(), value, place, x.logsumexp(0), x.cumsum(0),
            x.sort(0)[0], x.norm(dim=0), (x > 0).any(0), x.argmin(0), x.median(0)[0],
        )  # fmt: skip


def test_symbolic_sizes():
    torch.manual_seed(0)
    sizes = {"dynamic_shapes": ({0: torch.export.Dim("n", min=2)},)}
    check_model(Statistics(), torch.randn(5, 3), others=[(torch.randn(9, 3),)], **sizes)
