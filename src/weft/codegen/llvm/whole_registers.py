"""``T.scaleb``, ``T.lookup``, ``T.dot_four_bytes`` by instructions that take whole registers only.

Longer vectors are cut into registers, the last one is filled up with undefined lanes, and the
results are joined. ``T.lookup(table, p)`` with 24 lanes in ``p``, on registers of 16::

    low = permute(table, p[0:16])
    high = permute(table, p[16:24] + 8 undefined lanes)
    (low + high)[0:24]
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import with_lanes
from weft.tir.expr import Call


def has_scaleb(context: ModuleContext, call: Call) -> bool:
    """Whether the processor has an instruction for a ``T.scaleb`` of that type."""
    return context.scales and call.dtype.bits == 32


def scaleb(em: Emitter, call: Call) -> str:
    """``T.scaleb(x, power, where)``: ``x * 2**power``, and 0 in lanes where ``where`` is false."""
    lanes = call.dtype.lanes
    width = next((size for size in (4, 8) if size >= lanes), 16)
    x, power, where = map(em.value, call.args)
    parts = [
        _scaled(
            em.b,
            width,
            _part(em.b, "float", lanes, x, at, width),
            _part(em.b, "float", lanes, power, at, width),
            _part(em.b, "i1", lanes, where, at, width),
        )
        for at in range(0, lanes, width)
    ]
    return _joined(em.b, "float", parts, width, lanes)


def _scaled(b: FunctionBuilder, width: int, x: str, power: str, where: str) -> str:
    """One register of ``T.scaleb``; the condition becomes a mask of as many bits as lanes."""
    kind, bits = f"<{width} x float>", max(width, 8)
    if width < bits:  # a mask has eight bits at least
        where = _shuffled(b, f"<{width} x i1>", where, "poison", _places(range(bits), width))
    mask = b.op(f"bitcast <{bits} x i1> {where} to i{bits}")
    values = [(kind, x), (kind, power), (kind, "zeroinitializer"), (f"i{bits}", mask)]
    instruction = b.context.intrinsics[f"scale f32x{width}"]
    return b.call(instruction.name, kind, [*values, *instruction.rest])


def has_lookup(context: ModuleContext, call: Call) -> bool:
    """Whether the processor does a ``T.lookup``: its table is one or two registers of floats."""
    table, width = call.args[0].dtype, context.looks_up
    return width > 0 and table.bits == 32 and table.is_float and table.lanes in (width, 2 * width)


def lookup(em: Emitter, call: Call) -> str:
    """``T.lookup(table, places)``: lane ``i`` is ``table[places[i] % n]``, by permutes."""
    table, places = map(em.value, call.args)
    count, lanes, width = call.args[0].dtype.lanes, call.dtype.lanes, em.context.looks_up
    parts = [
        _picked(em.b, table, count, _part(em.b, "i32", lanes, places, at, width), width)
        for at in range(0, lanes, width)
    ]
    return _joined(em.b, "float", parts, width, lanes)


def _picked(b: FunctionBuilder, table: str, count: int, places: str, width: int) -> str:
    """The numbers of a table at a register of ``places``.

    A table of two registers is looked up in both of them, and each lane takes one of the two.
    """
    kind, index = f"<{width} x float>", f"<{width} x i32>"
    if count == width:
        permute = b.context.intrinsics[f"permute f32x{width}"]
        return b.call(permute.name, kind, [(kind, table), (index, places)])
    low, high = (
        _picked(b, _part(b, "float", count, table, at, width), width, places, width)
        for at in (0, width)
    )
    # place 16 and above: the bit with that value is shifted to the sign, by which one instruction
    # selects lanes
    sign = b.op(f"shl {index} {places}, splat (i32 {32 - width.bit_length()})")
    flag = b.op(f"icmp slt {index} {sign}, zeroinitializer")
    return b.op(f"select <{width} x i1> {flag}, {kind} {high}, {kind} {low}")


def has_dot_four_bytes(context: ModuleContext, call: Call) -> bool:
    """Whether the processor has an instruction for a ``T.dot_four_bytes``."""
    return context.dots > 0 and call.dtype.bits == 32


def dot_four_bytes(em: Emitter, call: Call) -> str:
    """``T.dot_four_bytes(total, unsigned, signed)``."""
    lanes, width = call.dtype.lanes, em.context.dots
    operands, kind = [*map(em.value, call.args)], f"<{width} x i32>"
    instruction = em.context.intrinsics[f"dot i32x{width}"]
    parts = []
    for at in range(0, lanes, width):
        values = [(kind, _part(em.b, "i32", lanes, x, at, width)) for x in operands]
        parts.append(em.b.call(instruction.name, kind, values))
    return _joined(em.b, "i32", parts, width, lanes)


def _part(b: FunctionBuilder, element: str, lanes: int, x: str, start: int, width: int) -> str:
    """``width`` lanes of a vector from ``start`` on; those behind its last lane are undefined."""
    if lanes == width:
        return x
    if lanes == 1:
        return b.op(f"insertelement <{width} x {element}> poison, {element} {x}, i64 0")
    places = _places(range(start, start + width), lanes)
    return _shuffled(b, with_lanes(element, lanes), x, "poison", places)


def _joined(b: FunctionBuilder, element: str, parts: list[str], width: int, lanes: int) -> str:
    """The first ``lanes`` lanes of vectors of ``width`` elements that are laid side by side."""
    while len(parts) > 1:
        odd = ["poison"] * (len(parts) % 2)
        pairs = zip(parts[::2], [*parts[1::2], *odd], strict=True)
        kind = f"<{width} x {element}>"
        order = _places(range(2 * width), 2 * width)
        parts = [_shuffled(b, kind, low, high, order) for low, high in pairs]
        width *= 2
    if lanes == 1:
        return b.op(f"extractelement <{width} x {element}> {parts[0]}, i64 0")
    if width == lanes:
        return parts[0]
    return _shuffled(b, f"<{width} x {element}>", parts[0], "poison", _places(range(lanes), width))


def _places(wanted: Sequence[int], last: int) -> list[str]:
    """Numbers of lanes as LLVM writes them in a mask; ``poison`` for those from ``last`` on."""
    return [str(place) if place < last else "poison" for place in wanted]


def _shuffled(b: FunctionBuilder, kind: str, x: str, y: str, places: list[str]) -> str:
    """The lanes ``places`` of two vectors laid side by side."""
    mask = ", ".join([f"i32 {place}" for place in places])
    return b.op(f"shufflevector {kind} {x}, {kind} {y}, <{len(places)} x i32> <{mask}>")
