"""The numpy references of operators: those of their rows, and what users register."""

from __future__ import annotations

from typing import Any

import weft.relax.op  # noqa: F401 - registers the operators
from weft.ir.op import Op
from weft.relax.op.reference.rule import Reference
from weft.support.errors import wrong_type
from weft.support.registration import refuse_second


def reference_of(operator: Op) -> Reference | None:
    """The numpy reference of an operator: its attribute ``numpy``."""
    reference: Reference | None = operator.get_attr("numpy")
    return reference


def register_reference(
    op_name: str, function: Reference | None = None, *, override: bool = False
) -> Any:
    """Say in numpy what an operator means; a decorator if no function is given.

    ``function`` takes the values of the call's arguments (a tensor is a numpy array), then the
    attributes by name, and returns an array or a tuple of arrays (weft.relax.op.reference.rule).
    The interpreter of graphs runs it, and ``verify=True`` compares the code that passes generate
    for the operator with it: ``relax.register_reference("my.triple", lambda x: 3 * x)``.

    Raises:
        IRKeyError: no operator has that name.
        IRValueError: it has a reference, and ``override`` is not given.
    """

    def apply(given: Reference) -> Reference:
        if not callable(given):
            raise wrong_type(f"register_reference: {op_name}: expected a function of arrays", given)
        operator = Op.get(op_name)
        refuse_second("the numpy reference of", op_name, operator.has_attr("numpy"), override)
        operator.set_attr("numpy", given)
        return given

    return apply if function is None else apply(function)
