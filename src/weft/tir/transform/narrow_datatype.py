"""NarrowDataType: computes loops and indices in 32 (or 16) bits if all values fit.

A loop variable, block axis or thread index becomes narrow if it fits, and if every integer
expression that it is part of fits. Constants and casts next to it are converted; where a wide value
is needed (a stored index, an argument of a call), the narrow one is cast back. The pass never makes
anything wider.

Before: ``for i in range(T.int64(16)): B[i * T.int64(8)] = A[i]``.
After: ``for i in range(16): B[i * 8] = A[i]``.

Bounds come from ``Analyzer.const_int_bound``, so loops of symbolic extents keep their type. An
index inside of another index is independent of it: in ``A[B[i] * n]``, ``i`` only needs to fit
itself. TVM's pass of that name works in the same way, except that it does not check the extent
expressions.
"""

from __future__ import annotations

from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, collect
from weft.ir.node import Array
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.support.errors import PassError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import BinaryExpr, Call, Cast, CompareExpr, IterVar, Let, Select, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, BlockRealize, BufferStore, For, LetStmt, Stmt
from weft.tir.transform.convert_ssa import convert_ssa
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.thread_scope import LAUNCH


class _Widths(Visitor):
    """The bits that each loop variable, axis or thread index needs, in all expressions it is in."""

    def __init__(self, bits: int) -> None:
        self.target = self.width = bits
        self.low, self.high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        self.analyzer = Analyzer()
        self.found: dict[Var, int] = {}

    def fits(self, expr: PrimExpr) -> bool:
        """Whether all values of an integer expression are within the target's range."""
        if not expr.dtype.is_int or expr.dtype.lanes != 1:
            return False
        if expr.dtype.bits <= self.target:
            return True
        bound = self.analyzer.const_int_bound(expr)
        return bool(self.low <= bound.min_value and bound.max_value <= self.high)

    def counts(self, var: Var, domain: Range) -> None:
        """Record a variable that may become narrow, if its bounds fit, too."""
        if var.dtype.is_int:
            self.analyzer.bind(var, domain, allow_override=True)
            narrow = self.fits(domain.min) and self.fits(domain.extent)
            self.found[var] = self.target if narrow else var.dtype.bits

    def visit_PrimExpr(self, expr: PrimExpr) -> None:
        outer = self.width
        if expr.dtype.is_int:
            self.width = max(outer, self.target if self.fits(expr) else expr.dtype.bits)
        with self.apart(self.width):
            self.visit_default(expr)
        self.width = outer

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        outer, self.width = self.width, self.target
        with self.apart(self.width):
            self.visit(load.indices)
            self.visit(load.predicate)
        self.width = outer

    def visit_Var(self, var: Var) -> None:
        if var in self.found:
            needed = self.target if self.fits(var) else var.dtype.bits
            self.found[var] = max(self.found[var], self.width, needed)

    def visit_Buffer(self, buffer: Buffer) -> None:
        """Shapes keep their type, and so do the variables in them."""
        for var in collect([buffer.shape, buffer.strides, buffer.elem_offset], Var):
            if var in self.found:
                self.found[var] = var.dtype.bits

    def visit_For(self, loop: For) -> None:
        self.counts(loop.loop_var, loop.domain)
        self.visit([loop.min, loop.extent, loop.body])

    def visit_IterVar(self, axis: IterVar) -> None:
        if axis.dom is not None:
            self.counts(axis.var, axis.dom)
            self.visit(axis.dom)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in LAUNCH and isinstance(attr.node, IterVar):
            self.counts(attr.node.var, Range(0, attr.value))
        self.visit([attr.value, attr.body])

    def visit_LetStmt(self, let: LetStmt) -> None:
        if let.var.dtype.is_int:
            self.analyzer.bind(let.var, let.value, allow_override=True)
        self.visit([let.value, let.body])

    def narrow(self) -> dict[Var, Var]:
        """Variable -> its narrow replacement."""
        return {
            var: type(var)(var.name, f"int{bits}")
            for var, bits in self.found.items()
            if bits < var.dtype.bits
        }


