"""AssignOffsets: one storage replaces those of a block, with an offset for each tensor.

Before (StaticPlanBlockMemory let ``c`` follow ``a`` in one storage)::

    s1 = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
    a = R.memory.alloc_tensor(s1, 0, R.shape([8]), "float32")
    s2 = R.memory.alloc_storage(R.shape([64]), 0, "global", "float32")
    b = R.memory.alloc_tensor(s2, 0, R.shape([16]), "float32")
    c = R.memory.alloc_tensor(s1, 0, R.shape([8]), "float32")

After::

    arena = R.memory.alloc_storage(R.shape([128]), 0, "global", "uint8")
    a = R.memory.alloc_tensor(arena, 0, R.shape([8]), "float32")
    b = R.memory.alloc_tensor(arena, 64, R.shape([16]), "float32")
    c = R.memory.alloc_tensor(arena, 0, R.shape([8]), "float32")

Offsets are computed from the lifetimes of the tensors (``weft.runtime.memory.plan``), whatever
storage they shared before; the size of the arena is close to the largest sum of tensors that live
at the same time. If a size has symbols without an upper bound, or with one that makes it large
(``UpperBounds.planned_sizes``), ``vm.builtin.plan_offsets`` computes the offsets when the function
runs, and a match_cast gives them names::

    plan = R.call_pure_packed("vm.builtin.plan_offsets", R.shape([n * 4, m * 4]), R.shape([...]))
    _ = R.match_cast(plan, R.Shape([offset_0, offset_1, arena_size]))

The sizes of an arena's tensors must be known where it is allocated, so a match_cast that defines
symbols starts a new region with an arena of its own. Design: docs/design/0003-host-functions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax.analysis.allocation import Life, find_allocations
from weft.relax.analysis.bindings import bindings_in_order
from weft.relax.expr import (
    Binding,
    Call,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    ShapeExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import defining_vars
from weft.relax.op import memory
from weft.relax.op.base import call_pure_packed
from weft.relax.struct_info import ShapeStructInfo
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.transform.passes import over_functions
from weft.runtime.memory.plan import plan_offsets
from weft.support.dtype import DataType
from weft.tir.expr import Var as TirVar

ALLOC_STORAGE = Op.get("relax.memory.alloc_storage")
ALLOC_TENSOR = Op.get("relax.memory.alloc_tensor")
PLAN: Final = "vm.builtin.plan_offsets"
INT64: Final = DataType("int64")


@dataclass
class _Region:
    """The tensors that share an arena, and their offsets in it."""

    scope: str
    device: Any
    lives: list[Life]
    tensors: list[tuple[Sequence[PrimExpr], DataType]]
    """Extents and dtype of each."""
    sizes: Sequence[PrimExpr] = ()
    offsets: Sequence[PrimExpr] = ()
    total: PrimExpr | None = None
    arena: Var | None = None

    def plan(self, bounds: UpperBounds) -> None:
        """Compute the offsets; if a size is symbolic, make variables for them."""
        self.sizes = bounds.planned_sizes(self.tensors)
        spans = self.spans()
        sizes = [size.value for size in self.sizes if isinstance(size, IntImm)]
        if len(sizes) == len(self.sizes):
            offsets, total = plan_offsets(sizes, spans)
            self.offsets = [IntImm(INT64, offset) for offset in offsets]
            self.total = IntImm(INT64, total)
        else:
            self.offsets = [TirVar(f"offset_{i}", INT64) for i in range(len(self.sizes))]
            self.total = TirVar("arena_size", INT64)

    def spans(self) -> list[tuple[int, int]]:
        """(first, last) position at which each tensor lives."""
        return [(life.first, life.first if life.last is None else life.last) for life in self.lives]


def _regions(func: Function, mod: IRModule) -> list[_Region]:
    """The regions of a function, with the tensors that are used only in their block."""
    storages: dict[Any, Any] = {
        binding.var: binding.value
        for binding in bindings_in_order(func)
        if isinstance(binding.value, Call) and binding.value.op is ALLOC_STORAGE
    }
    allocations = find_allocations(func, mod, lambda call: call.op is ALLOC_TENSOR)
    starts = _region_starts(func)
    regions: dict[Any, _Region] = {}
    for life in allocations.lives.values():
        arguments: list[Any] = list(life.call.args)
        storage, _, shape, dtype = arguments
        known_region = storages.get(storage)
        if known_region is None or not isinstance(shape, ShapeExpr):
            continue
        device, scope = known_region.args[1], known_region.args[2].value
        key = (id(life.block), starts[life.var], scope)
        region = regions.setdefault(key, _Region(scope, device, [], []))
        region.lives.append(life)
        region.tensors.append((shape.values, dtype.value))
    return list(regions.values())


def _region_starts(func: Function) -> dict[Var, int]:
    """Variable -> how many match_casts that define symbols come before it."""
    count, starts = 0, {}
    for binding in bindings_in_order(func):
        if isinstance(binding, MatchCast) and defining_vars(binding.struct_info):
            count += 1
        starts[binding.var] = count
    return starts


class _OffsetRewriter(PyExprMutator):
    def __init__(self, func: Function, regions: list[_Region]) -> None:
        super().__init__()
        self.places = {
            life.var: (region, offset)
            for region in regions
            for life, offset in zip(region.lives, region.offsets, strict=True)
        }
        kept = [
            binding.value.args[0]
            for binding in bindings_in_order(func)
            if isinstance(binding.value, Call)
            and binding.value.op is ALLOC_TENSOR
            and binding.var not in self.places
        ]
        self.kept = set(kept)

    def visit_binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(value, Call) and value.op is ALLOC_STORAGE and binding.var not in self.kept:
            return
        place = self.places.get(binding.var)
        if place is None or not isinstance(binding, VarBinding) or not isinstance(value, Call):
            super().visit_binding(binding)
            return
        region, offset = place
        if region.arena is None:
            self.allocate(region)
        assert region.arena is not None
        tensor = memory.alloc_tensor(region.arena, PrimValue(offset), value.args[2], value.args[3])
        self.reemit(binding, binding.var, self.builder_.normalize(tensor))

    def allocate(self, region: _Region) -> None:
        """Emit the allocation of the arena, after the computation of offsets if there is one."""
        if isinstance(region.total, TirVar):
            spans = [position for span in region.spans() for position in span]
            names = [*region.offsets, region.total]
            plan_call = call_pure_packed(
                ExternFunc(PLAN),
                ShapeExpr(region.sizes),
                ShapeExpr(spans),
                sinfo_args=ShapeStructInfo(None, len(names)),
            )
            plan = self.builder_.emit(plan_call, "plan")
            self.builder_.match_cast(plan, ShapeStructInfo(names))
        assert region.total is not None  # ``plan`` has set it
        size = memory.alloc_storage([region.total], region.device, region.scope, "uint8")
        region.arena = self.builder_.emit(size, "arena")


def assign_offsets(func: Function, mod: IRModule) -> Function:
    """The function with one storage for each region of its blocks."""
    regions = _regions(func, mod)
    if not regions:
        return func
    bounds = UpperBounds(func)
    for region in regions:
        region.plan(bounds)
    return _OffsetRewriter(func, regions).visit_expr(func)


AssignOffsets = define_module_pass("AssignOffsets", over_functions(assign_offsets))
