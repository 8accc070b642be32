"""Recurrent layers over a sequence, as loops: the LSTM, the GRU and the plain recurrent network.

Data is (steps, batch, features), weights (gates * hidden, features) and (gates * hidden, hidden).
The products with the data of all steps are one matrix product before the loop; inside, a step reads
the state of the step before. The weights of the state are in blocks of gates: the inner loop runs
over the gates of a block, in vectors, and adds one element of the state times a row of weights, so
that the sums of a block stay in registers. Of several sequences, four take each step together: a
row of weights is then loaded once for four sums of a part of the block. The blocks of large layers
run in parallel; each core then has its part of the weights in its own cache at every step. Sums of
16-bit floats are float32.
Sources: Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000; Cho et al. 2014
(the reset gate applied after the product, as in cuDNN and PyTorch).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.operation import as_list, extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder, WithScope
from weft.tir.stmt import Stmt
from weft.topi.extents import const_int, is_const
from weft.topi.moments import wide
from weft.topi.nn.recurrent_blocks import block_width, in_blocks, part_width
from weft.topi.nn.recurrent_bytes import (
    ByteState,
    allocate_bytes,
    emit_bytes,
    emit_sums,
    in_byte_blocks,
)
from weft.topi.nn.recurrent_data import both_biases, check_shapes, of_data
from weft.topi.nn.state_quantization import emit_quantized
from weft.topi.simplify import simplified

_TOGETHER: Final = 4
"""How many sequences take a step together, at most."""
_LARGE: Final = 1 << 17
"""The products of a step from which on it is worth the time of starting threads."""

Part = Callable[[int], PrimExpr]
"""Number of a gate -> the term of the data, or of the state, in the gate's sum."""
Others = tuple["list[Row]", PrimExpr, list[BufferVar]]
Cell = Callable[[Part, Part, PrimExpr, Others], PrimExpr]
"""(data part, state part, hidden, (other states, index, extras)) -> the new hidden value."""


@dataclass(frozen=True)
class Row:
    """The elements of a buffer from a place on: what one of several sequences has in it."""

    buffer: BufferVar | Row
    begin: Extent

    def __getitem__(self, index: PrimExpr) -> PrimExpr:
        """An element."""
        return self.buffer[self.begin + index]

    def __setitem__(self, index: PrimExpr, value: PrimExpr) -> None:
        """Store an element."""
        self.buffer[self.begin + index] = value


Reset = Callable[[Part, Part], PrimExpr]
"""(data part, state part) -> the factor on the hidden state for the last gate."""


def _each(ib: IRBuilder, extent: Extent, name: str) -> WithScope:
    """A loop from 0 to ``extent``, vectorized if that is known."""
    return ib.for_range(0, extent, name, kind="vectorized" if is_const(extent) else "serial")


