"""How much memory the tensors of a function take, as written and as planned."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.analysis.bindings import functions_of
from weft.relax.expr import Call, DataTypeImm, Function, ShapeExpr
from weft.support.dtype import DataType
from weft.support.errors import wrong_type

BUILTIN_TENSOR = Op.get("relax.builtin.alloc_tensor")
TENSOR = Op.get("relax.memory.alloc_tensor")
STORAGE = Op.get("relax.memory.alloc_storage")


@dataclass
class MemoryUsage:
    """Counts and bytes of one function; a size with symbols counts as dynamic only."""

    tensors: int = 0
    tensor_bytes: int = 0
    storages: int = 0
    storage_bytes: int = 0
    dynamic: int = 0

    def tensor(self, size: int | None) -> None:
        """Count a tensor of that many bytes."""
        if size is None:
            self.dynamic += 1
        else:
            self.tensors += 1
            self.tensor_bytes += size

    def storage(self, size: int | None) -> None:
        """Count a storage, or a tensor that has a storage of its own."""
        if size is not None:
            self.storages += 1
            self.storage_bytes += size

    def __str__(self) -> str:
        dynamic = f", {self.dynamic} of dynamic size" if self.dynamic else ""
        lines = [
            f"  tensors:  {self.tensors} of constant size, {_size(self.tensor_bytes)}{dynamic}",
            f"  planned:  {self.storages} storages of constant size, {_size(self.storage_bytes)}",
        ]
        if self.tensor_bytes:
            lines.append(f"  planned memory is {self.storage_bytes / self.tensor_bytes:.1%}")
        return "\n".join(lines)


def memory_usage(func: Function) -> MemoryUsage:
    """The sizes of all allocations of a function, summed over all branches."""
    usage = MemoryUsage()
    for call in collect(func.body, Call):
        arguments: list[RelaxExpr] = list(call.args)
        if call.op is BUILTIN_TENSOR:
            size = _bytes(arguments[0], expect(arguments[1], DataTypeImm).value)
            usage.tensor(size)
            usage.storage(size)
        elif call.op is TENSOR:
            usage.tensor(_bytes(arguments[2], expect(arguments[3], DataTypeImm).value))
        elif call.op is STORAGE:
            usage.storage(_bytes(arguments[0], DataType("uint8")))
    return usage


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """A text that says how much memory tensors of constant size take without and with planning.

    It sums over all allocations; of an If, both branches count. Call it after CallTIRRewrite
    (before planning, when both sums are equal) or after StaticPlanBlockMemory.
    """
    if isinstance(mod, Function):
        functions = [(GlobalVar("main"), mod)]
    elif isinstance(mod, IRModule):
        functions = [(gvar, func) for gvar, func in functions_of(mod) if gvar is not None]
    else:
        raise wrong_type("estimate_memory_usage: expected an IRModule or a Function", mod)
    return "\n".join([f"{gvar.name_hint}:\n{memory_usage(func)}" for gvar, func in functions])


def _bytes(shape: RelaxExpr, dtype: DataType) -> int | None:
    """The size of a tensor in bytes; None if it is not constant."""
    if not isinstance(shape, ShapeExpr):
        return None
    size = DataType(dtype).itemsize
    for extent in shape.values:
        if not isinstance(extent, IntImm):
            return None
        size *= extent.value
    return size


def _size(count: int) -> str:
    """A number of bytes in the largest unit that fits: ``1.5 MiB``."""
    for unit, width in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= width:
            return f"{count / width:.4g} {unit}"
    return f"{count} B"
