"""The number of dimensions of a tensor of unknown shape: a number that a file may say at will."""

from __future__ import annotations

from typing import Any

import pytest

from weft import relax
from weft.script import from_source
from weft.support.errors import TVMError


@pytest.mark.parametrize("ndim", [-2, 1025, 10**9, 2**70, 1.0, "2", None])
@pytest.mark.parametrize("kind", [relax.TensorStructInfo, relax.ShapeStructInfo])
def test_a_number_that_no_tensor_has_is_refused(kind: Any, ndim: Any) -> None:
    with pytest.raises(TVMError, match="expected a number of dimensions from 0 to 1024, or -1"):
        kind(ndim=ndim)


def test_numbers_that_tensors_have_are_taken() -> None:
    for ndim in (-1, 0, 1, 64, 1024):
        assert relax.TensorStructInfo(ndim=ndim).ndim == ndim
        assert relax.ShapeStructInfo(ndim=ndim).ndim == ndim


def test_a_script_that_says_such_a_number_is_refused_at_once() -> None:
    with pytest.raises(TVMError, match="expected a number of dimensions from 0 to 1024"):
        from_source(
            "@R.function\n"
            'def main(x: R.Tensor("float32", ndim=1000000000)) -> R.Tensor("float32", ndim=-1):\n'
            "    y = R.add(x, x)\n    return y\n"
        )