class _Narrow(StmtMutator):
    """Rewrites a function; ``free``: the type of the expression being visited may change."""

    def __init__(self, widths: _Widths) -> None:
        super().__init__()
        self.widths, self.variables = widths, widths.narrow()
        self.dtype = DataType(f"int{widths.target}")
        self.free = False

    # Expressions.

    def within(self, free: bool, expr: PrimExpr) -> PrimExpr:
        outer, self.free = self.free, free
        with self.apart(free):
            narrowed = self.visit(expr)
        self.free = outer
        return narrowed

    def index(self, expr: PrimExpr, dtype: DataType | None = None) -> PrimExpr:
        """An index expression, which may become narrow; cast to ``dtype`` if that is given."""
        narrowed: PrimExpr = self.within(True, expr)
        return narrowed if dtype is None else op.cast(dtype, narrowed)

    def value(self, expr: PrimExpr) -> PrimExpr:
        """An expression that must keep its type."""
        narrowed = self.within(False, expr)
        return op.cast(expr.dtype, narrowed) if isinstance(narrowed, PrimExpr) else narrowed

    def is_narrowable(self, expr: PrimExpr) -> bool:
        return expr.dtype.bits > self.widths.target and self.widths.fits(expr)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        outer, self.free = self.free, False
        with self.apart(False):
            narrowed: PrimExpr = self.visit_default(expr)
        self.free = outer
        return narrowed

    def visit_Var(self, var: Var) -> Var:
        return self.variables.get(var, var)

    def visit_IntImm(self, number: IntImm) -> PrimExpr:
        return op.cast(self.dtype, number) if self.free and self.is_narrowable(number) else number

    def visit_Cast(self, expr: Cast) -> PrimExpr:
        if self.free and self.is_narrowable(expr) and expr.value.dtype.is_int:
            return op.cast(self.dtype, self.visit(expr.value))
        value = self.within(False, expr.value)
        return op.cast(expr.dtype, value) if value is not expr.value else expr

    def visit_BinaryExpr(self, expr: BinaryExpr) -> PrimExpr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a.dtype is not b.dtype:
            a, b = self.within(True, expr.a), self.within(True, expr.b)
        comparison = isinstance(expr, CompareExpr)
        narrow = a.dtype is b.dtype and (a.dtype is expr.a.dtype or self.widths.fits(expr))
        if not narrow and not (comparison and a.dtype is b.dtype):
            a, b = op.cast(expr.a.dtype, a), op.cast(expr.b.dtype, b)
        return expr.with_(a=a, b=b)

    def visit_Select(self, expr: Select) -> PrimExpr:
        yes, no = op.match_types(self.visit(expr.true_value), self.visit(expr.false_value))
        condition = self.within(False, expr.condition)
        return expr.with_(condition=condition, true_value=yes, false_value=no)

    def visit_Let(self, let: Let | LetStmt) -> PrimExpr | Stmt:
        return let.with_(value=self.value(let.value), body=self.visit(let.body))

    visit_LetStmt = visit_Let

    def visit_Call(self, call: Call) -> PrimExpr:
        if is_call(call, "if_then_else"):
            condition = self.within(False, call.args[0])
            yes, no = [self.value(arg) for arg in call.args[1:]]
            return op.if_then_else(condition, yes, no)
        args = [self.value(a) if isinstance(a, PrimExpr) else self.visit(a) for a in call.args]
        same = all(new is old for new, old in zip(args, call.args, strict=True))
        return call if same else call.with_(args=Array(args))

    # Memory.

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def indices(self, indices: Any) -> Any:
        narrowed = [self.index(index) for index in indices]
        same = all(new is old for new, old in zip(narrowed, indices, strict=True))
        return indices if same else Array(narrowed)

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        predicate = None if load.predicate is None else self.value(load.predicate)
        return load.with_(indices=self.indices(load.indices), predicate=predicate)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        predicate = None if store.predicate is None else self.value(store.predicate)
        return store.with_(
            value=self.value(store.value), indices=self.indices(store.indices), predicate=predicate
        )

    def visit_Range(self, domain: Range) -> Range:
        low, extent = op.match_types(self.index(domain.min), self.index(domain.extent))
        return domain.with_(min=low, extent=extent)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region.with_(region=self.visit(region.region))

    # Loops, axes and threads.

    def visit_IterVar(self, axis: IterVar) -> IterVar:
        var = self.visit_Var(axis.var)
        domain = axis.dom
        if domain is not None:
            low, extent = self.index(domain.min, var.dtype), self.index(domain.extent, var.dtype)
            domain = domain.with_(min=low, extent=extent)
        return axis.with_(dom=domain, var=var)

    def visit_For(self, loop: For) -> For:
        var = self.visit_Var(loop.loop_var)
        binding = loop.thread_binding
        if binding is not None and binding.var.dtype is not var.dtype:
            binding = binding.with_(var=Var(binding.var.name, var.dtype))
        return loop.with_(
            loop_var=var,
            min=self.index(loop.min, var.dtype),
            extent=self.index(loop.extent, var.dtype),
            body=self.visit(loop.body),
            thread_binding=binding,
        )

    def visit_BlockRealize(self, realize: BlockRealize) -> BlockRealize:
        block = self.visit(realize.block)
        pairs = zip(realize.iter_values, block.iter_vars, strict=True)
        values = [self.index(value, axis.var.dtype) for value, axis in pairs]
        same = all(new is old for new, old in zip(values, realize.iter_values, strict=True))
        return realize.with_(
            iter_values=realize.iter_values if same else Array(values),
            predicate=self.value(realize.predicate),
            block=block,
        )

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        node, value = attr.node, attr.value
        if attr.attr_key in LAUNCH and isinstance(node, IterVar):
            node = self.visit_IterVar(node)
            value = self.index(value, node.var.dtype)
        elif isinstance(value, PrimExpr):
            value = self.value(value)
        return attr.with_(node=node, value=value, body=self.visit(attr.body))


def narrow_datatype(func: PrimFunc, bits: int) -> PrimFunc:
    """The function with loops and indices of ``bits`` bits where they fit."""
    single = convert_ssa(func)
    widths = _Widths(bits)
    widths.visit(single.body)
    return rewrite_body(single, _Narrow(widths))


def NarrowDataType(target_bits: int) -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.NarrowDataType``: loops and indices of 16 or 32 bits where they fit.

    Raises:
        PassError: another number of bits.
    """
    if target_bits not in (8, 16, 32):
        raise PassError(f"NarrowDataType: target_bits: expected 8, 16 or 32, got {target_bits!r}")
    return define_pass("NarrowDataType", narrow_datatype)(target_bits)