@dataclass
class _Step:
    """Emits one step of ``rows`` sequences that take it together; holds the buffers that it uses.

    Each row has its part of the running states and of the scratch, one after the other.
    """

    ib: IRBuilder
    sizes: tuple[PrimExpr, int, DataType]
    operands: tuple[BufferVar, BufferVar, BufferVar]
    running: Sequence[BufferVar | Row]
    scratch: tuple[BufferVar, BufferVar | Row]
    """Where the sums of the gates go, and the state that is multiplied if it is not the running."""
    width: Extent
    extras: list[BufferVar]
    rows: int
    factors: BufferVar | None = None
    """What the sums of each gate are multiplied with: the scales of small weights."""
    rounded: ByteState | None = None
    """The states as bytes, where the weights are packed to be multiplied with those."""

    def add_up(self, low: Extent, high: Extent, hidden: BufferVar | Row) -> None:
        """Add the terms of the state to some gates, those of a block after those of another."""
        size, gates, _ = self.sizes
        is_large = is_const(size) and gates * const_int(size, "hidden") ** 2 >= _LARGE
        kind = "parallel" if is_large else "serial"
        first, last = (simplified(op.floordiv(end, self.width)) for end in (low, high))
        part = part_width(self.width, self.rows)
        with self.ib.for_range(first, last, "block", kind=kind) as block:
            if part is self.width:
                self.add_part(block, op.const(0, "int64"), part, hidden)
                return
            parts = simplified(op.floordiv(self.width, part))
            with self.ib.for_range(0, parts, "part") as at:
                self.add_part(block, at * part, part, hidden)

    def add_part(
        self, block: PrimExpr, begin: PrimExpr, part: Extent, hidden: BufferVar | Row
    ) -> None:
        """Add up ``part`` gates of a block from ``begin`` on, for all rows."""
        if self.rounded is not None:
            self.add_bytes(block, begin, part, self.rounded)
            return
        (size, gates, kind), ib, sums = self.sizes, self.ib, self.scratch[0]
        _, weights, biases = self.operands
        rows, gate = range(self.rows), block * self.width + begin
        held = ib.allocate(kind, [simplified(part * self.rows)], "held", scope="local")
        factors = self.factors
        for row in rows:
            with _each(ib, part, "g") as g:
                bias = op.cast(kind, biases[gate + g])
                held[row * part + g] = bias if factors is None else op.const(0, kind)
        with ib.for_range(0, size, "k") as k:
            for row in rows:
                with _each(ib, part, "g") as g:
                    weight = op.cast(kind, weights[block, k, begin + g])
                    held[row * part + g] = held[row * part + g] + weight * hidden[row * size + k]
        for row in rows:
            with _each(ib, part, "g") as g:
                total: PrimExpr = held[row * part + g]
                if factors is not None:
                    total = total * factors[gate + g] + op.cast(kind, biases[gate + g])
                sums[row * (size * gates) + gate + g] = total

    def add_bytes(self, block: PrimExpr, begin: PrimExpr, part: Extent, rounded: ByteState) -> None:
        """The same of the states as bytes."""
        (size, gates, kind), factors = self.sizes, self.factors
        _, weights, biases = self.operands
        gate = block * self.width + begin
        held = emit_sums(self.ib, weights, rounded, (block, begin), part, self.rows)
        for row in range(self.rows):
            with _each(self.ib, part, "g") as g:
                total = op.cast(kind, held[row * part + g]) * rounded.rounding.scale
                if factors is not None:
                    total = total * factors[gate + g]
                total = total + op.cast(kind, biases[gate + g])
                self.scratch[0][row * (size * gates) + gate + g] = total

    def parts(self, at: PrimExpr, b: PrimExpr, row: int, j: PrimExpr) -> tuple[Part, Part]:
        """The terms of the data and of the state for the gates of element j."""
        (size, gates, _), mine, sums = self.sizes, self.operands[0], self.scratch[0]
        own = Row(sums, row * (size * gates))
        return lambda gate: mine[at, b + row, j + size * gate], lambda gate: own[j + size * gate]

    def take(
        self, at: PrimExpr, b: PrimExpr, how: tuple[Cell, Reset | None], out: BufferVar
    ) -> None:
        """Emit the step: the gates, then the new states and the outputs."""
        (size, gates, _), (cell, reset), hidden = self.sizes, how, self.running[0]
        scaled, ib = self.scratch[1], self.ib
        plain = gates if reset is None else gates - 1
        self.add_up(0, plain * size, hidden if reset is not None else scaled)
        if reset is not None:
            for row in range(self.rows):
                with _each(ib, size, "j") as j:
                    factor = reset(*self.parts(at, b, row, j))
                    scaled[row * size + j] = factor * hidden[row * size + j]
            self.add_up(plain * size, gates * size, scaled)
        for row in range(self.rows):
            own = Row(hidden, row * size)
            others = [Row(state, row * size) for state in self.running[1:]]
            with _each(ib, size, "j") as j:
                parts = self.parts(at, b, row, j)
                own[j] = cell(*parts, own[j], (others, j, self.extras))
                out[at, b + row, j] = op.cast(out.dtype, own[j])


