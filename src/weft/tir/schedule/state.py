"""The program being scheduled, and references into it that survive its edits.

A ``StmtSRef`` stands for one loop or block. An edit replaces one subtree: statements of the new
subtree that are the old objects keep their references; a loop keeps its reference by its variable;
a block keeps its by ``block_sref_reuse``. Other references of the old subtree expire and remember
the call that consumed them. Ancestors are rebuilt along one path.

Facts about blocks (``dependence``, ``flags``) are derived from the immutable nodes and kept with
them, so an edit makes no fact stale: there is nothing to update and nothing to forget. The design
follows TVM's (Feng et al., "TensorIR", ASPLOS 2023, section 3) with that one difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum

from weft.ir.expr import GlobalVar
from weft.ir.functor import Mutator
from weft.ir.module import IRModule
from weft.ir.node import Map
from weft.ir.structural import structural_digest
from weft.support.errors import InternalError, IRTypeError, IRValueError, ScheduleError, wrong_type
from weft.support.recursion import deep_recursion
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.dependence import BlockScope, block_scope
from weft.tir.schedule.flags import CachedFlags, cached_flags
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, ForKind, Stmt
from weft.tir.stmt_functor import renew_defs


class ScheduleDebugMask(IntEnum):
    """What is checked after every edit."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


DEBUG_MASKS = {"none": 0, "all": 3}


