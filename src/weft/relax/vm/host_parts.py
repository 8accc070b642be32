"""Parts of a host function, and what is collected while one is built (weft.relax.vm.host)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.type import PointerType, PrimType
from weft.relax.expr import Constant, Function, Var
from weft.relax.ir.shape_arith import INT64
from weft.relax.vm.arena import ArenaPlan
from weft.relax.vm.extents import Symbols
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate, IfThenElse, Stmt, While, seq

HostValue: TypeAlias = "Buffer | PrimExpr | Shape | LocalFunction | list[HostValue]"
"""What an expression of a graph is in a host.

A tensor is a Buffer, a number a PrimExpr, a tuple the list of its fields; a shape and a function
have classes of their own.
"""
Described: TypeAlias = tuple[str, Any]
"""A kind and what it is about, as ``NativeEntry.result`` and ``NativeEntry.layout`` list them; with
PrimExprs in the place of texts."""


def _constant_table() -> TirVar:
    return TirVar("constant_table", PointerType(PrimType(DataType("handle")), "global"))


class NotNative(Exception):  # noqa: N818 - a reason to run as bytecode, not an error
    """The function has no native form; the message says why."""


@dataclass
class ShapeCheck:
    """A match_cast to check before the host runs, over symbols of the inputs.

    ``kind`` is ``shape``, or ``prim`` with one extent: the number itself.
    """

    kind: str
    what: str
    wanted: list[PrimExpr]
    """As written."""
    resolved: list[PrimExpr]
    """The same over symbols of the inputs."""
    actual: list[PrimExpr]
    known: dict[TirVar, PrimExpr]
    """What the symbols in ``wanted`` stand for that have a value before."""
    names: Symbols
    """The names that the function gives them."""


@dataclass
class HostFunction:
    """The host PrimFunc, what its outputs are, and which constants its table holds."""

    func: PrimFunc
    inputs: int
    outputs: list[Buffer]
    result: Described
    plan: ArenaPlan
    constants: list[Constant]
    checks: list[ShapeCheck]
    limits: list[tuple[TirVar, int]]
    """Symbols and the largest values that memory was planned for."""
    helpers: list[PrimFunc] = field(default_factory=list)
    """The functions that call themselves (weft.relax.vm.host_recursion)."""
    steps: list[Step] = field(default_factory=list)
    """What the body does in order, as ``plan.lives`` counts it."""
    layout: list[Described] | None = None
    """How arguments hold the inputs, where some argument is a tuple or a shape: ``("leaf", i)``,
    ``("same", expr)`` for a number that must equal it, or ``("tuple", layouts)``."""

    @property
    def symbol(self) -> str:
        """The name of the PrimFunc."""
        return str(self.func.attrs["global_symbol"])


@dataclass
class Step:
    """One step of the body, and the tensors that it touches.

    A step is a statement, or stands for a part of a branch: ``condition`` opens it, ``"else"`` and
    ``"end"`` follow. Of a loop, ``condition`` opens it and ``"repeat"`` ends it.
    """

    stmt: Stmt | None
    uses: list[Buffer]
    condition: PrimExpr | None = None
    mark: str = ""


@dataclass
class Shared:
    """What a host and its helpers have in common."""

    name: str = ""
    table: list[Constant] = field(default_factory=list)
    """The constants in the order of their addresses."""
    activations: dict[int, Activation] = field(default_factory=dict)
    """Functions that call themselves, by the id of the function (weft.relax.vm.host_recursion)."""


@dataclass
class State:
    """What lowering collects for one PrimFunc: the host, or a helper that calls itself."""

    shared: Shared = field(default_factory=Shared)
    is_helper: bool = False
    depth: PrimExpr = field(default_factory=lambda: IntImm(INT64, 0))
    """How many calls are open, in helpers."""
    floor: TirVar = field(default_factory=lambda: TirVar("stack_floor", INT64))
    """The lowest address that the stack may reach."""
    pointers: TirVar = field(default_factory=_constant_table)
    """The table of addresses of constants."""

    steps: list[Step] = field(default_factory=list)
    temporaries: list[Buffer] = field(default_factory=list)
    constants: list[tuple[Constant, Buffer]] = field(default_factory=list)
    checks: list[ShapeCheck] = field(default_factory=list)
    views: list[Buffer] = field(default_factory=list)
    roots: dict[int, Buffer] = field(default_factory=dict)
    """The tensor whose memory a view is on, by the view's id."""
    branches: int = 0
    """How many branches are open."""

    @property
    def is_late(self) -> bool:
        """Whether the entry cannot compare in advance: only code that gets there may fail."""
        return self.is_helper or self.branches > 0