def _clear(
    ib: IRBuilder,
    out: BufferVar,
    where: tuple[PrimExpr, PrimExpr],
    extents: tuple[PrimExpr, PrimExpr],
) -> None:
    """Store zeros in the outputs after the end of a sequence."""
    b, end = where
    steps, size = extents
    with (
        ib.for_range(0, steps, "t") as t,
        ib.if_scope(op.greater_equal(t, end)),
        ib.for_range(0, size, "j") as j,
    ):
        out[t, b, j] = op.const(0, out.dtype)


@dataclass
class _Layer:
    """Emits all steps of all sequences; holds the buffers of the layer and its cell."""

    ib: IRBuilder
    sizes: tuple[PrimExpr, int, DataType]
    operands: tuple[BufferVar, BufferVar, BufferVar]
    width: Extent
    order: tuple[PrimExpr, bool]
    """How many steps there are, and whether they are taken from the last to the first."""
    how: tuple[Cell, Reset | None]
    first: list[BufferVar]
    extras: list[BufferVar]
    results: list[BufferVar]
    lengths: BufferVar | None
    factors: BufferVar | None

    def all_sequences(
        self, batch: Extent, most: int, emit: Callable[[int, PrimExpr], None]
    ) -> None:
        """``most`` sequences at a time, then what is left, one after the other."""
        groups = simplified(op.floordiv(batch, most)) if most > 1 else 0
        if most > 1:
            with self.ib.for_range(0, groups, "group") as group:
                emit(most, group * most)
        if most == 1 or not is_const(batch) or const_int(batch, "batch") % most:
            with self.ib.for_range(simplified(groups * most), batch, "b") as b:
                emit(1, b)

    def in_step(self, batch: Extent, most: int) -> None:
        """All sequences take each step together, since one range quantizes the states of all."""
        (size, gates, kind), ib, (out, *last) = self.sizes, self.ib, self.results
        steps, is_backwards = self.order
        running = [ib.allocate(kind, [simplified(batch * size)], "running") for _ in last]
        is_bytes = self.operands[1].dtype == "int32"
        numbers = ib.allocate(kind, [simplified(batch * size)], "rounded") if not is_bytes else None
        rows_of_bytes = allocate_bytes(ib, (batch, size)) if is_bytes else None
        self.begin_or_end(batch, [*zip(running, self.first, strict=True)], is_begin=True)
        with ib.for_range(0, steps, "t") as t:
            rounded = None
            if numbers is not None:
                emit_quantized(ib, running[0], numbers, (batch, size))
            if rows_of_bytes is not None:
                rounded = emit_bytes(ib, running[0], rows_of_bytes, (batch, size))

            def take(rows: int, b: PrimExpr) -> None:
                states = [Row(state, b * size) for state in running]
                sums = ib.allocate(kind, [rows * gates * size], "sums")
                scratch = (sums, states[0] if numbers is None else Row(numbers, b * size))
                step = _Step(
                    ib, self.sizes, self.operands, states, scratch, self.width, self.extras, rows,
                    self.factors, None if rounded is None else rounded.behind(b),
                )  # fmt: skip
                if self.lengths is None:
                    step.take(steps - 1 - t if is_backwards else t, b, self.how, out)
                    return
                end = ib.let("end", op.cast("int64", self.lengths[b]))
                with ib.if_scope(op.less(t, end)):
                    step.take(end - 1 - t if is_backwards else t, b, self.how, out)
                with ib.else_scope(), ib.for_range(0, size, "j") as j:
                    out[t, b, j] = op.const(0, out.dtype)

            self.all_sequences(batch, most, take)
        self.begin_or_end(batch, [*zip(running, last, strict=True)], is_begin=False)

    def begin_or_end(
        self, batch: Extent, pairs: Sequence[tuple[BufferVar, BufferVar]], is_begin: bool
    ) -> None:
        """Copy the states of all sequences from the first ones, or to the last ones."""
        size, _, kind = self.sizes
        with self.ib.for_range(0, batch, "b") as b, self.ib.for_range(0, size, "j") as j:
            for state, given in pairs:
                if is_begin:
                    state[b * size + j] = op.cast(kind, given[b, j])
                else:
                    given[b, j] = op.cast(given.dtype, state[b * size + j])

    def sequences(self, rows: int, b: PrimExpr) -> None:
        """All steps of ``rows`` sequences from the one of number ``b`` on."""
        (size, gates, kind), ib, (out, *last) = self.sizes, self.ib, self.results
        running = [ib.allocate(kind, [rows * size], "running") for _ in last]
        sums = ib.allocate(kind, [rows * gates * size], "sums")
        is_scaled = self.how[1] is not None
        scaled = ib.allocate(kind, [rows * size], "scaled") if is_scaled else running[0]
        for row in range(rows):
            with ib.for_range(0, size, "j") as j:
                for state, start in zip(running, self.first, strict=True):
                    state[row * size + j] = op.cast(kind, start[b + row, j])
        end, is_backwards = self.order
        if self.lengths is not None:
            steps, end = end, ib.let("end", op.cast("int64", self.lengths[b]))
            _clear(ib, out, (b, end), (steps, size))
        step = _Step(
            ib, self.sizes, self.operands, running, (sums, scaled), self.width, self.extras, rows,
            self.factors,
        )  # fmt: skip
        with ib.for_range(0, end, "t") as t:
            step.take(end - 1 - t if is_backwards else t, b, self.how, out)
        for row in range(rows):
            with ib.for_range(0, size, "j") as j:
                for state, result in zip(running, last, strict=True):
                    result[b + row, j] = op.cast(result.dtype, state[row * size + j])


