"""The table of all references: operator -> function, merged from one table for each family."""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.reference import (
    binary,
    create,
    image,
    index,
    linear_algebra,
    manipulate,
    nn,
    quantization,
    sampling,
    scatter,
    selection,
    statistical,
    unary,
    vision,
)
from weft.relax.reference.rule import Reference

REFERENCE: dict[Op, Reference] = {
    **binary.TABLE,
    **create.TABLE,
    **image.TABLE,
    **index.TABLE,
    **linear_algebra.TABLE,
    **manipulate.TABLE,
    **nn.TABLE,
    **quantization.TABLE,
    **sampling.TABLE,
    **scatter.TABLE,
    **selection.TABLE,
    **statistical.TABLE,
    **unary.TABLE,
    **vision.TABLE,
}
"""Every row, merged from the families' tables."""

NO_REFERENCE: dict[str, str] = {
    **dict.fromkeys(
        (
            "ccl.allgather", "ccl.allreduce", "ccl.broadcast_from_worker0",
            "ccl.scatter_from_worker0", "dist.annotate_sharding", "dist.call_tir_local_view",
            "dist.redistribute", "dist.redistribute_replica_to_shard",
        ),
        "several workers compute it",
    ),
}  # fmt: skip
"""Operators (names without ``relax.``) that the tables leave out, and why."""
