"""Views: a buffer over the data of another stays within that memory.

A view's first and last elements are compared with the memory when the view is declared (or, where
it never is, before it is used). What is proved costs nothing; what is known to be wrong is refused;
else the test is made at run time. Memory whose size is not known (a raw handle) is not tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.codegen.llvm.exact_index import checked, exact_index
from weft.ir.expr import PrimExpr
from weft.runtime.call.abi import FaultKind
from weft.support.dtype import DataType
from weft.support.errors import IRIndexError
from weft.tir.buffer import Buffer
from weft.tir.lowering.layouts import Layout, bytes_of, constant_reach, is_same, layout_of
from weft.tir.lowering.proofs import Poly, add_scaled, multiply

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter


_FIRST_ADDRESS: Final = 4096
"""No memory is below: the first page is never mapped."""


def enter_memory(em: Emitter, data: Any, extents: Sequence[PrimExpr], dtype: DataType) -> None:
    """The data variable is memory of so many elements, on every path to its uses."""
    em.function.memory[id(data)] = Layout(tuple(extents), (), (), bytes_of(dtype))


def enter_parameter(em: Emitter, buffer: Buffer) -> None:
    """A parameter's memory is what its array has; it needs no test itself."""
    em.function.memory[id(buffer.data)] = layout_of(buffer)
    em.function.sound.add(id(buffer))
    em.function.parameters.add(id(buffer.data))


def declare(em: Emitter, buffer: Buffer, body: Any) -> None:
    """A DeclBuffer: tested once, where it stands."""
    known = id(buffer) in em.function.sound
    if not known:
        test(em, buffer)
        em.function.sound.add(id(buffer))
    em.statement(body)
    if not known:
        em.function.sound.discard(id(buffer))


def is_sound(em: Emitter, buffer: Buffer) -> bool:
    """Whether a use of the buffer here needs no test of its own."""
    facts, data = em.function, id(buffer.data)
    return id(buffer) in facts.sound or (data not in facts.memory and data not in facts.handles)


def use(em: Emitter, buffer: Buffer) -> None:
    """Test a buffer that is used without a declaration around it."""
    if is_sound(em, buffer) or not em.context.checks:
        return
    always = not (em.loops or em.conditional or em.parent)
    if test(em, buffer) or always:
        em.function.sound.add(id(buffer))
        em.kept.append(buffer)


def test(em: Emitter, buffer: Buffer) -> bool:
    """Test a view; True where its extents are constants, so that it is sound everywhere."""
    memory = em.function.memory.get(id(buffer.data))
    if not em.context.checks:
        return True
    if memory is None:
        _test_address(em, buffer)
        return False
    what = f"{em.function.name}: view {buffer.name}"
    return fits(em, layout_of(buffer), memory, what)


def _test_address(em: Emitter, buffer: Buffer) -> None:
    """A parameter that is a raw handle is memory of unknown size, but some: not None."""
    data = buffer.data
    if id(data) not in em.function.handles:
        return
    address = em.b.op(f"ptrtoint ptr {em.variable(data)} to i64")
    good = em.b.op(f"icmp uge i64 {address}, {_FIRST_ADDRESS}")
    text = f"{em.function.name}: expected the address of memory for {data.name}, got {{a}}"
    em.b.raise_unless(good, FaultKind.INDEX, text, address)


def fits(em: Emitter, view: Layout, memory: Layout, what: str) -> bool:
    """Refuse, prove or test at run time that a view lies within its memory."""
    if is_same(view, memory):
        return True
    ends, limits = constant_reach(view), constant_reach(memory)
    if ends is not None and limits is not None:
        if limits[0] <= ends[0] and ends[1] <= limits[1]:
            return True
        if not (em.loops or em.conditional or em.parent):
            raise IRIndexError(
                f"{what}: expected it to lie within the {limits[1]} bytes of its memory, its "
                f"elements reach from byte {ends[0]} to byte {ends[1]}; make it smaller, or move it"
            )
    if _is_proved_by_ranges(em, view, memory) or _is_proved(em, view, memory):
        return False
    _test_at_run_time(em, view, memory, what)
    return False


def _is_proved_by_ranges(em: Emitter, view: Layout, memory: Layout) -> bool:
    """Whether a view of constant shape fits wherever its offsets may lie, as tiles in a loop do."""
    ends = constant_reach(Layout(view.shape, view.strides, (), view.nbytes))
    limits = constant_reach(memory)
    if ends is None or limits is None:
        return False
    starts = [em.ranges.of(offset) for offset in view.offsets]
    first = ends[0] + sum([low for low, _ in starts]) * view.nbytes
    last = ends[1] + sum([high for _, high in starts]) * view.nbytes
    return limits[0] <= first and last <= limits[1]