class ScheduleState:
    """A module, the tree of references into its PrimFuncs, and the one edit: ``replace``."""

    def __init__(
        self, mod: PrimFunc | IRModule, *, debug_mask: str | int = "none", enable_check: bool = True
    ) -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise wrong_type("Schedule: expected a PrimFunc or an IRModule", mod)
        if not isinstance(enable_check, bool):
            raise IRTypeError(f"enable_check: expected a bool, got {enable_check!r}")
        self.debug_mask = _mask(debug_mask)
        self.enable_check = enable_check
        self.current_call: object = None
        """The call of the user that is running: an expired reference will name it."""
        self.roots: dict[GlobalVar, StmtSRef] = {}
        self._given = mod
        self._functions: dict[GlobalVar, PrimFunc] = {}
        self._mod: IRModule | None = mod
        self._stmt2ref: dict[int, StmtSRef] = {}
        self._undo: list[Callable[[], None]] | None = None
        self._anew: dict[GlobalVar, tuple[bytes, list[CachedFlags]]] = {}
        """Of each verified function: a digest of its structure, and the facts of a copy."""
        for var, func in mod.functions.items():
            if isinstance(func, PrimFunc):
                self._add_function(var, func)

    def _add_function(self, var: GlobalVar, func: PrimFunc) -> None:
        if not isinstance(func.body, BlockRealize):
            raise ScheduleError(
                f"Schedule: function {var.name_hint} has no block, its body is a "
                f"{type(func.body).__name__}, and schedules work on blocks\n"
                'in a script, put each store into one: with T.block("B"): '
                "vi = T.axis.spatial(8, i); B[vi] = ...\n"
                "a function that passes have lowered already is scheduled before them"
            )
        references = [id(item) for item in tree.all_references(func.body)]
        if len(set(references)) < len(references) or not self._stmt2ref.keys().isdisjoint(
            references
        ):
            func = renew_defs(func)  # an object that stands at two places becomes two
        root = StmtSRef(None, None)
        self._functions[var] = func
        if func is not self._given[var]:
            self._mod = None
        self.roots[var] = root
        self._attach(func.body, None, {}, {}, set(), first=root)

    # ---- the program and its references

    @property
    def mod(self) -> IRModule:
        """The module as it stands."""
        if self._mod is None:
            functions = dict(self._given.functions)
            functions.update(self._functions)
            self._mod = IRModule(
                functions, attrs=self._given.attrs, global_infos=self._given.global_infos
            )
        return self._mod

    def get_sref(self, stmt: Block | For) -> StmtSRef | None:
        """The reference to a loop or block of the current program; None if it is not in it."""
        sref = self._stmt2ref.get(id(stmt))
        return sref if sref is not None and sref.stmt is stmt else None

    def sref_of(self, stmt: Block | For | BlockRealize) -> StmtSRef:
        """The reference to a statement that is known to be in the program."""
        sref = self.get_sref(stmt.block if isinstance(stmt, BlockRealize) else stmt)
        if sref is None:
            raise InternalError("schedule: a statement is not part of the program")
        return sref

    def references(self) -> Iterable[StmtSRef]:
        """Every live reference, in no order."""
        return self._stmt2ref.values()

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences between the blocks inside a block."""
        return block_scope(self, block_sref)

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        """Affine binding, region cover and stage pipeline of a block."""
        return cached_flags(self, block_sref)

    def function_of(self, sref: StmtSRef) -> tuple[GlobalVar, PrimFunc]:
        """The function in which a reference lies."""
        while sref.parent is not None:
            sref = sref.parent
        for var, root in self.roots.items():
            if root is sref:
                return var, self._functions[var]
        raise InternalError("schedule: a reference of no function")

    def set_function(self, var: GlobalVar, func: PrimFunc) -> None:
        """Change the function around its root block: parameters, attributes, buffers.

        The body must be the current one, or hold the same root block object.
        """
        old = self._functions[var]
        self._journal(lambda: self._functions.__setitem__(var, old))
        self._functions[var] = func
        self._mod = None

    # ---- edits

    @deep_recursion
    def replace(
        self,
        src_sref: StmtSRef,
        tgt_stmt: Block | BlockRealize | For | Stmt,
        block_sref_reuse: Mapping[Block, Block] | None = None,
    ) -> None:
        """Put ``tgt_stmt`` where the reference points; ``block_sref_reuse`` maps old to new blocks.

        A block is replaced by a block (its bindings stay), a loop by any statement. The object of
        a loop or block that stays may appear once in the new subtree, not twice.
        """
        old = src_sref.stmt
        if old is None:
            raise IRValueError("replace: the reference has expired")
        if old is tgt_stmt:
            return
        if isinstance(old, Block) and not isinstance(tgt_stmt, Block):
            raise IRTypeError(f"replace: a Block by a {type(tgt_stmt).__name__}")
        parent = src_sref.parent
        before = {id(item): self._stmt2ref[id(item)] for item in tree.all_references(old)}
        loops = {id(s.stmt.loop_var): s for s in before.values() if isinstance(s.stmt, For)}
        blocks = {
            id(new): before[id(replaced)]
            for replaced, new in (block_sref_reuse or {}).items()
            if id(replaced) in before
        }
        if isinstance(tgt_stmt, Block) and isinstance(old, Block):
            blocks.setdefault(id(tgt_stmt), src_sref)
        kept: set[int] = set()
        self._attach(tgt_stmt, parent, loops, blocks, kept)
        for sref in before.values():
            if id(sref) not in kept:
                self._expire(sref)
        self._rebuild_ancestors(parent, old, tgt_stmt)
        if self.debug_mask & ScheduleDebugMask.VERIFY_SREF_TREE:
            self.debug_verify()

    def _attach(
        self,
        stmt: Stmt,
        parent: StmtSRef | None,
        loops: dict[int, StmtSRef],
        blocks: dict[int, StmtSRef],
        kept: set[int],
        first: StmtSRef | None = None,
    ) -> None:
        """Give every loop and block of a new subtree its reference (see the module's docstring)."""
        node = stmt.block if isinstance(stmt, BlockRealize) else stmt
        if not isinstance(node, (For, Block)):
            for inner in tree.substatements(stmt):
                self._attach(inner, parent, loops, blocks, kept)
            return
        sref = first or self._known(node, loops, blocks, kept)
        if sref.stmt is node and id(sref) not in kept and first is None:  # the same object stays
            self._keep_all(node, kept)
            self._set(sref, node, parent)
            return
        kept.add(id(sref))
        self._set(sref, node, parent)
        for inner in tree.child_references(node):
            self._attach(inner, sref, loops, blocks, kept)

    def _known(
        self,
        node: For | Block,
        loops: dict[int, StmtSRef],
        blocks: dict[int, StmtSRef],
        kept: set[int],
    ) -> StmtSRef:
        sref = self._stmt2ref.get(id(node))
        if sref is not None and sref.stmt is node:
            if id(sref) in kept:
                raise InternalError("schedule: one statement object stands at two places")
            return sref
        table, key = (loops, id(node.loop_var)) if isinstance(node, For) else (blocks, id(node))
        sref = table.get(key)
        return StmtSRef(None, None) if sref is None or id(sref) in kept else sref

    def _keep_all(self, node: For | Block, kept: set[int]) -> None:
        for item in tree.all_references(node):
            kept.add(id(self._stmt2ref[id(item)]))

    def _rebuild_ancestors(self, parent: StmtSRef | None, old: Stmt, new: Stmt) -> None:
        child = parent
        while child is not None:
            above = child.stmt
            if above is None:
                raise InternalError("schedule: the parent of a live reference has expired")
            rebuilt = tree.replace_child(above, old, new)
            if not isinstance(rebuilt, (For, Block)):
                raise InternalError("schedule: a statement is not where its reference says")
            self._set(child, rebuilt, child.parent)
            old, new, child = above, rebuilt, child.parent
        self._replace_root(old, new)

    def _replace_root(self, old: Stmt, new: Stmt) -> None:
        for var, func in self._functions.items():
            realize = func.body
            if isinstance(realize, BlockRealize) and realize.block is old:
                self.set_function(var, func.with_(body=realize.with_(block=new)))
                return
        raise InternalError("schedule: the root block belongs to no function")

    # ---- the only writes to references, each with its undo

    def _set(self, sref: StmtSRef, stmt: For | Block, parent: StmtSRef | None) -> None:
        old_stmt, old_parent, old_consumer = sref.stmt, sref.parent, sref.consumer
        if old_stmt is stmt and old_parent is parent:
            return

        def undo() -> None:
            self._stmt2ref.pop(id(stmt), None)
            sref.stmt, sref.parent, sref.consumer = old_stmt, old_parent, old_consumer
            if old_stmt is not None:
                self._stmt2ref[id(old_stmt)] = sref

        self._journal(undo)
        if old_stmt is not None and self._stmt2ref.get(id(old_stmt)) is sref:
            del self._stmt2ref[id(old_stmt)]
        sref.stmt, sref.parent = stmt, parent
        self._stmt2ref[id(stmt)] = sref

    def _expire(self, sref: StmtSRef) -> None:
        old_stmt, old_parent = sref.stmt, sref.parent

        def undo() -> None:
            sref.stmt, sref.parent, sref.consumer = old_stmt, old_parent, None
            if old_stmt is not None:
                self._stmt2ref[id(old_stmt)] = sref

        self._journal(undo)
        if self._stmt2ref.get(id(old_stmt)) is sref:
            del self._stmt2ref[id(old_stmt)]
        sref.stmt, sref.parent, sref.consumer = None, None, self.current_call or "an edit"

    def _journal(self, undo: Callable[[], None]) -> None:
        if self._undo is not None:
            self._undo.append(undo)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Edits made inside are all undone if an exception leaves the block."""
        if self._undo is not None:
            yield
            return
        self._undo = []
        try:
            yield
        except BaseException:
            for undo in reversed(self._undo):
                undo()
            self._mod = None
            raise
        finally:
            self._undo = None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Edits made inside are undone at the end, whether they succeed or not."""
        outer, self._undo = self._undo, []
        mod = self._mod
        try:
            yield
        finally:
            for undo in reversed(self._undo):
                undo()
            self._undo, self._mod = outer, mod

    @property
    def is_edited(self) -> bool:
        """Whether the transaction under way has changed anything."""
        return bool(self._undo)

    # ---- copies and checks

    def copy(self) -> tuple[ScheduleState, dict[StmtSRef, StmtSRef]]:
        """A state of its own over the same (immutable) program, and old reference to new."""
        state = ScheduleState(self.mod, debug_mask=self.debug_mask, enable_check=self.enable_check)
        pairs = {sref: state._stmt2ref[key] for key, sref in self._stmt2ref.items()}
        return state, pairs

    def debug_verify(self) -> None:
        """Check that the references and the program agree (debug_mask & VERIFY_SREF_TREE)."""
        seen = 0
        for var, root in self.roots.items():
            body = self._functions[var].body
            if not isinstance(body, BlockRealize) or root.stmt is not body.block:
                raise InternalError(f"schedule: the root of {var.name_hint} is not its reference's")
            seen += self._verify_below(root)
        if seen != len(self._stmt2ref):
            raise InternalError(
                f"schedule: {len(self._stmt2ref)} references, {seen} loops and blocks"
            )

    @deep_recursion
    def verify_flags(self) -> None:
        """Check the kept facts of all blocks against those of a copy of the program.

        The nodes of the copy are new, so no fact is kept with them and all are derived again
        (VERIFY_CACHED_FLAGS). Half of the edits of a schedule only change how loops run, which no
        fact depends on: after these, the facts of the last copy are used.
        """
        for var, root in self.roots.items():
            func = self._functions[var]
            digest = structural_digest(func.with_(body=_Plain().visit(func.body)))
            if var not in self._anew or self._anew[var][0] != digest:
                self._anew[var] = digest, _flags_anew(var, func)
            references = tree.all_references(tree.stmt_of(root))
            mine = [item for item in references if isinstance(item, Block)]
            for block, again in zip(mine, self._anew[var][1], strict=True):
                kept = cached_flags(self, self.sref_of(block))
                if kept != again:
                    raise InternalError(
                        f"schedule: block {block.name_hint} has {kept}, computed anew {again}"
                    )

    def _verify_below(self, sref: StmtSRef) -> int:
        if sref.stmt is None:
            raise InternalError("schedule: an expired reference in the tree")
        count = 1
        for inner in tree.nearest(sref.stmt):
            child = self.sref_of(inner)
            if child.parent is not sref:
                raise InternalError("schedule: a reference has the wrong parent")
            count += self._verify_below(child)
        return count


class _Plain(Mutator):
    """Removes what says how loops run: kinds (except for threads) and annotations."""

    def visit_For(self, loop: For) -> For:
        kind = loop.kind if loop.thread_binding is not None else ForKind.SERIAL
        visited: For = self.visit_default(loop)
        return visited.with_(kind=kind, annotations=Map())

    def visit_Block(self, block: Block) -> Block:
        visited: Block = self.visit_default(block)
        return visited.with_(annotations=Map())


def _flags_anew(var: GlobalVar, func: PrimFunc) -> list[CachedFlags]:
    """The facts of the blocks of a copy, in program order."""
    copy = renew_defs(func)
    state = ScheduleState(IRModule({var: copy}))
    blocks = [item for item in tree.all_references(copy.body) if isinstance(item, Block)]
    return [cached_flags(state, state.sref_of(block)) for block in blocks]


def _mask(given: str | int) -> int:
    if isinstance(given, str):
        if given not in DEBUG_MASKS:
            raise IRValueError(f"debug_mask: expected 'all', 'none' or a number, got {given!r}")
        return DEBUG_MASKS[given]
    if not isinstance(given, int) or given < -1:
        raise IRTypeError(f"debug_mask: expected 'all', 'none' or a number, got {given!r}")
    return 3 if given == -1 else int(given)
