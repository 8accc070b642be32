"""NameExtents: an expression that is an extent of a kernel's buffers becomes a variable.

Before, in the middle of a network for images of any size::

    @T.prim_func(private=True)
    def relu(x: T.handle, y: T.handle, h: T.int64):
        X = T.match_buffer(x, ((h - 17) // 16 + 1, 8))
        Y = T.match_buffer(y, ((h - 17) // 16 + 1, 8))
        for i, j in T.grid((h - 17) // 16 + 1, 8): ...

After::

    @T.prim_func(private=True)
    def relu(x: T.handle, y: T.handle):
        h_size = T.int64()
        X = T.match_buffer(x, (h_size, 8))
        Y = T.match_buffer(y, (h_size, 8))
        for i, j in T.grid(h_size, 8): ...

Schedules fuse and split loops, and must prove, for example, that ``h_size * 3`` iterations are
three times ``h_size``: that is plain of a variable, of such an expression it is not. Without
scalars beside its tensors, a kernel is also one that passes such as ConcatenateInPlace take, and
kernels of layers of the same form are equal. Other extents are written with the variable where
that is possible: ``(h - 33) // 32`` is ``h_size // 2 - 1``. A kernel that needs ``h`` all the same
stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import Mutator, collect, mentions
from weft.ir.module import IRModule
from weft.ir.node import Map, expect
from weft.ir.transform import define_module_pass
from weft.relax.expr import Call, Function, ShapeExpr
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.ir.prim_func_info import prim_func_info
from weft.relax.op.base import CALL_TIR, CALL_TIR_INPLACE
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Add, FloorDiv, SizeVar, Sub, Var
from weft.tir.function import PrimFunc


@dataclass(frozen=True)
class _Extent:
    """An extent ``term + shift`` of a buffer, where the term mentions a single variable."""

    term: PrimExpr
    shift: int


@dataclass(frozen=True)
class _Quotient:
    """The expression ``(var + shift) // divisor``."""

    var: Var
    shift: int
    divisor: int


def _extent_of(dim: PrimExpr) -> _Extent:
    if isinstance(dim, (Add, Sub)) and isinstance(dim.b, IntImm):
        inner = _extent_of(dim.a)
        shift = dim.b.value if isinstance(dim, Add) else -dim.b.value
        return _Extent(inner.term, inner.shift + shift)
    return _Extent(dim, 0)


def _quotient_of(expr: PrimExpr) -> _Quotient | None:
    if isinstance(expr, Var):
        return _Quotient(expr, 0, 1)
    if not isinstance(expr, FloorDiv) or not isinstance(expr.b, IntImm) or expr.b.value < 1:
        return None
    inner = _extent_of(expr.a)
    return _Quotient(inner.term, inner.shift, expr.b.value) if isinstance(inner.term, Var) else None


class _Replacer(Mutator):
    """Replaces an extent's term by ``size - shift``, also where a quotient can be written so."""

    def __init__(self, extent: _Extent, size: Var) -> None:
        super().__init__()
        self.term, self.size, self.shift = extent.term, size, extent.shift
        self.known = _quotient_of(extent.term)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The expression with the term replaced inside of it."""
        if expr_deep_equal(expr, self.term):
            return op.subtract(self.size, self.shift)
        written = self.as_quotient(expr)
        return self.visit_default(expr) if written is None else written

    def as_quotient(self, expr: PrimExpr) -> PrimExpr | None:
        """``(h + c) // (b * k)`` as ``(term + (c - a) // b) // k``, for a term ``(h + a) // b``.

        What is added to the size is less than k, as schedules write the number of tiles: one
        quotient is written in one way.
        """
        mine = _quotient_of(expr)
        if mine is None or self.known is None or mine.var is not self.known.var:
            return None
        apart, divisor = mine.shift - self.known.shift, self.known.divisor
        if apart % divisor or mine.divisor % divisor:
            return None
        by = mine.divisor // divisor
        whole, rest = divmod(apart // divisor - self.shift, by)
        return op.add(op.floordiv(op.add(self.size, rest), by), whole)


class _Renamer(Mutator):
    """Rewrites integers that mention ``var`` with ``size``, a variable for an extent."""

    def __init__(self, extent: _Extent, var: Var, size: Var) -> None:
        super().__init__()
        self.var, self.analyzer = var, Analyzer()
        self.replacer = _Replacer(extent, size)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The expression rewritten and simplified; what does not mention ``var`` is the same.

        Where elements are loaded, the indices are rewritten one by one: here a buffer is renewed
        with its shape, once for all that read it.
        """
        if not mentions(expr, self.var):
            return expr
        if not expr.dtype.is_int or expr.dtype.lanes != 1 or collect(expr, BufferLoad):
            return self.visit_default(expr)
        return self.analyzer.simplify(self.replacer.visit(expr))


