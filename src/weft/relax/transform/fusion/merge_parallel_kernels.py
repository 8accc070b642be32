"""MergeParallelKernels: merges neighbouring kernels whose parallel loops share a partition.

Before, if all three run in parallel over blocks of 48 columns::

    q = R.call_tir(cls.matmul, (x, wq), out_sinfo=R.Tensor((128, 768)))
    k = R.call_tir(cls.matmul, (x, wk), out_sinfo=R.Tensor((128, 768)))
    v = R.call_tir(cls.matmul, (x, wv), out_sinfo=R.Tensor((128, 768)))

After, with one parallel loop in which each thread computes its columns of all three::

    lv = R.call_tir(cls.matmul_by_3, (x, wq, wk, wv), out_sinfo=[R.Tensor((128, 768)), ...])
    q = lv[0]; k = lv[1]; v = lv[2]

Threads then wait for each other once and not three times. A kernel that reads what its neighbour
writes may join it too, if each iteration reads only what the same iteration wrote
(``weft.backends.cpu.vectors.merge_parallel_loops``). A tensor that only the merged kernel needs is
then no tensor of the graph any more. Each kernel is scheduled before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from weft.backends.cpu.vectors.merge_parallel_loops import (
    Partition,
    merge_parallel_loops,
    parallel_loop,
    partition_of,
    shared_partition,
    statements,
)
from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.traits import Trait, has
from weft.ir.transform import define_module_pass
from weft.relax.analysis.dependencies import operands
from weft.relax.expr import (
    Binding,
    Call,
    Constant,
    DataflowBlock,
    Function,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.op.base import CALL_TIR
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.fusion.fuse_tir import fuse_tir
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.tir.analysis.loop_slabs import LoopAccesses, loop_accesses
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, Stmt


@dataclass(frozen=True)
class _Kernel:
    """A call of a PrimFunc in a graph, and its outermost statements."""

    var: Var
    name: str
    func: PrimFunc
    tensors: tuple[RelaxExpr, ...]
    """The graph value of each buffer; the result is last."""
    stmts: Sequence[Stmt]

    def reads(self, var: Var) -> bool:
        """Whether ``var`` is an argument of the call."""
        return any(argument is var for argument in self.tensors[:-1])


class _Loops:
    """The accesses of each kernel's parallel loops, computed once for all its calls."""

    def __init__(self) -> None:
        self.known: dict[For, LoopAccesses] = {}

    def partition(self, kernel: _Kernel, stmt: Stmt, call: Hashable) -> Partition | None:
        """The partition of a statement, with the graph values of the call as keys of buffers."""
        loop = parallel_loop(stmt)
        if loop is None:
            return None
        if loop not in self.known:
            self.known[loop] = loop_accesses(loop)
        accesses = self.known[loop]
        names: dict[TirVar, Hashable] = {data: (call, data) for data in accesses.slabs}
        buffers = [kernel.func.buffer_map[param].data for param in kernel.func.params]
        names.update(zip(buffers, kernel.tensors, strict=True))
        return partition_of(loop, accesses, names)


