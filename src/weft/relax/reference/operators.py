"""The table of all references: operator -> function, merged from one table for each family.

``register_reference`` adds to it what the operators of users mean.
"""

from __future__ import annotations

from typing import Any

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
from weft.support.errors import IRTypeError
from weft.support.registration import refuse_second

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


def register_reference(
    op_name: str, function: Reference | None = None, *, override: bool = False
) -> Any:
    """Say in numpy what an operator means; a decorator if no function is given.

    ``function`` takes the values of the call's arguments (a tensor is a numpy array), then the
    attributes by name, and returns an array or a tuple of them (weft.relax.reference.rule). The
    interpreter of graphs runs it, and ``verify=True`` compares what passes make of the operator
    with it: ``relax.register_reference("my.triple", lambda x: 3 * x)``.

    Raises:
        IRKeyError: there is no operator of that name.
        IRValueError: it has a reference, and ``override`` is not given.
    """

    def apply(given: Reference) -> Reference:
        if not callable(given):
            raise IRTypeError(
                f"register_reference: {op_name}: expected a function of arrays, got "
                f"{type(given).__name__}"
            )
        operator = Op.get(op_name)
        refuse_second("the numpy reference of", op_name, operator in REFERENCE, override)
        REFERENCE[operator] = given
        return given

    return apply if function is None else apply(function)
