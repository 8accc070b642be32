"""What every struct-info rule must do, checked on one example of an operator.

The example's result exactly; with less known of an argument (its rank, nothing, no dtype) a result
that covers it; with a symbolic dimension one that does not contradict it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.relax.ir.lattice import BaseCheckResult, struct_info_base_check, tensor_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.tir.expr import Var

Infer = Callable[..., StructInfo]
"""``infer(make, *infos)``: the struct info of ``make`` of variables of those."""


def check_rule(
    infer: Infer, make: Callable[..., Any], infos: Sequence[TensorStructInfo],
    expected: StructInfo,
) -> None:  # fmt: skip
    """Raise AssertionError unless the rule does what the module's docstring says."""
    assert infer(make, *infos) == expected
    for what, less in _less_known(infos):
        general = infer(make, *less)
        assert general.is_base_of(expected), f"{what}: {general} does not cover {expected}"
    for what, symbolic in _symbolic(infos):
        general = infer(make, *symbolic)
        check = struct_info_base_check(general, expected)
        assert check != BaseCheckResult.FAIL_L0, f"{what}: {general} contradicts {expected}"


def _less_known(infos: Sequence[TensorStructInfo]) -> Iterator[tuple[str, list[Any]]]:
    for index, info in enumerate(infos):
        for kind, less in (
            ("its rank", TensorStructInfo(None, info.dtype, ndim=info.ndim)),
            ("its dtype", TensorStructInfo(None, info.dtype)),
            ("its shape", TensorStructInfo(info.shape, "")),
        ):
            what = f"argument {index} of which {kind} alone is known"
            yield what, [*infos[:index], less, *infos[index + 1 :]]


def _symbolic(infos: Sequence[TensorStructInfo]) -> Iterator[tuple[str, list[Any]]]:
    for index, info in enumerate(infos):
        for axis in range(info.ndim):
            dims = list(tensor_dims(info) or ())
            dims[axis] = Var("n", "int64")
            less = TensorStructInfo(dims, info.dtype)
            yield f"argument {index}, axis {axis}", [*infos[:index], less, *infos[index + 1 :]]
