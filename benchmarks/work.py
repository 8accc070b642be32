"""How much a model of PyTorch has to do: multiply-adds of its products, bytes it must touch.

``python -m benchmarks.work`` answers requests of one line each (``weft.cli.engines``): the FLOPs of
the direct algorithms of matrix products, convolutions and attention as PyTorch counts them
(``torch.utils.flop_counter``), and the bytes of inputs, parameters and outputs, each touched once.
Embedding tables count with the rows that are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.cli.engines import answer_requests, example_arrays, result_arrays
from weft.cli.models import find_model


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
    # What is fused PyTorch does not count on the CPU; written out it does.
    torch.backends.mha.set_fastpath_enabled(False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        outputs = model(*inputs)
    for hook in hooks:
        hook.remove()
    skipped = {id(table.weight) for table in tables}
    weights = [item for item in model.parameters() if id(item) not in skipped]
    nbytes = sum([item.nbytes for item in [*inputs, *weights, *result_arrays(outputs)]]) + sum(read)
    return {"flops": float(counter.get_total_flops()), "bytes": float(nbytes)}


if __name__ == "__main__":
    answer_requests(work)