def name_extents(func: PrimFunc) -> PrimFunc:
    """The PrimFunc without those of its scalar parameters that are only needed for extents."""
    for var in [param for param in func.params if param not in func.buffer_map]:
        for extent in _extents_of(func, var):
            renamed = _renamed(func, var, extent)
            if renamed is not None:
                func = renamed
                break
    return func


def _extents_of(func: PrimFunc, var: Var) -> Iterator[_Extent]:
    """The extents of buffers that mention only ``var``, those with the finest steps first."""
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    dims = [dim for buffer in buffers for dim in buffer.shape if set(collect(dim, Var)) == {var}]
    extents = [_extent_of(dim) for dim in dims]
    if not any(dim is var for dim in dims):
        yield from sorted(extents, key=_step)


def _step(extent: _Extent) -> int:
    quotient = _quotient_of(extent.term)
    return 0 if quotient is None else quotient.divisor


def _renamed(func: PrimFunc, var: Var, extent: _Extent) -> PrimFunc | None:
    """The PrimFunc with a variable for an extent; None if it needs ``var`` all the same."""
    size = SizeVar(f"{var.name}_size", var.dtype)  # it is an extent itself
    renamer = _Renamer(extent, var, size)
    buffers = {param: renamer.visit(buffer) for param, buffer in func.buffer_map.items()}
    body = renamer.visit(func.body)
    is_defined = any(dim is size for buffer in buffers.values() for dim in buffer.shape)
    if not is_defined or mentions([*buffers.values(), body], var):
        return None
    params = [param for param in func.params if param is not var]
    return func.with_(params=params, buffer_map=Map(buffers), body=body)


class _Uses(PyExprVisitor):
    """The PrimFuncs that are used otherwise than by ``call_tir``, whose calls are not known."""

    def __init__(self) -> None:
        self.escaping: set[GlobalVar] = set()

    def visit_call_(self, op: Call) -> None:
        if _is_kernel_call(op):
            for argument in op.args[1:]:
                self.visit_expr(argument)
        else:
            super().visit_call_(op)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.escaping.add(op)


class _Caller(PyExprMutator):
    """Makes calls name the new kernels, and leave out the scalars that these do not take."""

    def __init__(self, kernels: dict[GlobalVar, tuple[GlobalVar, Sequence[int]]]) -> None:
        super().__init__()
        self.kernels = kernels
        """Kernel -> the new one, and the positions of the scalars that it takes."""

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        known = self.kernels.get(expect(call.args[0], GlobalVar)) if _is_kernel_call(call) else None
        if known is None:
            return call
        callee, kept = known
        scalars = expect(call.args[2], ShapeExpr).values
        operands = [callee, call.args[1]]
        if kept:
            operands.append(ShapeExpr([scalars[index] for index in kept]))
        return Call(call.op, operands, call.attrs, call.sinfo_args, call.span)


def _is_kernel_call(call: Call) -> bool:
    return call.op in (CALL_TIR, CALL_TIR_INPLACE) and isinstance(call.args[0], GlobalVar)


def _with_names(mod: IRModule) -> IRModule:
    """The module whose private kernels have names of their own for extents."""
    uses = _Uses()
    for func in mod.functions.values():
        if isinstance(func, Function):
            uses.visit_expr(func)
    renamed: dict[GlobalVar, PrimFunc] = {}
    kernels: dict[GlobalVar, tuple[GlobalVar, Sequence[int]]] = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or gvar in uses.escaping or "global_symbol" in func.attrs:
            continue
        new = name_extents(func)
        if new is not func:
            callee = GlobalVar(gvar.name_hint)
            callee.struct_info = prim_func_info(new)
            scalars = [param for param in func.params if param not in func.buffer_map]
            kept = [index for index, param in enumerate(scalars) if param in set(new.params)]
            renamed[callee], kernels[gvar] = new, (callee, kept)
    if not kernels:
        return mod
    caller = _Caller(kernels)
    functions = {
        gvar: caller.visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
        if gvar not in kernels
    }
    return IRModule({**functions, **renamed}, None, mod.attrs, mod.global_infos)


NameExtents = define_module_pass("NameExtents", _with_names)