class _Run:
    """A run of neighbours that become one kernel; it grows while the block is walked."""

    def __init__(self, first: _Kernel, loops: _Loops, machine: Machine) -> None:
        self.kernels = [first]
        self.loops, self.machine = loops, machine
        self.renamed: set[Var] = set()
        """Views of tensors that these kernels compute."""
        self.last = loops.partition(first, first.stmts[-1], 0)

    def takes(self, kernel: _Kernel) -> bool:
        """Add the next kernel if its first loop and the run's last loop can be merged."""
        if self.last is None or any(kernel.reads(var) for var in self.renamed):
            return False
        mine = self.loops.partition(kernel, kernel.stmts[0], len(self.kernels))
        both = shared_partition(self.last, mine, self.machine) if mine else None
        if both is None or not self.is_local(kernel):
            return False
        self.kernels.append(kernel)
        self.last = both
        if len(kernel.stmts) > 1:
            self.last = self.loops.partition(kernel, kernel.stmts[-1], len(self.kernels) - 1)
        return True

    def is_local(self, kernel: _Kernel) -> bool:
        """Whether ``kernel``, and each kernel of this run that it reads from, is a single loop."""
        sources = [each for each in self.kernels if kernel.reads(each.var)]
        return not sources or all(len(each.stmts) == 1 for each in (kernel, *sources))

    def sees(self, binding: Binding) -> None:
        """Note a binding between kernels that computes nothing."""
        if any(leaf in self.renamed or leaf in self.results() for leaf in operands(binding.value)):
            self.renamed.add(binding.var)

    def results(self) -> list[Var]:
        """The variables that the kernels compute."""
        return [kernel.var for kernel in self.kernels]

    def name(self) -> str:
        """The name of the merged kernel: that of the first one, and how many there are."""
        first, *others = [kernel.name for kernel in self.kernels]
        if all(name == first for name in others):
            return f"{first}_by_{len(self.kernels)}"
        return f"{first}_and_{others[0] if len(others) == 1 else len(others)}"


def _runs(mod: IRModule, block: DataflowBlock, loops: _Loops, machine: Machine) -> Iterator[_Run]:
    """The runs of neighbours in a block that can be merged."""
    current: _Run | None = None
    for binding in block.bindings:
        kernel = _kernel(mod, binding)
        if kernel is not None and (current is None or not current.takes(kernel)):
            if current is not None:
                yield current
            current = _Run(kernel, loops, machine)
        elif kernel is None and current is not None:
            if _is_view(binding):
                current.sees(binding)
            else:
                yield current
                current = None
    if current is not None:
        yield current


def _kernel(mod: IRModule, binding: Binding) -> _Kernel | None:
    """The kernel that a binding calls, if it computes one tensor from tensors of known shapes."""
    call = binding.value
    if not isinstance(binding, VarBinding) or getattr(call, "op", None) is not CALL_TIR:
        return None
    func = mod[call.args[0]]
    if len(call.args) > 2 or not isinstance(call.args[1], Tuple):
        return None
    tensors = (*call.args[1].fields, binding.var)
    if not isinstance(func, PrimFunc) or not isinstance(binding.var.struct_info, TensorStructInfo):
        return None
    if not func.attrs.get("tir.noalias") or len(func.buffer_map) != len(tensors):
        return None
    if len(func.params) != len(tensors) or not all(
        isinstance(tensor, Var | Constant) for tensor in tensors
    ):
        return None
    return _Kernel(binding.var, call.args[0].name_hint, func, tensors, statements(func))


def _is_view(binding: Binding) -> bool:
    """Whether a binding computes nothing: another name, a field of a tuple, a reshape."""
    value = binding.value
    if isinstance(value, Call):
        return has(value.op, Trait.VIEW)
    return isinstance(binding, VarBinding) and isinstance(value, Var | Tuple | TupleGetItem)


def merge_parallel_kernels(mod: IRModule) -> IRModule:
    """The module with neighbouring kernels in dataflow blocks merged if they share a partition."""
    groups: dict[Var, Group] = {}
    loops, machine = _Loops(), machine_of(Target.current())
    for func in mod.functions.values():
        if isinstance(func, Function) and is_groupable(func):
            for block in collect(func.body, DataflowBlock):
                for run in _runs(mod, block, loops, machine):
                    if len(run.kernels) > 1:
                        groups.update(dict.fromkeys(run.results(), Group(name=run.name())))
    if not groups:
        return mod
    before = {gvar.name_hint for gvar in mod.functions}
    fused = fuse_tir(make_grouped_functions(mod, groups))
    return _with_loops_merged(fused, before)


def _with_loops_merged(mod: IRModule, known: set[str]) -> IRModule:
    """The module with the parallel loops merged in functions whose names are not in ``known``."""
    merged = mod.clone()
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc) and gvar.name_hint not in known:
            merged.update_func(gvar, merge_parallel_loops(func))
    return merged


MergeParallelKernels = define_module_pass("MergeParallelKernels", merge_parallel_kernels)
