"""Lowering of sorting and of writes at places given by data."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call
from weft.relax.transform.legalize.rule import table, with_attrs


def _sort(bb: BlockBuilder, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(topi.sort, call.args[0], attrs["axis"], not attrs["descending"])


def _argsort(bb: BlockBuilder, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.argsort, call.args[0], axis=attrs["axis"], is_ascend=not attrs["descending"],
        dtype=str(attrs["dtype"]),
    )  # fmt: skip


def _topk(bb: BlockBuilder, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.topk, call.args[0], attrs["k"], attrs["axis"], attrs["ret_type"],
        not attrs["largest"], str(attrs["dtype"]),
    )  # fmt: skip


def te_scatter_nd(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    """topi takes the index vectors along the first axis."""
    rank = len(indices.shape)
    moved = topi.transpose(indices, [rank - 1, *range(rank - 1)])
    return topi.scatter_nd(data, moved, updates, reduction)


TABLE = table(
    {
        "sort": _sort,
        "argsort": _argsort,
        "topk": _topk,
        "scatter_elements": with_attrs(topi.scatter_elements, "axis", "reduction"),
        "scatter_nd": with_attrs(te_scatter_nd, "reduction", hint="scatter_nd"),
    }
)
