"""``create_prim_func``: from a graph of tensor operations to a TensorIR function, as TVM 0.20.

Every computation becomes one nest of serial loops around one block; intermediate tensors are
allocated in the root block. An axis whose range depends on other axes is in an inner nest of its
own. Blocks have the names of operations, buffers those of tensors, and the block axis of an axis
``i`` is ``v_i``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.attrs import Attrs
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.node import Array, Map, Node
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.recursion import deep_recursion
from weft.te.index_dtype import normalize_index_dtype
from weft.te.nest import NestLevel, nest_levels
from weft.te.operation import ComputeOp, ExternOp, PlaceholderOp
from weft.te.tensor import Operation, Tensor
from weft.te.whole_extents import WholeExtents
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion, decl_buffer
from weft.tir.expr import IterType, ProducerLoad, Reduce, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)

LAYOUT_FREE_PLACEHOLDERS = "layout_free_placeholders"
LAYOUT_FREE_BUFFERS = "layout_free_buffers"
"""The attribute of a function that lists the parameters whose layout may be changed (weights)."""
LAYOUT_REWRITE_PREPROC = "meta_schedule.layout_rewrite_preproc"
"""The annotation of blocks that change the layout of weights. SplitLayoutRewritePreproc moves them
out of the function, so that they run once, when the model is built."""
STAGES = "te.stages"
"""The annotation of a block without axes, the body of a ``te.extern``, that is dissolved: the
blocks and buffers in it become those of the function, so that schedules can change them."""


@deep_recursion
def create_prim_func(
    ops: Tensor | Var | list[Tensor] | list[Var] | list[Tensor | Var] | tuple[Tensor | Var, ...],
    index_dtype_override: str | None = None,
) -> PrimFunc:
    """Make the TensorIR function that computes tensors.

    Args:
        ops: the function's parameters in order: input tensors, output tensors, scalar
            variables. Tensors between that are not listed become buffers inside.
        index_dtype_override: the type of every loop, index and extent, such as ``"int64"``; as
            written if left out.

    >>> from weft import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> len(te.create_prim_func([A, B]).params)
    2
    """
    arguments: list[Tensor | Var] = list(ops) if isinstance(ops, list | tuple) else [ops]
    for argument in arguments:
        if not isinstance(argument, Tensor | Var):
            raise wrong_type("create_prim_func: expected tensors and variables", argument)
    builder = _Builder([item for item in arguments if isinstance(item, Tensor)])
    order = ordered_operations([tensor.op for tensor in builder.arguments])
    builder.bind_extern_inputs(order)
    statements = [stage for operation in order for stage in builder.stage(operation)]
    func = builder.finish(arguments, statements)
    if index_dtype_override is not None:
        dtype = DataType(index_dtype_override)
        if not (dtype.is_int or dtype.is_uint):
            raise IRTypeError(
                f"create_prim_func: expected an integer type for indices, got {dtype}"
            )
        func = normalize_index_dtype(func, dtype)
    func = _collect_layout_free(func)
    func.provenance = "te"
    return func


def ordered_operations(outputs: Sequence[Operation]) -> list[Operation]:
    """Every operation that ``outputs`` need, producers first."""
    order: list[Operation] = []
    seen: set[int] = set()
    for output in outputs:
        pending: list[tuple[Operation, bool]] = [(output, False)]
        while pending:
            operation, inputs_done = pending.pop()
            if inputs_done:
                order.append(operation)
                continue
            if id(operation) in seen:
                continue
            seen.add(id(operation))
            pending.append((operation, True))
            pending += [(tensor.op, False) for tensor in reversed(operation.input_tensors)]
    return order


def _reduces(level: NestLevel) -> bool:
    return any(axis.iter_type is IterType.CommReduce for axis in level.iter_vars)


class _ToBuffers(Mutator):
    """Turns reads of tensors into reads of their buffers, and axes into block variables."""

    def __init__(
        self, buffers: dict[tuple[int, int], Buffer], variables: dict[int, PrimExpr]
    ) -> None:
        super().__init__()
        self.buffers = buffers
        self.variables = variables

    def visit_ProducerLoad(self, load: ProducerLoad) -> PrimExpr:
        return BufferLoad(self.buffers[load.producer.key], self.visit(load.indices), span=load.span)

    def visit_Var(self, variable: Var) -> PrimExpr:
        return self.variables.get(id(variable), variable)


class _Builder:
    """The state of one conversion: the buffers, allocations and names so far."""

    def __init__(self, arguments: list[Tensor]) -> None:
        self.arguments = arguments
        self.buffers: dict[tuple[int, int], Buffer] = {}
        self.allocations: list[Buffer] = []
        self.names: dict[str, int] = {}
        self.analyzer, self.extents = Analyzer(), WholeExtents()

    def fresh(self, name: str) -> str:
        """``name``, with ``_1``, ``_2`` ... appended if it is in use."""
        candidate = name
        while candidate in self.names:
            self.names[name] += 1
            candidate = f"{name}_{self.names[name]}"
        self.names[candidate] = 0
        return candidate

    def is_argument(self, tensor: Tensor) -> bool:
        return tensor.key in [argument.key for argument in self.arguments]

    def bind_extern_inputs(self, order: list[Operation]) -> None:
        """Let inputs that external bodies read through buffers of their own have those buffers."""
        for operation in order:
            if not isinstance(operation, ExternOp):
                continue
            for tensor, buffer in zip(operation.inputs, operation.input_placeholders, strict=True):
                if isinstance(tensor.op, PlaceholderOp):
                    self.buffers.setdefault(tensor.key, buffer)

    def stage(self, operation: Operation) -> list[Stmt]:
        """The statements of one operation."""
        if isinstance(operation, ComputeOp):
            return [self.compute(operation)]
        if isinstance(operation, ExternOp):
            return [self.extern(operation)]
        tensor = operation.output(0)
        if not self.is_argument(tensor):
            known = ", ".join([argument.name for argument in self.arguments])
            raise IRValueError(
                f"create_prim_func: the input {operation.name} is not among the arguments "
                f"({known}); add it to the list"
            )
        if tensor.key not in self.buffers:
            self.buffers[tensor.key] = decl_buffer(tensor.shape, tensor.dtype, tensor.name)
        self.extents.add([self.buffers[tensor.key]])
        return []

    def outputs(self, operation: Operation) -> list[Buffer]:
        """New buffers for the tensors of a computation; intermediate ones are allocated."""
        buffers = []
        for index in range(operation.num_outputs):
            tensor = operation.output(index)
            buffer = decl_buffer(tensor.shape, tensor.dtype, tensor.name)
            self.buffers[tensor.key] = buffer
            self.extents.add([buffer])
            buffers.append(buffer)
            if not self.is_argument(tensor):
                self.allocations.append(buffer)
        return buffers

    def compute(self, operation: ComputeOp) -> Stmt:
        first = operation.body[0]
        empty = [
            axis
            for axis in operation.reduce_axis
            if axis.dom is not None and op.is_const_int(axis.dom.extent, 0)
        ]
        axes = operation.axis if empty else [*operation.axis, *operation.reduce_axis]
        levels = nest_levels(axes, self.lower)
        buffers = self.outputs(operation)
        annotations = self.annotations(operation)
        leaf = levels[-1]
        if isinstance(first, Reduce):
            if empty:  # no iteration would run the init, so the identity is stored
                identity = self.init(operation, first, buffers, leaf)
                block = self.block(leaf, operation.name, identity, None, annotations)
            else:
                started = any(_reduces(level) for level in levels[:-1])
                block = self.reduction(operation, first, buffers, leaf, (annotations, started))
            body: Stmt = leaf.realize(block)
        else:
            stages: list[Stmt] = []
            for index, buffer in enumerate(buffers):
                level = leaf.with_new_variables() if index else leaf
                value = self.lower(operation.body[index], level)
                store = BufferStore(buffer, value, self.indices(operation, level))
                block = self.block(level, buffer.name, store, None, annotations)
                stages.append(level.realize(block))
            body = seq(*stages)
        return self.wrap(operation, levels, body, buffers, annotations)

    def wrap(
        self,
        operation: ComputeOp,
        levels: list[NestLevel],
        body: Stmt,
        buffers: list[Buffer],
        annotations: Attrs,
    ) -> Stmt:
        """Loops and outer blocks around the innermost block."""
        known = {buffer.data: buffer for buffer in self.buffers.values()}
        for depth in range(len(levels), 0, -1):
            level = levels[depth - 1]
            if depth < len(levels):
                init = None
                first = operation.body[0]
                started = any(_reduces(outer) for outer in levels[: depth - 1])
                if isinstance(first, Reduce) and _reduces(level) and not started:
                    init = self.init(operation, first, buffers, level)
                name = self.fresh(f"{operation.name}_l{depth}")
                block = Block(level.iter_vars, [], [], name, body, init, annotations=annotations)
                regions = get_block_access_region(block, known)
                body = level.realize(block.with_(reads=regions[0], writes=regions[1]))
            for loop_var, domain in reversed(level.loops):
                body = For(loop_var, domain.min, domain.extent, ForKind.SERIAL, body)
        return body

    def lower(self, expr: PrimExpr, level: NestLevel | None = None) -> PrimExpr:
        """The expression on buffers and block variables."""
        variables = {} if level is None else level.variables
        result: PrimExpr = _ToBuffers(self.buffers, variables).visit(expr)
        return self.extents.simplified(result, self.analyzer)

    def indices(self, operation: ComputeOp, level: NestLevel) -> list[PrimExpr]:
        return [level.variables[id(axis.var)] for axis in operation.axis]

    def block(
        self, level: NestLevel, name: str, body: Stmt, init: Stmt | None, annotations: Attrs
    ) -> Block:
        block = Block(
            level.iter_vars, [], [], self.fresh(name), body, init, annotations=annotations
        )
        known = {buffer.data: buffer for buffer in self.buffers.values()}
        reads, writes, _ = get_block_access_region(block, known)
        return block.with_(reads=reads, writes=writes)

    def init(
        self, operation: ComputeOp, reduce: Reduce, buffers: list[Buffer], level: NestLevel
    ) -> Stmt:
        """Stores of the identities (or of the given initial values)."""
        starts = reduce.init or reduce.combiner.identity_element
        target = self.indices(operation, level)
        return seq(
            *[
                BufferStore(buffer, self.lower(start, level), target)
                for buffer, start in zip(buffers, starts, strict=True)
            ]
        )

    def reduction(
        self,
        operation: ComputeOp,
        reduce: Reduce,
        buffers: list[Buffer],
        leaf: NestLevel,
        options: tuple[Attrs, bool],
    ) -> Block:
        """The innermost block; where an outer one reduces too, that one has the init."""
        annotations, started = options
        target = self.indices(operation, leaf)
        combiner = reduce.combiner
        mapping: dict[Node, Node] = {}
        for position, buffer in enumerate(buffers):
            mapping[combiner.lhs[position]] = BufferLoad(buffer, target)
            mapping[combiner.rhs[position]] = self.lower(reduce.source[position], leaf)
        combined = [substitute(result, mapping) for result in combiner.result]
        if len(buffers) == 1:
            body: Stmt = BufferStore(buffers[0], combined[0], target)
        else:
            temporary = [Var(f"v_{buffer.name}", buffer.dtype) for buffer in buffers]
            stores = zip(buffers, temporary, strict=True)
            body = seq(*[BufferStore(buffer, value, target) for buffer, value in stores])
            for variable, value in reversed(list(zip(temporary, combined, strict=True))):
                body = LetStmt(variable, value, body)
        condition = self.lower(reduce.condition, leaf)
        if not op.is_const_int(condition, 1):
            body = IfThenElse(condition, body)
        init = None if started else self.init(operation, reduce, buffers, leaf)
        return self.block(leaf, operation.name, body, init, annotations)

    def annotations(self, operation: ComputeOp) -> Attrs:
        """The operation's attributes, tensors in them replaced by their buffers."""
        return Attrs({key: self.annotation(value) for key, value in operation.attrs.items()})

    def annotation(self, value: object) -> object:
        if isinstance(value, list | tuple):
            return Array([self.annotation(item) for item in value])
        return self.buffers[value.key] if isinstance(value, Tensor) else value

    def extern(self, operation: ExternOp) -> Stmt:
        """One block without axes around the external body; none around ``STAGES``."""
        mapping: dict[Node, Node] = {}
        for tensor, buffer in zip(operation.inputs, operation.input_placeholders, strict=True):
            actual = self.buffers[tensor.key]
            if actual is not buffer:
                mapping[buffer], mapping[buffer.data] = actual, actual.data
        written = []
        for index, buffer in enumerate(operation.output_placeholders):
            tensor = operation.output(index)
            target = buffer
            if not self.is_argument(tensor):
                target = _without_offset(buffer)
                self.allocations.append(target)
                if target is not buffer:
                    mapping[buffer] = target
            self.buffers[tensor.key] = target
            written.append(target)
        body = substitute(operation.body, mapping)
        if isinstance(body, BlockRealize) and STAGES in body.block.annotations:
            self.allocations += body.block.alloc_buffers
            return _Named(self.fresh).visit(body.block.body)
        reads = [BufferRegion.full_region(self.buffers[tensor.key]) for tensor in operation.inputs]
        writes = [BufferRegion.full_region(buffer) for buffer in written]
        name = self.fresh(operation.name)
        block = Block([], reads, writes, name, body, annotations=operation.attrs)
        return BlockRealize([], IntImm(DataType("bool"), 1), block)

    def finish(self, arguments: list[Tensor | Var], statements: list[Stmt]) -> PrimFunc:
        """The function around the stages, its intermediate buffers in the root block."""
        params: list[Var] = []
        buffer_map: dict[Var, Buffer] = {}
        for argument in arguments:
            if isinstance(argument, Var):
                params.append(argument)
                continue
            handle = Var(f"var_{argument.name}", "handle")
            params.append(handle)
            buffer_map[handle] = self.buffers[argument.key]
        body = seq(*statements)
        is_root = isinstance(body, BlockRealize) and not body.block.iter_vars
        if self.allocations or (not is_root and contains_block(body)):
            root = Block([], [], [], "root", body, None, self.allocations)
            body = BlockRealize([], IntImm(DataType("bool"), 1), root)
        attrs = Attrs({"global_symbol": "main", "tir.noalias": True})
        return PrimFunc(params, body, None, Map(buffer_map), attrs)