def _is_proved(em: Emitter, view: Layout, memory: Layout) -> bool:
    """Whether compact layouts fit by their extents, as polynomials."""
    if view.strides or memory.strides:
        return False
    bounds = em.bounds
    for term in (*view.shape, *view.offsets):
        if not bounds.not_negative(term):
            return False
    need, have = _elements(em, view), _elements(em, memory)
    if need is None or have is None:
        return False
    scaled = {key: value * view.nbytes for key, value in need.items()}
    return bounds.at_most_zero(add_scaled(scaled, have, -memory.nbytes))


def _elements(em: Emitter, layout: Layout) -> Poly | None:
    total: Poly = {(): 1}
    for extent in layout.shape:
        total = multiply(total, em.bounds.poly(extent))
        if len(total) > 40:
            return None
    for offset in layout.offsets:
        total = add_scaled(total, em.bounds.poly(offset), 1)
    return total


class _Reach:
    """The ends of a layout in bytes, as code; ``good`` is what must hold for them to be exact."""

    def __init__(self, em: Emitter) -> None:
        self.em = em
        self.good = ""
        self.sized = ""
        """What must hold for the extents, and so for whether there is an element at all."""

    def need(self, flag: str) -> None:
        """One more condition."""
        self.good = self.em.b.op(f"and i1 {self.good}, {flag}") if self.good else flag

    def forbid(self, flag: str) -> None:
        """One more condition that must not hold."""
        self.need(self.em.b.op(f"xor i1 {flag}, true"))

    def checked(self, name: str, a: str, b: str) -> str:
        """A sum or product (sadd, smul) that must not overflow."""
        return checked(self.em, name, "i64", a, b, self.forbid)

    def ends(self, layout: Layout) -> tuple[str, str, str]:
        """The first byte, the byte behind the last, and whether there is no element."""
        b = self.em.b
        sizes = [exact_index(self.em, extent, self.forbid) for extent in layout.shape]
        empty = "false"
        for size in sizes:
            self.need(b.op(f"icmp sge i64 {size}, 0"))
            none = b.op(f"icmp eq i64 {size}, 0")
            empty = b.op(f"or i1 {empty}, {none}")
        self.sized, self.good = self.good, ""
        low, high = "0", "1"
        if not layout.strides:
            for size in sizes:
                positive = self.extreme("smax", size, "1")
                high = self.checked("smul", high, positive)
        for size, stride in zip(sizes, layout.strides, strict=False):
            way = self.checked("smul", b.op(f"sub i64 {size}, 1"), self.em.extent(stride))
            high = self.checked("sadd", high, self.extreme("smax", way))
            low = self.checked("sadd", low, self.extreme("smin", way))
        for offset in layout.offsets:
            start = self.offset(offset, layout.is_exact)
            low, high = self.checked("sadd", low, start), self.checked("sadd", high, start)
        scale = str(layout.nbytes)
        return self.checked("smul", low, scale), self.checked("smul", high, scale), empty

    def offset(self, offset: PrimExpr, is_exact: bool) -> str:
        """An offset as native code computes it, or one whose arithmetic must not wrap."""
        if is_exact:
            return exact_index(self.em, offset, self.forbid)
        return self.em.extent(offset)

    def extreme(self, name: str, value: str, other: str = "0") -> str:
        """The larger or the smaller of two values."""
        return self.em.b.call(f"llvm.{name}.i64", "i64", [("i64", value), ("i64", other)])


def reach_at_run_time(em: Emitter, layout: Layout) -> tuple[str, str]:
    """The first byte and that behind the last, as code; two zeros where there is no element."""
    low, high, empty = _Reach(em).ends(layout)
    ends = [em.b.op(f"select i1 {empty}, i64 0, i64 {end}") for end in (low, high)]
    return ends[0], ends[1]


def _test_at_run_time(em: Emitter, view: Layout, memory: Layout, what: str) -> None:
    b, reach = em.b, _Reach(em)
    first, last, empty = reach.ends(view)
    low, high = reach_at_run_time(em, memory)  # it exists, so that its size does not overflow
    inside = b.op(f"icmp sle i64 {low}, {first}")
    inside = b.op(f"and i1 {inside}, {b.op(f'icmp sle i64 {last}, {high}')}")
    good = b.op(f"and i1 {inside}, {reach.good}") if reach.good else inside
    good = b.op(f"or i1 {good}, {empty}")
    good = b.op(f"and i1 {good}, {reach.sized}") if reach.sized else good
    text = f"{what}: reaches to byte {{a}} of a memory of {{b}} bytes, or before it"
    b.raise_unless(good, FaultKind.INDEX, text, last, high)
