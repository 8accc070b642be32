"""Every core operator: a converter or a reason, and PyTorch's own samples of it."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from pathlib import Path

import pytest
import torch

from tests.lib.aten_samples import Call, failures, operator_samples, record
from weft.relax.frontend.torch.complex_tensor import COMPLEX
from weft.relax.frontend.torch.operators import CONVERTERS

pytestmark = pytest.mark.torch

_SPEC = importlib.util.spec_from_file_location(
    "core_aten", Path(__file__).with_name("core_aten.py")
)
core_aten = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(core_aten)

NO_SAMPLES = {
    "aten._adaptive_avg_pool2d_backward.default", "aten._embedding_bag.default",
    "aten._native_batch_norm_legit_no_training.default", "aten.adaptive_avg_pool1d.default",
    "aten.atan2.out", "aten.avg_pool1d.default", "aten.avg_pool2d_backward.default",
    "aten.bitwise_and.Scalar", "aten.bitwise_or.Scalar", "aten.bitwise_xor.Scalar",
    "aten.col2im.default", "aten.convolution_backward.default", "aten.copy.default",
    "aten.div.Scalar_mode", "aten.embedding_dense_backward.default", "aten.fmod.Scalar",
    "aten.gt.Scalar", "aten.native_group_norm_backward.default",
    "aten.native_layer_norm_backward.default", "aten.pow.Scalar",
    "aten.upsample_bilinear2d.vec", "aten.upsample_nearest2d.vec", "aten.var.dim",
}  # fmt: skip
"""Overloads that PyTorch's samples do not call; the tests of their families do."""
UNDEFINED = {"aten.empty.memory_format", "aten.empty_strided.default"}
"""Overloads whose values mean nothing."""
RANDOM = {"aten.rand.default", "aten.randn.default", "aten.randperm.default",
          "aten.native_dropout.default"}  # fmt: skip
"""Overloads whose values test_random.py looks at."""


PLAIN_NAMES = {name.removesuffix(COMPLEX) for name in CONVERTERS}
"""Overloads with a converter of real or of complex tensors."""
TYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)


def test_every_core_operator_has_a_converter_or_a_reason():
    covered = PLAIN_NAMES | core_aten.NUMBERS
    assert sorted(set(core_aten.CORE_ATEN) - covered) == sorted(core_aten.MISSING)
    assert not set(core_aten.MISSING) & covered


@functools.cache
def samples(dtype: torch.dtype, most: int = 40, per_overload: int = 20) -> dict[str, list[Call]]:
    """Calls of core overloads that PyTorch's samples make, some for each overload.

    Of complex numbers only calls that take some, and that have a converter.
    """
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    wanted = set(core_aten.CORE_ATEN) & PLAIN_NAMES - UNDEFINED - RANDOM
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
            if len(kept) < per_overload and call.size < 20_000 and _fits(call, dtype):
                kept.append(call)
    return found


def _fits(call: Call, dtype: torch.dtype) -> bool:
    if not call.is_complex:
        return not dtype.is_complex
    return call.name + COMPLEX in CONVERTERS


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_pytorchs_samples_of_core_operators(dtype):
    """With the pipeline of ``weft.compile``, so that fusion and schedules see them all."""
    found = samples(dtype)
    told = failures([call for name in sorted(found) for call in found[name]], pipeline="weft")
    assert not told, f"{len(told)} calls:\n" + "\n".join(told[:40])


@pytest.mark.slow
def test_pytorchs_samples_reach_all_but_those_that_are_named():
    touched = {name for dtype in TYPES for name, calls in samples(dtype).items() if calls}
    assert set(core_aten.CORE_ATEN) - touched - core_aten.NUMBERS - UNDEFINED - RANDOM == NO_SAMPLES