def _rows_together(batch: Extent, size: Extent) -> int:
    """How many sequences take a step together."""
    if not is_const(size):
        return 1
    return min(_TOGETHER, max(const_int(batch, "batch"), 1)) if is_const(batch) else _TOGETHER


def _width_of(batch: Extent, most: int, unit: Extent) -> Extent:
    """The gates of a block where ``most`` sequences of the batch take a step together."""
    width = block_width(unit)
    # All sequences but a few take steps together, and blocks are read in a row.
    return part_width(width, most) if is_const(batch) else width


def recurrence(
    name: str,
    gates: int,
    tensors: Sequence[Tensor],
    cell: Cell,
    reverse: bool = False,
    lengths: Tensor | None = None,
    extras: Sequence[Tensor] = (),
    reset: Callable[[Part, Part], PrimExpr] | None = None,
    quantize_state: bool = False,
    factors: Tensor | None = None,
    projected: bool = False,
) -> list[Tensor]:
    """Outputs of all steps, then the last states, of a layer with the given cell.

    Args:
        name: the layer in messages and in the names of its kernels.
        gates: how many gates the weights hold.
        tensors: data, the two weights, the two biases, the first states.
        cell: the new hidden value; it writes the other states itself.
        reverse: whether the steps are taken from the last to the first.
        lengths: (batch,) integers: the steps of each sequence; outputs after them are 0.
        extras: tensors that the cell reads.
        reset: a factor on the hidden state for the last gate, computed from the gates before it.
        quantize_state: whether the hidden state is rounded to 256 steps before it is multiplied.
        factors: (gates * hidden,) what each row of the weights of the state is multiplied with:
            such weights are small integers, of which a step reads a quarter of the bytes.
        projected: whether the data are terms of the gates (steps, batch, gates * hidden) already,
            to which only biases are added; the weights of the data then have no columns.
    """
    check_shapes(name, gates, tensors, projected)
    data, weight, recurrent, bias, recurrent_bias, *states = tensors
    steps, batch, _ = data.shape
    size, kind = states[0].shape[1], wide(data.dtype)
    most = 1 if lengths is not None else _rows_together(batch, size)
    width = _width_of(batch, most, gates * size if reset is None else size)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        mine, weights, biases, *rest = [ib.buffer_ptr(buffer) for buffer in ins]
        scales = None if factors is None else rest.pop()
        first, more = rest[: len(states)], rest[len(states) :]
        layer = _Layer(
            ib, (size, gates, kind), (mine, weights, biases), width, (steps, reverse),
            (cell, reset), first, more, [ib.buffer_ptr(buffer) for buffer in outs],
            None if lengths is None else more[-1], scales,
        )  # fmt: skip
        if quantize_state:
            layer.in_step(batch, most)
        else:
            layer.all_sequences(batch, most, layer.sequences)
        return ib.get()

    is_bytes = quantize_state and recurrent.dtype == "int8"
    laid_out = in_byte_blocks(recurrent, width) if is_bytes else in_blocks(recurrent, width)
    if projected:
        ready = [data, laid_out, both_biases(bias, recurrent_bias, kind)]
    else:
        ready = [of_data(data, weight, bias), laid_out, recurrent_bias]
    inputs = [*ready, *states, *extras, *[item for item in (lengths, factors) if item is not None]]
    shapes = [[steps, batch, size], *[[batch, size]] * len(states)]
    outputs = extern(
        shapes, inputs, body, name=name, dtype=[data.dtype] * len(shapes), tag=name,
        in_buffers=[decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs],
        out_buffers=[decl_buffer(shape, data.dtype, f"out{i}") for i, shape in enumerate(shapes)],
    )  # fmt: skip
    return as_list(outputs)


