"""How much a model of PyTorch has to do: multiply-adds of its products, bytes it must touch.

``python -m benchmarks.work`` answers requests of one line each (``weft.cli.engines``): the FLOPs of
the direct algorithms of matrix products, convolutions and attention as PyTorch counts them
(``torch.utils.flop_counter``), without the products of padding, which an engine may leave out, and
the bytes of inputs, parameters and outputs, each touched once. Embedding tables count with the rows
that are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from weft.cli.engines import answer_requests, example_arrays, result_arrays
from weft.cli.models import find_model


def convolution_flops(
    data: Sequence[int], kernel: Sequence[int], bias: Sequence[int] | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, *rest: Any,
    out_shape: Sequence[int],
) -> int:  # fmt: skip
    """FLOPs of a convolution; of shapes as the counter gives them. Those of products of padding are
    taken off, unless it is transposed.

    >>> convolution_flops((1, 1, 7, 7), (1, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False,
    ...                   out_shape=(1, 1, 7, 7))  # 2 * (7 * 3 - 2)**2
    722
    """
    terms = int(conv_flop_count([*data], [*kernel], [*out_shape], transposed))
    if transposed or not terms:
        return terms
    axes = zip(data[2:], kernel[2:], stride, padding, dilation, out_shape[2:], strict=True)
    shares = [_share_inside(*axis) for axis in axes]
    return round(terms * math.prod(shares))


def _share_inside(
    size: int, window: int, stride: int, padding: int, dilation: int, results: int
) -> float:
    """The share of the elements that windows along an axis meet which are not padding."""
    places = [
        result * stride + step * dilation - padding
        for result in range(results) for step in range(window)
    ]  # fmt: skip
    return sum(1 for place in places if 0 <= place < size) / len(places)


_COUNTED: Final = {torch.ops.aten.convolution: convolution_flops}
"""What is counted in another way than PyTorch's."""


def work(told: Mapping[str, Any]) -> dict[str, float]:
    """FLOPs and bytes of one call of the model that the request names."""
    inputs = [torch.from_numpy(value) for value in example_arrays(told)]
    return work_of(find_model(told["model"]), inputs)


def work_of(model: torch.nn.Module, inputs: list[torch.Tensor]) -> dict[str, float]:
    """FLOPs and bytes of ``model(*inputs)``.

    >>> work_of(torch.nn.Linear(4, 8), [torch.ones(2, 4)])  # 2·2·4·8; 8 + 32 + 8 + 16 floats
    {'flops': 128.0, 'bytes': 256.0}
    """
    tables = [part for part in model.modules() if isinstance(part, torch.nn.Embedding)]
    read: list[int] = []
    hooks = [
        table.register_forward_hook(lambda _, __, rows: read.append(rows.nbytes))
        for table in tables
    ]
    counting = FlopCounterMode(display=False, custom_mapping=dict(_COUNTED))
    # What is fused PyTorch does not count on the CPU; written out it does.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counting as counter:
        outputs = model(*inputs)
    for hook in hooks:
        hook.remove()
    skipped = {id(table.weight) for table in tables}
    weights = [item for item in model.parameters() if id(item) not in skipped]
    nbytes = sum([item.nbytes for item in [*inputs, *weights, *result_arrays(outputs)]]) + sum(read)
    return {"flops": float(counter.get_total_flops()), "bytes": float(nbytes)}


if __name__ == "__main__":
    answer_requests(work)