def nested(steps: list[Step]) -> Stmt:
    """The steps as one statement, those of branches and loops inside of them."""
    open_parts: list[list[Stmt]] = [[]]
    conditions: list[PrimExpr] = []
    for step in steps:
        if step.stmt is not None:
            open_parts[-1].append(step.stmt)
        elif step.condition is not None:
            conditions.append(step.condition)
            open_parts.append([])
        elif step.mark == "else":
            open_parts.append([])
        elif step.mark == "repeat":
            body = seq(*open_parts.pop())
            open_parts[-1].append(While(conditions.pop(), body))
        else:
            other, then = open_parts.pop(), open_parts.pop()
            branch = IfThenElse(conditions.pop(), seq(*then), seq(*other))
            open_parts[-1].append(branch)
    return seq(*open_parts[0])


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function as a value.

    ``values`` and ``known`` are the variables and the symbols around its definition; ``captured``
    are values that it was given there, which are its last arguments.
    """

    function: Function
    label: str
    values: dict[int, HostValue]
    known: dict[TirVar, PrimExpr]
    captured: list[HostValue]


@dataclass(eq=False)
class Activation:
    """A function that calls itself: what its helper takes, and the helper once it is built."""

    symbol: str
    function: Function
    symbols: list[TirVar]
    captured: list[Var]
    closures: dict[int, LocalFunction]
    """Local functions that it captured, by the id of their variable."""
    func: PrimFunc | None = None


class Shape:
    """A shape value."""

    def __init__(self, values: list[PrimExpr]) -> None:
        self.values = values


def as_tensor(buffer: Buffer) -> TirCall:
    """The buffer as a tensor argument that keeps its shape when buffers are flattened."""
    handle = DataType("handle")
    shape = TirCall(handle, Op.get("tir.tvm_stack_make_shape"), list(buffer.shape))
    rank = IntImm(DataType("int32"), len(buffer.shape))
    offset = buffer.elem_offset if buffer.elem_offset is not None else IntImm(INT64, 0)
    strides = IntImm(DataType("int32"), 0)  # none: compact
    arguments = [buffer.data, shape, strides, rank, op.const(0, buffer.dtype), offset]
    return TirCall(handle, Op.get("tir.tvm_stack_make_array"), arguments)


def packed_call(name: str, passed: Sequence[Buffer | PrimExpr]) -> Evaluate:
    """A call of a registered function on tensors, numbers and texts."""
    callee = Op.get("tir.tvm_call_packed")
    arguments = [as_tensor(value) if isinstance(value, Buffer) else value for value in passed]
    return Evaluate(TirCall(DataType("handle"), callee, [StringImm(name), *arguments]))


def identifier(name: str) -> str:
    """The name with what a buffer's name may not hold replaced."""
    return "".join(letter if letter.isalnum() else "_" for letter in name) or "t"


def implicit_values(kernel: PrimFunc, passed: Sequence[HostValue]) -> list[PrimExpr]:
    """The values of a kernel's implicit symbols for these arguments, in signature order."""
    from_scalars = {id(param) for param in kernel.params if param not in kernel.buffer_map}
    values: dict[int, PrimExpr] = {}
    order: list[TirVar] = []
    for param, argument in zip(kernel.params, passed, strict=True):
        buffer = kernel.buffer_map.get(param)
        if buffer is None:
            continue
        for mine, its in zip(buffer.shape, expect(argument, Buffer).shape, strict=True):
            _order_symbols(mine, from_scalars, order)
            if isinstance(mine, TirVar) and id(mine) not in from_scalars:
                values.setdefault(id(mine), its)
    missing = [var.name for var in order if id(var) not in values]
    if missing:
        raise NotNative(f"the symbols {', '.join(missing)} of a kernel follow from no argument")
    return [op.cast(INT64, values[id(var)]) for var in order]


def _order_symbols(expr: PrimExpr, scalars: Collection[int], order: list[TirVar]) -> None:
    """Append the symbols of an extent in the order in which the signature lists them."""
    if isinstance(expr, TirVar):
        if id(expr) not in scalars and all(expr is not known for known in order):
            order.append(expr)
        return
    for name in expr.CHILDREN:
        child = getattr(expr, name)
        for item in child if isinstance(child, tuple) else (child,):
            if isinstance(item, PrimExpr):
                _order_symbols(item, scalars, order)
