"""The table of illegal calls: each refused with its class and numbers, and nothing changed.

The rows are in illegal_calls.txt. They run with the state verified and not, at every level of
detail of errors, and in a schedule with edits and facts from before.
"""

from pathlib import Path

import pytest

import weft
from tests.lib import programs
from tests.lib.dangerous_programs import PROGRAMS
from weft import script, tir
from weft.ir.structural import structural_equal
from weft.support.errors import InternalError
from weft.tir.schedule import tree
from weft.tir.schedule.define import InstructionKind
from weft.tir.schedule.errors import ExpiredReferenceError, ScheduleFailure
from weft.tir.stmt import Block

pytestmark = pytest.mark.sampled(3)

MATMUL_RELU = """
@T.prim_func
def main(A: T.Buffer((20, 12)), B: T.Buffer((12, 18)), D: T.Buffer((20, 18))):
    C = T.alloc_buffer((20, 18))
    for i, j, k in T.grid(20, 18, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(20, 18):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
"""
SOURCES = {
    **PROGRAMS, "matmul": programs.matmul, "elementwise_chain": programs.elementwise_chain,
    "matmul_relu": script.from_source(MATMUL_RELU, {"T": script.tir}),
}  # fmt: skip
TEXT = Path(__file__).with_name("illegal_calls.txt").read_text(encoding="utf-8")
ROWS = [
    tuple(field.strip() for field in line.split("||"))
    for line in TEXT.splitlines() if line and not line.startswith("#")
]  # fmt: skip
LEVELS = ("detail", "fast", "none")


def edited(sch):
    """Edits that come and go, so that references and facts about blocks are old ones."""
    for block in [item for item in tree.all_references(sch.mod["main"].body)
                  if isinstance(item, Block)][1:]:  # fmt: skip
        rv = sch.get_block(block.name_hint)
        for number in range(4):
            sch.annotate(rv, f"edit{number}", number)
        sch.get_producers(rv)
        for number in range(4):
            sch.unannotate(rv, f"edit{number}")


def prepared(row, **options):
    """A schedule of the row's program, and the names its calls may use."""
    source, setup = SOURCES[row[0]], row[1]
    before = options.pop("before", None)
    sch = tir.Schedule(source, **options)
    if before is not None:
        before(sch)
    names = {"sch": sch, "new_schedule": lambda: tir.Schedule(source)}
    names["L"] = lambda block: names.update(zip("ijk", sch.get_loops(block), strict=True))
    for call in setup.split("; ") if setup else ():
        exec(call, names)
    return sch, names


def refusal(row, sch, names):
    """The error of the call; the module and what the trace does are as before."""
    before, steps = sch.mod, written(sch)
    with pytest.raises(weft.TVMError) as caught:
        eval(row[2], names)
    assert not isinstance(caught.value, InternalError)
    assert sch.mod is before or structural_equal(sch.mod, before)
    assert written(sch) == steps
    sch.state.debug_verify()
    return caught.value


def written(sch):
    """The instructions of the trace that are no question for a block."""
    return [inst for inst in sch.trace.insts if not inst.kind.is_pure]


def still_usable(sch):
    name = [b.name_hint for b in tree.all_references(sch.mod["main"].body)
            if isinstance(b, Block)][1]  # fmt: skip
    block = sch.get_block(name)
    sch.annotate(block, "still", "usable")
    assert sch.get(block).annotations["still"] == "usable"


@pytest.mark.parametrize("row", ROWS, ids=[f"{n}-{row[2][4:30]}" for n, row in enumerate(ROWS)])
def test_each_illegal_call_is_refused(row):
    _, _, _, kind, part = row
    for level in LEVELS:
        sch, names = prepared(row, error_render_level=level)
        error = refusal(row, sch, names)
        text = str(error)
        assert type(error).__name__ == kind, text
        assert part in text
        assert len(text.splitlines()) <= 10, text
        drawn = any(item is not sch.mod["main"].body.block for item in getattr(error, "places", ()))
        if level == "detail" and drawn:  # the text of a function has no line for the root block
            assert "^" in text, text
        if level != "detail":
            assert "^" not in text, text
        still_usable(sch)


@pytest.mark.parametrize("start", range(10))
def test_the_table_after_many_edits(start):
    for row in ROWS[start::10]:
        sch, names = prepared(row, before=edited)
        error = refusal(row, sch, names)
        assert (type(error).__name__, row[4] in str(error)) == (row[3], True), str(error)


@pytest.mark.parametrize("start", range(10))
def test_the_table_in_a_copy(start):
    for row in ROWS[start::10]:
        sch, names = prepared(row)
        error = refusal(row, sch, names)
        names["sch"] = copy = sch.copy()
        assert type(refusal(row, copy, names)) is type(error)


def test_the_table_is_whole():
    assert len(ROWS) >= 190
    assert {row[0] for row in ROWS} <= set(SOURCES)
    text = "\n".join([row[2] for row in ROWS])
    silent = {"can_decompose_padding", "get_output_blocks"}
    methods = {kind.method for kind in InstructionKind.REGISTRY.values()}
    missing = {name for name in methods if f"sch.{name}(" not in text}
    assert missing <= silent | {"sample_compute_location"}


def test_most_refusals_give_a_place():
    placed = 0
    for row in ROWS:
        sch, names = prepared(row)
        error = refusal(row, sch, names)
        placed += isinstance(error, ScheduleFailure) and bool(error.places)
        placed += isinstance(error, ExpiredReferenceError)
    assert placed > len(ROWS) * 0.6


@pytest.mark.parametrize("start", range(10))
def test_the_table_with_nothing_verified(start):
    """As a user or a search runs it: kept facts are trusted, no edit is checked again."""
    for row in ROWS[start::10]:
        sch, names = prepared(row, debug_mask="none")
        assert sch.state.debug_mask == 0
        error = refusal(row, sch, names)
        assert (type(error).__name__, row[4] in str(error)) == (row[3], True), str(error)
