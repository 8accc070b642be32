"""StaticPlanBlockMemory: tensors of one block share storage if their lifetimes do not overlap.

Before (``exp`` and ``relu`` write ``a`` and ``b``, ``log`` then ``c``)::

    a = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
    _ = cls.exp(x, a)
    b = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
    _ = cls.relu(a, b)
    c = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
    _ = cls.log(b, c)

After, where c lives in the storage of a::

    storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
    a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
    ...
    c = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")

The algorithm is TVM's token allocator (Relay's and Relax's memory planner). A storage goes back to
a pool after the last use of its tensor. A new tensor takes the smallest free storage of its dtype
that is large enough; if there is none, it enlarges the largest one. The sizes may differ by a
factor of 16 at most. Tensors of symbolic sizes share storage if the sizes are proved equal. Each
branch has its own pool, since what it allocates does not exist in the other branch or after both.

The function attribute ``tir_var_upper_bound`` (name of a symbol of the signature -> largest value)
makes sizes static. With ``relax.memory_plan_dynamic_func_output``, tensors that leave the block get
storage of their largest size too. AssignOffsets packs the storages into one.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax.analysis.allocation import Allocations, find_allocations
from weft.relax.analysis.bindings import bindings_in_order
from weft.relax.expr import Binding, Call, Function, ShapeExpr, Var, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op import memory
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.transform.passes import over_functions

ALLOC_TENSOR = Op.get("relax.builtin.alloc_tensor")
PLAN_OUTPUTS: Final = "relax.memory_plan_dynamic_func_output"
MATCH_RANGE: Final = 16
"""A free storage is taken only if its size is within this factor of the tensor's."""


@dataclass(eq=False)
class Storage:
    """Memory of one dtype and scope; ``size``, in bytes, may grow while tensors are planned."""

    size: PrimExpr
    dtype: Any
    scope: str
    device: Any


@dataclass
class _Pool:
    """The free storages of one dtype and scope: static ones in order of size, then of release.

    Symbolic ones are grouped by a sample of their size (``UpperBounds.sample``), so that few have
    to be compared by a proof.
    """

    sizes: list[int] = field(default_factory=list)
    static: list[Storage] = field(default_factory=list)
    symbolic: dict[int | None, list[Storage]] = field(default_factory=dict)

    def take(self, size: PrimExpr, bounds: UpperBounds) -> Storage | None:
        """Take a free storage for ``size`` bytes out of the pool; None if none fits."""
        if not isinstance(size, IntImm):
            alike = self.symbolic.get(bounds.sample(size), [])
            for index, storage in enumerate(alike):
                if bounds.analyzer.can_prove_equal(size, storage.size):
                    return alike.pop(index)
            return None
        wanted = size.value
        large = bisect.bisect_left(self.sizes, wanted)
        if large < len(self.sizes) and self.sizes[large] <= wanted * MATCH_RANGE:
            self.sizes.pop(large)
            return self.static.pop(large)
        if large > 0 and self.sizes[large - 1] >= wanted // MATCH_RANGE:
            self.sizes.pop(large - 1)
            storage = self.static.pop(large - 1)
            storage.size = size
            return storage
        return None

    def give(self, storage: Storage, bounds: UpperBounds) -> None:
        """Put a storage back into the pool."""
        if isinstance(storage.size, IntImm):
            place = bisect.bisect_right(self.sizes, storage.size.value)
            self.sizes.insert(place, storage.size.value)
            self.static.insert(place, storage)
        else:
            self.symbolic.setdefault(bounds.sample(storage.size), []).append(storage)


def plan_storages(
    func: Function, allocations: Allocations, bounds: UpperBounds
) -> dict[Var, Storage]:
    """Tensor -> the storage that it gets."""
    planned: dict[Var, Storage] = {}
    pools: dict[tuple[int, str, str], _Pool] = {}  # a branch has its own
    for binding in bindings_in_order(func):
        life = allocations.lives.get(binding.var)
        if life is not None:
            shape, dtype, device, scope = _arguments(life.call)
            key = (id(life.home), scope.value, str(dtype.value))
            size = bounds.size_in_bytes(shape.values, dtype.value)
            pool = pools.setdefault(key, _Pool())
            storage = None if life.last is None else pool.take(size, bounds)
            planned[life.var] = storage or Storage(size, dtype.value, scope.value, device)
        for ended in allocations.ends.get(binding.var, ()):
            storage = planned[ended]
            home = id(allocations.lives[ended].home)
            pools[home, storage.scope, str(storage.dtype)].give(storage, bounds)
    return planned


class _StorageRewriter(PyExprMutator):
    """Replaces allocations of tensors by ``memory.alloc_storage`` and ``memory.alloc_tensor``."""

    def __init__(
        self, planned: dict[Var, Storage], bounds: UpperBounds, plan_outputs: bool
    ) -> None:
        super().__init__()
        self.planned, self.bounds, self.plan_outputs = planned, bounds, plan_outputs
        self.emitted: dict[Storage, Var] = {}

    def visit_binding(self, binding: Binding) -> None:
        value = binding.value
        if not (
            isinstance(binding, VarBinding) and isinstance(value, Call) and value.op is ALLOC_TENSOR
        ):
            super().visit_binding(binding)
            return
        storage = self.planned.get(binding.var)
        if storage is None and self.plan_outputs:
            storage = self.bounded(value)
        if storage is None:
            super().visit_binding(binding)
            return
        holder = self.emitted.get(storage)
        if holder is None:
            call = memory.alloc_storage(
                [storage.size], storage.device, storage.scope, storage.dtype
            )
            holder = self.emitted[storage] = self.builder_.emit(call, "storage")
        tensor = memory.alloc_tensor(holder, 0, value.args[0], value.args[1])
        self.reemit(binding, binding.var, self.builder_.normalize(tensor))

    def bounded(self, call: Call) -> Storage | None:
        """Storage of the largest size for a tensor that leaves its block; None: size is fixed."""
        shape, dtype, device, scope = _arguments(call)
        if not isinstance(shape, ShapeExpr):
            return None
        if all(isinstance(extent, IntImm) for extent in shape.values):
            return None
        size = self.bounds.size_in_order(shape.values, dtype.value)
        return Storage(size, dtype.value, scope.value, device)


def static_plan_block_memory(func: Function, mod: IRModule) -> Function:
    """The function with its tensors in shared storage."""
    allocations = find_allocations(func, mod, _is_plannable)
    bounds = UpperBounds(func)
    plan_outputs = bool(func.attrs.get(PLAN_OUTPUTS, False))
    if not allocations.lives and not plan_outputs:
        return func
    rewriter = _StorageRewriter(plan_storages(func, allocations, bounds), bounds, plan_outputs)
    rewritten: Function = rewriter.visit_expr(func)
    return rewritten.without_attr(PLAN_OUTPUTS) if plan_outputs else rewritten


def _arguments(call: Call) -> tuple[Any, Any, Any, Any]:
    """Shape, dtype, device and scope of an allocation."""
    shape, dtype, device, scope = call.args
    return shape, dtype, device, scope


def _is_plannable(call: Call) -> bool:
    """Whether a call allocates a tensor whose shape is known."""
    if call.op is not ALLOC_TENSOR or not isinstance(call.args[0], ShapeExpr):
        return False
    info = call.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype != "void"


StaticPlanBlockMemory = define_module_pass(
    "StaticPlanBlockMemory", over_functions(static_plan_block_memory)
)
