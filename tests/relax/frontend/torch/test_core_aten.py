"""Every core operator: a converter or a reason, and PyTorch's own samples of it."""

from __future__ import annotations

import warnings

import pytest
import torch

from weft.relax.frontend.torch.core_aten import CORE_ATEN, MISSING, NUMBERS
from weft.relax.frontend.torch.operators import CONVERTERS
from weft.testing.aten_samples import Call, failures, operator_samples, record

pytestmark = pytest.mark.torch

NO_SAMPLES = {
    "aten._adaptive_avg_pool2d_backward.default", "aten._embedding_bag.default",
    "aten._pdist_forward.default", "aten.avg_pool2d_backward.default", "aten.atan2.out",
    "aten._native_batch_norm_legit.no_stats", "aten.convolution_backward.default",
    "aten.embedding_dense_backward.default", "aten.native_group_norm_backward.default",
    "aten.native_layer_norm_backward.default",
}  # fmt: skip
"""Overloads that PyTorch's samples do not call; the tests of their families do."""
UNDEFINED = {"aten.empty.memory_format", "aten.empty_strided.default"}
"""Overloads whose values mean nothing."""
RANDOM = {"aten.rand.default", "aten.randn.default", "aten.randperm.default",
          "aten.native_dropout.default"}  # fmt: skip
"""Overloads whose values test_random.py looks at."""


def test_every_core_operator_has_a_converter_or_a_reason():
    covered = set(CONVERTERS) | NUMBERS
    assert sorted(set(CORE_ATEN) - covered) == sorted(MISSING)
    assert not set(MISSING) & covered


def samples(dtype: torch.dtype, most: int, per_overload: int) -> dict[str, list[Call]]:
    """Calls of core overloads that PyTorch's samples make, some for each overload."""
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    wanted = set(CORE_ATEN) & set(CONVERTERS) - UNDEFINED - RANDOM
    found: dict[str, list[Call]] = {}
    for info in op_db:
        if dtype not in info.dtypes or info.name.startswith(("jiterator", "sparse")):
            continue
        torch.manual_seed(0)
        open_names = {name for name in wanted if len(found.get(name, ())) < per_overload}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own words on its own functions
            calls = record(operator_samples(info, dtype, most), open_names.__contains__)
        for call in calls:
            kept = found.setdefault(call.name, [])
            if len(kept) < per_overload and call.size < 20_000:
                kept.append(call)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_pytorchs_samples_of_core_operators(dtype):
    found = samples(dtype, 40, 20)
    told = failures([call for name in sorted(found) for call in found[name]])
    assert not told, f"{len(told)} calls:\n" + "\n".join(told[:40])
    if dtype is torch.float32:
        untouched = set(CORE_ATEN) - set(found) - NUMBERS - UNDEFINED - RANDOM - set(MISSING)
        assert untouched <= NO_SAMPLES