class _Named(Mutator):
    """Gives blocks names that are not in use."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        super().__init__()
        self.fresh = fresh

    def visit_Block(self, block: Block) -> Block:
        return self.visit_default(block.with_(name_hint=self.fresh(block.name_hint)))


def contains_block(body: Stmt) -> bool:
    """Whether there is a block inside a statement."""
    return bool(collect(body, BlockRealize))


def _without_offset(buffer: Buffer) -> Buffer:
    """The buffer with offset 0 instead of a symbol, which an allocation would not define."""
    offset = buffer.elem_offset
    if offset is None or isinstance(offset, IntImm):
        return buffer
    return buffer.with_(elem_offset=IntImm(offset.dtype, 0))


class _LayoutFree(Mutator):
    """Turns the block annotation ``layout_free_placeholders`` into indices of parameters."""

    def __init__(self, parameters: dict[int, int]) -> None:
        super().__init__()
        self.parameters = parameters
        self.layout_free: set[int] = set()

    def visit_Block(self, block: Block) -> Block:
        block = self.visit_default(block)
        buffers = block.annotations.get(LAYOUT_FREE_PLACEHOLDERS)
        if buffers is None:
            return block
        rest = [buffer for buffer in buffers if id(buffer) not in self.parameters]
        self.layout_free |= {self.parameters[id(b)] for b in buffers if id(b) in self.parameters}
        kept = {k: v for k, v in block.annotations.items() if k != LAYOUT_FREE_PLACEHOLDERS}
        if rest:
            kept[LAYOUT_FREE_PLACEHOLDERS] = Array(rest)
        return block.with_(annotations=Attrs(kept))


def _collect_layout_free(func: PrimFunc) -> PrimFunc:
    positions = {
        id(func.buffer_map[param]): index
        for index, param in enumerate(func.params)
        if param in func.buffer_map
    }
    mover = _LayoutFree(positions)
    body = mover.visit(func.body)
    if not mover.layout_free:
        return func.with_(body=body)
    return func.with_(body=body).with_attr(LAYOUT_FREE_BUFFERS, Array(sorted(mover.layout_free)))
