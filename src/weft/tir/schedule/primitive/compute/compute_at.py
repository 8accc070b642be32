"""compute_at and reverse_compute_at move a block to its consumers, or to its producers.

The block leaves its loops and gets new ones below the target loop, over the instances that are
needed (or can run) at one iteration there (``block_domain``). Several iterations may compute the
same instance of a producer; a consumer must have all its inputs in the iteration, and a reduction
must have all its terms in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.arith import interval
from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.conjunction import conjunction, in_range
from weft.arith.int_set import eval_region
from weft.arith.interval import IntervalSet, as_int_set
from weft.arith.linear import detect_linear_equation
from weft.arith.region import estimate_region_lower_bound
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, mentions, substitute
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import checks, flags, region_cover, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.block import block_domain
from weft.tir.schedule.primitive.block.block_domain import AxisDomain
from weft.tir.schedule.primitive.cache.reused_memory import check_places_differ, check_values_stay
from weft.tir.schedule.primitive.compute.compute_inline import compute_inline
from weft.tir.schedule.primitive.compute.move_place import LAST, Move, RequiredBlocksError
from weft.tir.schedule.primitive.compute.reverse_compute_inline import reverse_compute_inline
from weft.tir.schedule.primitive.loop.loops import nest
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.region_cover import sharing_threads
from weft.tir.schedule.session import Session
from weft.tir.schedule.tree import INLINE_MARK, ROOT_MARK, loop_of
from weft.tir.stmt import BlockRealize, For, Stmt, seq, stmt_list


class DomainUnsolvedError(ScheduleFailure):
    """Which instances of the block belong to an iteration of the loop is not known."""


class PartialReductionError(ScheduleFailure):
    """The move would add some terms of a reduction twice, or not at all."""


class LostInstancesError(ScheduleFailure):
    """The move might execute other instances of the block than were executed before."""


@primitive("ComputeAt", "block loop")
def compute_at(
    self: Session,
    block: BlockRV | str,
    loop: LoopRV,
    preserve_unit_loops: bool = False,
    index: int = LAST,
) -> None:
    """Move a producer into a loop around its consumers; there it computes what one iteration needs.

    Args:
        block: the block that produces, or its name.
        loop: a loop around all its consumers; or what ``sample_compute_location`` returned.
        preserve_unit_loops: keep new loops of extent 1.
        index: where in the body of the loop: the number of statements before it, -1 for the last
            possible place, -2 for the first.

    Raises:
        RequiredBlocksError: a consumer is not inside the loop.
        NotInSameScopeError: the block and the loop are in different scopes.
        OutputBlockError: the block writes a result of the function.
        DomainUnsolvedError: which elements one iteration needs cannot be solved for.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.compute_at("B", sch.get_loops("C")[0])
    >>> [sch.get(loop).extent.value for loop in sch.get_loops("B")]
    [8, 32]
    >>> sch.get_child_blocks(sch.get_loops("C")[0])
    [BlockRV(B), BlockRV(C)]
    """
    place = self._sref(loop)
    if place is INLINE_MARK:
        compute_inline(self, block)
    elif place is not ROOT_MARK:
        _Move(self.state, self._sref(block), place, producing=True).run(preserve_unit_loops, index)


@primitive("ReverseComputeAt", "block loop")
def reverse_compute_at(
    self: Session,
    block: BlockRV | str,
    loop: LoopRV,
    preserve_unit_loops: bool = False,
    index: int = LAST,
) -> None:
    """Move a consumer into a loop around its producers; there it uses what one iteration computed.

    Args:
        block: the block that consumes, or its name.
        loop: a loop around all its producers; or what ``sample_compute_location`` returned.
        preserve_unit_loops: keep new loops of extent 1.
        index: where in the body of the loop: the number of statements before it, -1 for the last
            possible place, -2 for the first.

    Raises:
        RequiredBlocksError: a producer is not inside the loop.
        NotInSameScopeError: the block and the loop are in different scopes.
        PartialReductionError: a reduction would add a term twice, or not at all.
        LostInstancesError: the block reads elements that no iteration of the loop computes.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.reverse_compute_at("C", sch.get_loops("B")[0])
    >>> sch.get_child_blocks(sch.get_loops("B")[0])
    [BlockRV(B), BlockRV(C)]
    """
    place = self._sref(loop)
    if place is INLINE_MARK:
        reverse_compute_inline(self, block)
    elif place is not ROOT_MARK:
        _Move(self.state, self._sref(block), place, producing=False).run(preserve_unit_loops, index)


class _Move(Move):
    """The move itself: domains, loops, and what must hold."""

    def run(self, keep_units: bool, index: int) -> None:
        """Check, then move."""
        checks.check_complete_or_reduction_block(self.state, self.sref, self.scope)
        checks.scope_root(self.state, self.sref, stage_pipeline=True)
        self.check_places()
        if self.producing:
            checks.check_not_output_block(self.state, self.sref, self.scope)
        self.meeting = tree.lowest_common_ancestor([self.sref, self.loop])
        own = tree.loops_above(self.sref, stop=self.meeting)
        check_places_differ(self.state, self.sref)
        check_values_stay(self.state, self.sref, self.meeting)
        surgery.check_self_contained(self.state, self.sref, own)
        position = self.insertion_point(index)
        box = self.executed()
        self.analyzer = tree.analyzer_above(self.loop)
        surgery.know_shapes(self.state, self.sref, self.analyzer)
        with self.analyzer.constraint_scope(self.known_of_required()):
            domains = self.domains(box)
            nest, realize = self.regenerated(domains, keep_units)
        self.check_reduction(domains, box, realize, nest)
        target = loop_of(self.loop)
        statements = stmt_list(target.body)
        statements.insert(position, nest)
        self.put(target.with_(body=seq(*statements)))
        if not self.producing:
            self.check_inputs()

    def put(self, target: For) -> None:
        """Replace the loop, and take the block from where it was."""
        top = self.meeting
        changes: dict[int, Stmt | None] = {id(self.block): None, id(self.loop.stmt): target}
        path = [*surgery.path_up(self.sref, top), *surgery.path_up(self.loop, top)]
        left = surgery.edited(tree.stmt_of(top), changes, path)
        self.state.replace(top, left)

    # ---- which instances

    def executed(self) -> list[Range]:
        """The instances that are executed now, as a range of each axis."""
        loops = [loop_of(loop) for loop in tree.loops_above(self.sref)]
        if self.reduces and not surgery.adds_each_term_once(self.realize, loops):
            raise PartialReductionError(
                self.state,
                f"{name_of(self.sref)} may add terms of its sums several times",
                self.sref,
            )
        box = surgery.executed_box(self.state, self.sref)
        analyzer = surgery.outer_analyzer(self.state, self.sref)
        if box is not None:
            self.check_starts(box, analyzer)
            return box
        declared = [surgery.domain(axis) for axis in self.block.iter_vars]
        if (
            self.producing
            and surgery.is_implied_by_domains(self.realize, analyzer)
            and self.sums_whole(analyzer)
        ):
            return declared  # more instances do no harm: nothing else reads what they write
        values = ", ".join([str(value) for value in self.realize.iter_values])
        condition = self.realize.predicate
        where = "" if op.is_const_int(condition, 1) else f" where {condition}"
        raise LostInstancesError(
            self.state,
            f"which instances of {name_of(self.sref)} are executed is not known; its axes are "
            f"{values}{where}",
            self.sref,
        )

    def check_starts(self, box: Sequence[Range], analyzer: Analyzer) -> None:
        """A reduction executes its first instance, which runs the init."""
        for axis, part in zip(self.block.iter_vars, box, strict=True):
            start = surgery.domain(axis).min
            if axis.iter_type == IterVar.CommReduce and part.min is not start:
                if not analyzer.can_prove_equal(part.min, start):
                    raise PartialReductionError(
                        self.state,
                        f"axis {axis.var.name} of {name_of(self.sref)} starts at {part.min}, its "
                        f"domain at {start}: the init does not run",
                        self.sref,
                    )

    def sums_whole(self, analyzer: Analyzer) -> bool:
        """Whether the axes of reduction run over all of their domains."""
        pairs = [
            (axis, value)
            for axis, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True)
            if axis.iter_type == IterVar.CommReduce
        ]
        points = [Range.from_min_extent(value, IntImm(value.dtype, 1)) for _, value in pairs]
        loops = tree.domains(tree.loops_above(self.sref))
        parts = estimate_region_lower_bound(points, loops, True, analyzer)
        return parts is not None and all(
            _covers(part, surgery.domain(axis), analyzer)
            for part, (axis, _) in zip(parts, pairs, strict=True)
        )

    def domains(self, box: Sequence[Range]) -> list[AxisDomain]:
        """The domain of each axis at one iteration of the loop."""
        regions = self.block.writes if self.producing else self.block.reads
        provided: dict[Buffer, list[Sequence[IntervalSet]]] = {}
        for region in regions:
            parts = [as_int_set(part, self.analyzer) for part in region.region]
            provided.setdefault(region.buffer, []).append(parts)
        required = self.required_regions(provided)
        mine = {buffer: self.union(provided[buffer]) for buffer in required}
        self.check_independent(mine)
        if not self.producing:
            self.check_all_read(mine, box)
        need = {buffer: self.union(parts) for buffer, parts in required.items()}
        try:
            return block_domain.solve(self.block.iter_vars, box, mine, need, self.analyzer)
        except block_domain.Unsolved as form:
            raise DomainUnsolvedError(
                self.state,
                f"from index {form} of {name_of(self.sref)} it is not known which of its instances "
                f"belong to an iteration of {name_of(self.loop)}",
                (self.loop, self.sref),
            ) from None

    def required_regions(
        self, provided: Iterable[Buffer]
    ) -> dict[Buffer, list[Sequence[IntervalSet]]]:
        """For each buffer, the regions that the required blocks use at one iteration."""
        by_data = {buffer.data: buffer for buffer in provided}
        required: dict[Buffer, list[Sequence[IntervalSet]]] = {}
        for block in self.required:
            sref = self.state.sref_of(block)
            bindings = tree.bindings_of(tree.realize_of(self.state, sref))
            below = tree.domains(tree.loops_above(sref, stop=self.loop))
            for region in block.reads if self.producing else block.writes:
                buffer = by_data.get(region.buffer.data)
                if buffer is None:
                    continue
                if buffer is not region.buffer:
                    raise DomainUnsolvedError(
                        self.state,
                        f"{buffer.name} and {region.buffer.name} are one memory in two shapes",
                        (self.sref, sref),
                    )
                required.setdefault(buffer, []).append(self.relaxed(region, bindings, below))
        return required

    def known_of_required(self) -> PrimExpr:
        """That axes of the required blocks are in their domains at each iteration of the loop.

        Of a block with ``T.axis.spatial(n * 4, fused // (h * 5) * 4 + i)``, where ``i`` is a loop
        of 4 below, it is that ``fused // (h * 5) * 4`` and ``fused // (h * 5) * 4 + 3`` are. That
        does not follow from the range of ``fused`` as long as ``h`` might be 0. A condition of the
        block says when it runs: nothing is known of an axis that shares a variable with it.
        """
        known: list[PrimExpr] = []
        for block in self.required:
            sref = self.state.sref_of(block)
            realize = tree.realize_of(self.state, sref)
            guarded = set(collect(realize.predicate, Var))
            below = [loop_of(loop) for loop in tree.loops_above(sref, stop=self.loop)]
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
                if isinstance(value, IntImm | Var) or not guarded.isdisjoint(collect(value, Var)):
                    continue
                dom = surgery.domain(axis)
                known += [in_range(corner, dom) for corner in _corners(value, below)]
        return conjunction(known)

    def relaxed(
        self, region: BufferRegion, bindings: Mapping[Var, PrimExpr], below: Mapping[Var, Range]
    ) -> Sequence[IntervalSet]:
        """The region over all iterations of the loops below the target, and of sharing threads."""
        domains = dict(below)
        if self.producing:
            domains.update(tree.domains(sharing_threads(region.buffer.scope(), self.loop)))
        return eval_region(substitute(region.region, bindings), domains, self.analyzer)

    def union(self, regions: Sequence[Sequence[IntervalSet]]) -> list[IntervalSet]:
        """One region around several."""
        if len(regions) == 1:
            return list(regions[0])
        return [interval.union(parts, self.analyzer) for parts in zip(*regions, strict=True)]

    def check_independent(self, provided: Mapping[Buffer, Sequence[IntervalSet]]) -> None:
        """If several buffers determine which instances are needed, each determines all axes.

        Else the instances needed for one buffer would be combined with those for another.
        """
        if len(provided) < 2:
            return
        for buffer, region in provided.items():
            ends = [end for part in region for end in (part.min_value, part.max_value)]
            used = set(collect(ends, Var))
            for axis in self.block.iter_vars:
                free = axis.iter_type == IterVar.DataPar and axis.var not in used
                if free and not op.is_const_int(surgery.domain(axis).extent, 1):
                    raise DomainUnsolvedError(
                        self.state,
                        f"axis {axis.var.name} of {name_of(self.sref)} does not index "
                        f"{buffer.name}, but one of {', '.join([b.name for b in provided])}",
                        (self.loop, self.sref),
                    )

    def check_all_read(
        self, provided: Mapping[Buffer, Sequence[IntervalSet]], box: Sequence[Range]
    ) -> None:
        """Each instance of a consumer reads an element inside of the buffer, so one written."""
        analyzer = surgery.outer_analyzer(self.state, self.sref)
        for axis, limits in zip(self.block.iter_vars, box, strict=True):
            analyzer.bind(axis.var, limits)
        for buffer, region in provided.items():
            for extent, part in zip(buffer.shape, region, strict=True):
                conditions = (
                    op.greater_equal(part.min_value, 0),
                    op.less(part.max_value, extent),
                    op.less_equal(part.min_value, part.max_value),
                )
                if not all(analyzer.can_prove(c, ProofStrength.SYMBOLIC_BOUND) for c in conditions):
                    raise LostInstancesError(
                        self.state,
                        f"{name_of(self.sref)} may read {buffer.name} at {part.min_value}, outside "
                        f"of {extent}: no iteration of {name_of(self.loop)} would be its own",
                        (self.loop, self.sref),
                    )

    # ---- the new loops

    def regenerated(
        self, domains: Sequence[AxisDomain], keep_units: bool
    ) -> tuple[Stmt, BlockRealize]:
        """The block below new loops over the domains, and its realization."""
        analyzer = self.analyzer
        variables: list[Var] = []
        extents: list[PrimExpr] = []
        values: list[PrimExpr] = []
        predicate: PrimExpr = op.const(True, "bool")
        for axis, part in zip(self.block.iter_vars, domains, strict=True):
            dom = part.dom.cover_range(surgery.domain(axis), analyzer)
            extent = analyzer.simplify(dom.extent)
            value = analyzer.simplify(dom.min)
            if keep_units or not op.is_const_int(extent, 1):
                bits = max(dom.min.dtype.bits, dom.extent.dtype.bits)
                var = Var(f"ax{len(variables)}", DataType(f"int{bits}"))
                analyzer.bind(var, Range.from_min_extent(IntImm(var.dtype, 0), extent))
                variables.append(var)
                extents.append(extent)
                value = value + var
            values.append(value)
            predicate = _limited(predicate, value, part.bound, analyzer)
        realize = self.realize.with_(iter_values=values, predicate=analyzer.simplify(predicate))
        return (nest(variables, extents, realize) if variables else realize), realize

    # ---- what must hold

    def check_reduction(
        self, domains: Sequence[AxisDomain], box: Sequence[Range], realize: BlockRealize, nest: Stmt
    ) -> None:
        """Wherever a reduction is computed, all its terms are, from the init on.

        A consumer that is moved runs each instance once.
        """
        shared = isinstance(self.meeting.stmt, For)
        if self.producing:
            if self.reduces and shared:
                self.check_reduced_inside()
            return
        if not shared and (self.block.init is None or self.is_whole(domains, box)):
            return
        loops = [loop_of(s) for s in [*tree.loops_above(self.loop), self.loop]]
        inner = nest
        while isinstance(inner, For):
            loops.append(inner)
            inner = inner.body
        once = surgery.runs_once_per_instance(realize, loops)
        if not once or (self.reduces and not flags.affine_binding_of(realize, loops)):
            kind = PartialReductionError if self.reduces else LostInstancesError
            raise kind(
                self.state,
                f"below {name_of(self.loop)}, {name_of(self.sref)} might run an instance several "
                "times, with values that are not complete",
                (self.loop, self.sref),
            )

    def check_reduced_inside(self) -> None:
        """No loop around both the block and the loop runs over terms of the sum."""
        outer = {loop_of(loop).loop_var for loop in tree.loops_above(self.loop)}
        outer &= {loop_of(loop).loop_var for loop in tree.loops_above(self.sref)}
        for axis, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True):
            if axis.iter_type == IterVar.CommReduce and not outer.isdisjoint(collect(value, Var)):
                raise PartialReductionError(
                    self.state,
                    f"axis {axis.var.name} of {name_of(self.sref)} is {value}: its terms are added "
                    f"at several iterations of {name_of(self.meeting)}",
                    (self.meeting, self.sref),
                )

    def is_whole(self, domains: Sequence[AxisDomain], box: Sequence[Range]) -> bool:
        """Whether all terms of each sum are in one iteration of the loop."""
        return all(
            part.bound.is_nothing() and _covers(part.dom, limits, self.analyzer)
            for axis, part, limits in zip(self.block.iter_vars, domains, box, strict=True)
            if axis.iter_type == IterVar.CommReduce
        )

    def check_inputs(self) -> None:
        """What a moved consumer reads has been computed in the same iteration."""
        if not region_cover.is_region_cover(self.state, self.sref, self.scope):
            raise RequiredBlocksError(
                self.state,
                f"{name_of(self.sref)} reads more than is written at one iteration of "
                f"{name_of(self.loop)}",
                self.loop,
                "choose a loop further out",
            )


def _corners(value: PrimExpr, loops: Sequence[For]) -> list[PrimExpr]:
    """The smallest and the largest value over loops, if it is linear in them and they all run."""
    used = [loop for loop in loops if mentions(value, loop.loop_var)]
    if not used:
        return [value]
    steps = detect_linear_equation(value, [loop.loop_var for loop in used])[:-1]
    runs = [isinstance(loop.extent, IntImm) and loop.extent.value > 0 for loop in used]
    rises = [isinstance(step, IntImm) and step.value >= 0 for step in steps]
    if not steps or not all(runs + rises):
        return []
    lows = {loop.loop_var: loop.min for loop in used}
    highs = {loop.loop_var: loop.min + (loop.extent - 1) for loop in used}
    return [substitute(value, ends) for ends in (lows, highs)]


def _covers(part: IntervalSet, whole: Range, analyzer: Analyzer) -> bool:
    last = whole.min + whole.extent - 1
    return analyzer.can_prove_equal(part.min_value, whole.min) and analyzer.can_prove_equal(
        part.max_value, last
    )


def _limited(
    predicate: PrimExpr, value: PrimExpr, bound: IntervalSet, analyzer: Analyzer
) -> PrimExpr:
    """``predicate`` and that the value is inside the bound, as far as that is not known."""
    if bound.is_nothing():
        return predicate
    limits = []
    if bound.min_value is not interval.neg_inf():
        limits.append(op.greater_equal(value, bound.min_value))
    if bound.max_value is not interval.pos_inf():
        limits.append(op.less(value, bound.max_value + 1))
    for limit in limits:
        if not analyzer.can_prove(limit, ProofStrength.SYMBOLIC_BOUND):
            predicate = op.logical_and(predicate, limit)
    return predicate
