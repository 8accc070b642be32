"""Checks calls of intrinsics: the number of arguments, types of operands, and what is no value.

TVMScript and the functions of ``weft.tir.op`` write such calls correctly; a call that a program
builds by hand, or that a damaged file describes, need not be. Passes and code generation rely on
what is checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.support.errors import IRTypeError
from weft.tir import expr as e
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import BINARY_FLOAT, UNARY_FLOAT
from weft.tir.stmt import BufferStore, Evaluate, LetStmt

_MANY: Final = 1 << 30


def _table(rows: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    return {f"tir.{name}": (least, most) for names, least, most in rows for name in names.split()}


_COUNTS: Final = _table((
    (" ".join(UNARY_FLOAT), 1, 1),
    (" ".join(BINARY_FLOAT), 2, 2),
    ("fabs popcount clz bitwise_not isnan isinf isfinite isnullptr reinterpret likely", 1, 1),
    ("vectorhigh vectorlow address_of ret assume reduce_lanes unchecked_cast is_exact", 1, 1),
    ("uncontracted all_lanes ignore_loop_partition", 1, 1),
    ("pow bitwise_and bitwise_or bitwise_xor shift_left shift_right", 2, 2),
    ("vectorcombine lookup large_uint_imm get_active_lane_mask", 2, 2),
    ("if_then_else fma scaleb dot_four_bytes", 3, 3),
    ("q_multiply_shift prefetch", 4, 4),
    ("tvm_access_ptr", 5, 5),
    ("thread_return continue_loop break_loop vscale undef", 0, 0),
    ("checked", 4, _MANY),
    ("call_extern call_pure_extern call_llvm_intrin call_llvm_pure_intrin", 1, _MANY),
    ("call_packed call_cpacked tvm_call_packed tvm_call_cpacked", 1, _MANY),
    ("tvm_call_trace_packed", 2, _MANY),
))  # fmt: skip
"""Intrinsic -> how many arguments it takes, at least and at most."""

_INTEGERS: Final = frozenset(
    f"tir.{name}"
    for name in (
        "bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right popcount clz "
        "q_multiply_shift dot_four_bytes"
    ).split()
)
"""Intrinsics of integers (or booleans)."""
_FLOATS: Final = frozenset(f"tir.{name}" for name in "isnan isinf isfinite scaleb lookup".split())
_CONDITIONS: Final = {"tir.assume": 0, "tir.scaleb": 2}
"""Intrinsic -> which of its arguments is a condition."""
_BOOLEAN: Final = frozenset(
    f"tir.{name}"
    for name in "isnan isinf isfinite isnullptr is_exact all_lanes get_active_lane_mask".split()
)
"""Intrinsics whose result is a boolean."""
_VECTORS: Final = frozenset(f"tir.{name}" for name in "vectorhigh vectorlow vectorcombine".split())
_STATEMENTS: Final = frozenset(
    f"tir.{name}"
    for name in (
        "ret thread_return continue_loop break_loop assume tvm_storage_sync "
        "start_profile_intrinsic end_profile_intrinsic"
    ).split()
)
"""Intrinsics that are statements: they have no value."""


def check_intrinsic_calls(mod: IRModule) -> None:
    """Raise IRTypeError if a call of an intrinsic in a PrimFunc is none that can be compiled.

    >>> from weft.tir import BufferStore, Call, Var, decl_buffer
    >>> a, A = Var("a", "handle"), decl_buffer((1,), "float32", "A")
    >>> store = BufferStore(A, Call("float32", "tir.exp", []), [0])
    >>> check_intrinsic_calls(IRModule({"main": PrimFunc([a], store, buffer_map={a: A})}))
    Traceback (most recent call last):
    ...
    weft.support.errors.IRTypeError: main: T.exp: expected 1 argument, got 0
    """
    for var, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            _check_function(var.name_hint, func)


def _check_function(name: str, func: PrimFunc) -> None:
    statements = {id(value) for value in _statements(func)}
    stores, lets = collect(func.body, BufferStore), collect(func.body, LetStmt)
    values = {id(value) for value in [*[x.value for x in stores], *[x.value for x in lets]]}
    for call in collect(func.body, e.Call):
        if isinstance(call.op, Op):
            is_statement = id(call) in statements and id(call) not in values
            fault = _fault_of(call, call.op.name, is_statement=is_statement)
            if fault is not None:
                shown = call.op.name.removeprefix("tir.")
                raise IRTypeError(f"{name}: T.{shown}: expected {fault}")


def _statements(func: PrimFunc) -> Iterator[PrimExpr]:
    """The values that are evaluated for their effect alone."""
    for statement in collect(func.body, Evaluate):
        value = statement.value
        while isinstance(value, e.Let):
            value = value.body
        yield value


def _fault_of(call: e.Call, name: str, *, is_statement: bool) -> str | None:
    """What a call should be and what it is; None if it is right."""
    least, most = _COUNTS.get(name, (0, _MANY))
    count = len(call.args)
    if not least <= count <= most:
        atleast = "" if least == most else "at least "
        return f"{atleast}{least} argument{'s' * (least != 1)}, got {count}"
    if name in _STATEMENTS and not is_statement:
        return "it to be a statement, since it has no value; got it within an expression"
    if name in _BOOLEAN and not call.dtype.is_bool:
        return f"a boolean as its result, got {call.dtype}"
    operands = [arg for arg in call.args if isinstance(arg, PrimExpr)]
    if len(operands) < len(call.args):
        return None
    return _fault_of_types(call, name, operands)


def _fault_of_types(call: e.Call, name: str, operands: list[PrimExpr]) -> str | None:
    """What the types of operands should be, and what they are; None if they are right."""
    for at, operand in enumerate(operands):
        dtype = operand.dtype
        if name in _INTEGERS and not (dtype.is_integral or dtype.is_bool):
            return f"integers, got {dtype} as argument {at}"
        if name in _FLOATS and at == 0 and not dtype.is_float:
            return f"a float, got {dtype}"
        if _CONDITIONS.get(name) == at and not dtype.is_bool:
            return f"a boolean as argument {at}, got {dtype}"
        if name in _VECTORS and (dtype.lanes < 2 and name != "tir.vectorcombine"):
            return f"a vector of several lanes, got {dtype}"
    if name == "tir.vectorcombine":
        whole, parts = call.dtype.lanes, [operand.dtype.lanes for operand in operands]
        if sum(parts) != whole or min(parts) < 2:
            return f"two vectors that fill {call.dtype}, got {parts[0]} and {parts[1]} lanes"
    if name == "tir.tvm_access_ptr" and not operands[1].dtype.is_handle:
        return f"a pointer as argument 1, got {operands[1].dtype}"
    return None
