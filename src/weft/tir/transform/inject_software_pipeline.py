"""InjectSoftwarePipeline: loops with ``software_pipeline_stage`` run steps of several iterations.

A schedule annotates a loop whose body is a sequence, or a block around one: a stage and an order
for each statement. Where loading is stage 0 and computing stage 1, iteration ``i`` computes while
``i + 1`` loads:

Before: ``for i in range(16): B[0] = A[i] * 2; C[i] = B[0] + 1``, stages 0 and 1, orders 0 and 1.
After: ``B[0, 0] = A[0] * 2``, then ``for i in range(15): B[(i + 1) % 2, 0] = A[i + 1] * 2;
C[i] = B[i % 2, 0] + 1``, then ``C[15] = B[1, 0] + 1``.

A pipeline that would compute something else than its loop is refused, as far as the regions of its
blocks tell. Stages in ``software_pipeline_async_stages`` run as the others do. Blocks must be
opaque (after ConvertBlocksToOpaque), without match_buffer. TVM's pass does the same, but compares
fewer pairs of statements.
"""

from __future__ import annotations

from weft.ir.attrs import Attrs
from weft.ir.functor import collect
from weft.support.errors import IRValueError
from weft.tir.analysis.software_pipeline import ASYNC, ORDER, STAGE
from weft.tir.buffer import Buffer
from weft.tir.constant import is_const_int
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, For, ForKind, SeqStmt, Stmt, stmt_list
from weft.tir.transform.convert_ssa import convert_ssa
from weft.tir.transform.pipelined_loop import as_block, pipelined
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass
from weft.tir.transform.software_pipeline import Pipeline, Step, numbers


class _Injector(StmtMutator):
    def __init__(self, func: PrimFunc) -> None:
        self.buffers = {buffer.data: buffer for buffer in func.buffer_map.values()}
        self.doubled: set[Buffer] = set()

    def visit_Block(self, block: Block) -> Block:
        outer = dict(self.buffers)
        self.buffers.update({buffer.data: buffer for buffer in block.alloc_buffers})
        index = block.annotations.get("double_buffer_scope")
        if index is not None:
            if not 0 <= int(index) < len(block.writes):
                raise IRValueError(
                    f"InjectSoftwarePipeline: double_buffer_scope: expected one of the "
                    f"{len(block.writes)} regions that the block writes, got {index}"
                )
            self.doubled.add(block.writes[int(index)].buffer)
        result = self.visit_default(block)
        self.buffers = outer
        return result

    def visit_For(self, loop: For) -> Stmt:
        loop = self.visit_default(loop)
        given = [key for key in (STAGE, ORDER) if key in loop.annotations]
        if len(given) == 2:
            pipeline = self.pipeline(loop)
            pipeline.check()
            return pipelined(pipeline)
        if given:
            raise IRValueError(
                f"InjectSoftwarePipeline: the loop over {loop.loop_var.name}: expected both "
                f"{STAGE} and {ORDER}, got {given[0]} alone"
            )
        return loop

    def pipeline(self, loop: For) -> Pipeline:
        if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise IRValueError(
                f"InjectSoftwarePipeline: the loop over {loop.loop_var.name}: expected one that "
                f"runs in order, got {loop.kind.name.lower()}"
            )
        body, allocated = loop.body, list[Buffer]()
        if isinstance(body, BlockRealize):
            allocated += _opaque(body).alloc_buffers
            body = body.block.body
        if not isinstance(body, SeqStmt):
            raise IRValueError(
                f"InjectSoftwarePipeline: the loop over {loop.loop_var.name}: expected a sequence "
                f"of statements as its body, got {type(body).__name__}"
            )
        parts: list[Stmt] = []
        for part in body.seq:
            group = _group(part)
            if group is None:
                parts.append(part)
            else:
                allocated += group.alloc_buffers
                parts += stmt_list(group.body)
        buffers = {**self.buffers, **{buffer.data: buffer for buffer in allocated}}
        blocks = [as_block(part, buffers) for part in parts]
        kept = {k: v for k, v in loop.annotations.items() if k not in (STAGE, ORDER, ASYNC)}
        stages, orders = (numbers(loop, key, len(parts)) for key in (STAGE, ORDER))
        if sorted(orders) != list(range(len(parts))):
            raise IRValueError(
                f"InjectSoftwarePipeline: {ORDER} of the loop over {loop.loop_var.name}: expected "
                f"each number below {len(parts)} once, got {orders}"
            )
        steps = zip(blocks, range(len(blocks)), stages, orders, strict=True)
        return Pipeline(
            loop.with_(annotations=Attrs(kept)),
            tuple([Step(*step) for step in steps]),
            tuple(allocated),
            buffers,
            frozenset(self.doubled),
        )


def _opaque(realize: BlockRealize) -> Block:
    block = realize.block
    if block.iter_vars or block.match_buffers or not is_const_int(realize.predicate, 1):
        raise IRValueError(
            f"InjectSoftwarePipeline: block {block.name_hint!r} of a pipeline: expected one "
            "without axes, match_buffer and predicate; run ConvertBlocksToOpaque and "
            "LowerMatchBuffer first"
        )
    return block


def _group(part: Stmt) -> Block | None:
    """The block around a sequence, whose statements are steps of the pipeline."""
    if not isinstance(part, BlockRealize) or not is_const_int(part.predicate, 1):
        return None
    block = _opaque(part)
    return block if isinstance(block.body, SeqStmt) else None


def inject_software_pipeline(func: PrimFunc) -> PrimFunc:
    """The function with its annotated loops pipelined."""
    if not any(
        key in loop.annotations for loop in collect(func.body, For) for key in (STAGE, ORDER)
    ):
        return func
    return convert_ssa(func.with_(body=_Injector(func).visit(func.body)))


InjectSoftwarePipeline = define_pass("InjectSoftwarePipeline", inject_software_pipeline)
