"""Which tensors of a function may share memory, and how long each is needed.

A *root* is a binding that allocates a tensor. Other variables may be names for a root's memory: a
renaming, a view, a field of a tuple, the result of a foreign function that took it as an argument.
A root lives from its allocation to the last call that takes it under any of these names. A root
*escapes*, and its memory is never shared, if it leaves the block that allocates it: it is returned,
used in another block, a branch or a local function, or given to a call that may keep it.

Positions count the bindings of the function in program order. One walk, linear in the number of
bindings, gives StaticPlanBlockMemory and AssignOffsets what they plan with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    ExternFunc,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.struct_info import PrimStructInfo, ShapeStructInfo, TupleStructInfo
from weft.support.recursion import deep_recursion
from weft.tir.function import PrimFunc

CALL_TIR_DYN: Final = "relax.vm.call_tir_dyn"

Alias: TypeAlias = "frozenset[Var] | tuple[Alias, ...]"
"""The roots whose memory a value may be; for a tuple, a tuple of the aliases of its fields."""
NOTHING: Final[frozenset[Var]] = frozenset()


@dataclass
class Life:
    """One root: the call that allocates it, its block, and the positions that need it."""

    var: Var
    call: Call
    block: BindingBlock
    first: int
    home: SeqExpr | BindingBlock
    """The scope of its name: the sequence of blocks, or the block itself if that is dataflow."""
    last: int | None = None
    """The position of the last call that takes it; None if no call does."""


@dataclass(frozen=True)
class Allocations:
    """The roots that do not escape, in program order, and which roots end their life at a call."""

    lives: dict[Var, Life]
    ends: dict[Var, tuple[Var, ...]]
    """Variable of a call -> the roots that this call uses last, in the order of its arguments."""


@deep_recursion
def find_allocations(
    func: Function, mod: IRModule | None, is_root: Callable[[Call], bool]
) -> Allocations:
    """The lives of the tensors that the calls chosen by ``is_root`` allocate."""
    walk = _Walk(mod, is_root)
    walk.sequence(func.body)
    lives = {var: life for var, life in walk.lives.items() if var not in walk.escaped}
    ends: dict[Var, tuple[Var, ...]] = {}
    for binding_var, used in walk.uses:
        position = walk.positions[binding_var]
        ended = [var for var in used if var in lives and lives[var].last == position]
        if ended:
            ends[binding_var] = tuple(dict.fromkeys(ended))
    return Allocations(lives, ends)


class _Walk:
    """The state of one walk over a function."""

    def __init__(self, mod: IRModule | None, is_root: Callable[[Call], bool]) -> None:
        self.mod, self.is_root = mod, is_root
        self.lives: dict[Var, Life] = {}
        self.escaped: set[Var] = set()
        self.aliases: dict[Var, Alias] = {}
        self.uses: list[tuple[Var, tuple[Var, ...]]] = []
        self.positions: dict[Var, int] = {}
        self.block: BindingBlock | None = None
        self.home: SeqExpr | BindingBlock | None = None

    def sequence(self, seq: RelaxExpr) -> None:
        """Walk the blocks, then the result, which escapes."""
        if not isinstance(seq, SeqExpr):
            self.escape(self.alias(seq))
            return
        outer = self.block, self.home
        for block in seq.blocks:
            self.block = block
            self.home = block if isinstance(block, DataflowBlock) else seq
            for binding in block.bindings:
                self.binding(binding)
        self.escape(self.alias(seq.body))
        self.block, self.home = outer

    def binding(self, binding: Binding) -> None:
        """Record what a binding allocates, uses and renames."""
        var, value = binding.var, binding.value
        self.positions[var] = len(self.positions)
        if isinstance(binding, MatchCast) or not isinstance(value, Call | If | Function):
            self.aliases[var] = self.alias(value)
        elif isinstance(value, If):
            self.escape(self.alias(value.cond))
            self.sequence(value.true_branch)
            self.sequence(value.false_branch)
        elif isinstance(value, Function):
            self.sequence(value.body)
        elif self.is_root(value):
            assert self.block is not None
            assert self.home is not None
            self.lives[var] = Life(var, value, self.block, self.positions[var], self.home)
            self.aliases[var] = frozenset([var])
        else:
            self.aliases[var] = self.call(var, value)

    def call(self, var: Var, call: Call) -> Alias:
        """Record the roots that a call uses, and return the memory that its result may be."""
        target = call.op
        name = target.name if isinstance(target, Op) else ""
        if has(target, Trait.VIEW):
            return self.alias(call.args[0])
        if has(target, Trait.KILLS):
            return NOTHING
        roots = _ordered_roots([self.alias(arg) for arg in call.args])
        foreign = isinstance(target, ExternFunc)
        if foreign or name == CALL_TIR_DYN or self.is_kernel(target):
            self.use(var, roots)
            return frozenset(roots) if foreign and not _holds_no_tensor(call) else NOTHING
        self.escaped.update(roots)
        return NOTHING

    def is_kernel(self, target: RelaxExpr) -> bool:
        """Whether a callee is a PrimFunc, which never keeps an argument after it returns."""
        if not isinstance(target, GlobalVar) or self.mod is None or target not in self.mod:
            return False
        return isinstance(self.mod[target], PrimFunc)

    def use(self, var: Var, roots: tuple[Var, ...]) -> None:
        """Record that the call bound to ``var`` takes these roots."""
        for root in roots:
            life = self.lives[root]
            life.last = self.positions[var]
            if life.block is not self.block:
                self.escaped.add(root)
        self.uses.append((var, roots))

    def alias(self, expr: RelaxExpr) -> Alias:
        """The memory that a leaf or a tuple may be."""
        if isinstance(expr, Var):
            return self.aliases.get(expr, NOTHING)
        if isinstance(expr, Tuple):
            return tuple([self.alias(item) for item in expr.fields])
        if isinstance(expr, TupleGetItem):
            whole = self.alias(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, tuple) else whole
        return NOTHING

    def escape(self, alias: Alias) -> None:
        """Record that these roots leave their block."""
        self.escaped.update(_ordered_roots([alias]))


def _ordered_roots(aliases: list[Alias]) -> tuple[Var, ...]:
    """The roots in nested aliases, each once, in order of first appearance."""
    roots: dict[Var, None] = {}
    todo = aliases[::-1]
    while todo:
        alias = todo.pop()
        if isinstance(alias, tuple):
            todo.extend(alias[::-1])
        else:
            roots.update(dict.fromkeys(sorted(alias, key=lambda var: var.name_hint)))
    return tuple(roots)


def _holds_no_tensor(call: Call) -> bool:
    """Whether the result of a call cannot be memory: a number, a shape, nothing."""
    info = call.struct_info
    if isinstance(info, TupleStructInfo):
        return not info.fields
    return isinstance(info, PrimStructInfo | ShapeStructInfo)
