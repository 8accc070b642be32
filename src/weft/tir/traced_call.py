"""``tir.trace``: a function of Python sees values of a program while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import ExprLike, StringImm, as_prim_expr
from weft.runtime.registry import register_func
from weft.support.errors import IRValueError, wrong_type
from weft.tir.expr import Call

DEFAULT: Final = "tvm.default_trace_action"


@register_func(DEFAULT)
def _show(*values: object) -> None:
    """Print the values."""
    print(*values)  # noqa: T201 - what the default action is for


def trace(args: Sequence[ExprLike], trace_action: str = DEFAULT) -> Call:
    """The last of some values, which a registered function is called with while the program runs.

    What the function returns takes the place of the last value, unless it is None. The default
    function prints all of them.

    >>> from weft import te
    >>> x = te.placeholder((4,), name="x")
    >>> y = te.compute((4,), lambda i: trace([i, x[i]], "my.action") + 1)
    >>> te.create_prim_func([x, y]).body.block.body.body.block.body.value.a
    T.Call("float32", "tir.tvm_call_trace_packed", ["my.action", v_i, x[v_i]])
    """
    if not isinstance(args, list | tuple):
        raise wrong_type("trace: expected a list of values", args)
    if not args:
        raise IRValueError("trace: expected at least one value, got an empty list")
    values = [as_prim_expr(arg) for arg in args]
    return Call(values[-1].dtype, "tir.tvm_call_trace_packed", [StringImm(trace_action), *values])