def lstm(
    data: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    hidden: Tensor,
    cell: Tensor,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> list[Tensor]:
    """[outputs, last hidden, last cell]; the gates have the order of ``weight_layout``."""
    if sorted(weight_layout) != sorted("IFGO"):
        raise IRValueError(f"lstm: weight_layout: expected the letters IFGO, got {weight_layout!r}")

    def step(mine: Part, sums: Part, _hidden: PrimExpr, others: Others) -> PrimExpr:
        (state,), j, _ = others
        gate = {letter: mine(i) + sums(i) for i, letter in enumerate(weight_layout)}
        kept = op.sigmoid(gate["F"]) * state[j]
        state[j] = kept + op.sigmoid(gate["I"]) * op.tanh(gate["G"])
        return op.sigmoid(gate["O"]) * op.tanh(state[j])

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell]
    return recurrence("lstm", 4, tensors, step, reverse)


def gru(
    data: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    hidden: Tensor,
    reverse: bool = False,
) -> list[Tensor]:
    """[outputs, last hidden]; gates: reset, update, new."""

    def step(mine: Part, sums: Part, before: PrimExpr, _others: Others) -> PrimExpr:
        reset, update = op.sigmoid(mine(0) + sums(0)), op.sigmoid(mine(1) + sums(1))
        new = op.tanh(mine(2) + reset * sums(2))
        return (op.const(1, new.dtype) - update) * new + update * before

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return recurrence("gru", 3, tensors, step, reverse)


def rnn(
    data: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    hidden: Tensor,
    activation: str = "tanh",
    reverse: bool = False,
) -> list[Tensor]:
    """[outputs, last hidden] of hidden = activation(data part + state part): tanh or relu."""
    if activation not in ("tanh", "relu"):
        raise IRValueError(f"rnn: activation: expected tanh or relu, got {activation!r}")

    def step(mine: Part, sums: Part, _before: PrimExpr, _others: Others) -> PrimExpr:
        total = mine(0) + sums(0)
        hidden: PrimExpr = op.tanh(total)
        return hidden if activation == "tanh" else op.maximum(total, op.const(0, total.dtype))

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return recurrence("rnn", 1, tensors, step, reverse)
