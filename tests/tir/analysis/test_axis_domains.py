"""Axes of blocks whose bindings leave their domains are refused, and no others."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.ir.expr import IntImm, Range
from weft.support.errors import DiagnosticError, IRValueError
from weft.tir.analysis.axis_domains import AxisDomainError, check_axis_domains
from weft.tir.analysis.verify_well_formed import verify_well_formed
from weft.tir.expr import IterVar, Var
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind

HEAD = """
@T.prim_func
def f(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), n: T.int32):
"""


def parsed(body: str, **options):
    lines = "".join([f"    {line}\n" for line in body.strip("\n").splitlines()])
    return weft.script.from_source(HEAD + lines, **options)


def block(*loops: str, axis: str, where: str = ""):
    """A body: loops, then a block of one axis ``v``."""
    depth, lines = "", []
    for loop in loops:
        lines.append(f"{depth}{loop}")
        depth += "    "
    lines += [f'{depth}with T.block("b"):', f"{depth}    v = {axis}"]
    lines += [f"{depth}    T.where({where})"] if where else []
    return "\n".join([*lines, f"{depth}    A[v] = T.float32(0)"])


J = "for j in range(8):"
LONG = "T.grid(4096, 4096)"
ELSE = "if j < 4:\n        A[0] = T.float32(1)\n    else:"
WRONG = {
    "too small": (
        block(J, axis="T.axis.spatial(4, j)"),
        r"the domain of axis v in block 'b' is 0 to 3, but its binding j goes from 0 to 7 "
        r"\(4 at j = 4\); give the axis the extent 8, or let the block run only inside, as by "
        r"T.where\(j < 4\)",
    ),
    "a sum": (
        block("for i, j in T.grid(4, 8):", axis="T.axis.spatial(31, i * 8 + j)"),
        r"binding i \* 8 \+ j goes from 0 to 31 \(31 at i = 3, j = 7\); .* the extent 32",
    ),
    "reduction": (block(J, axis="T.axis.reduce(7, j)"), r"is 0 to 6, .* \(7 at j = 7\)"),
    "below": (
        block(J, axis="T.axis.spatial(8, j - 1)"),
        r"goes from -1 to 6 \(-1 at j = 0\); give the axis the domain \(-1, 7\), or bound it",
    ),
    "a pair": (block(J, axis="T.axis.spatial((2, 8), j)"), r"is 2 to 7, .* \(0 at j = 0\)"),
    "another loop's extent": (
        block("for i in range(3):", "for j in range(i + 1):", axis="T.axis.spatial(2, j)"),
        r"\(2 at i = 2, j = 2\)",
    ),
    "a predicate that does not bound": (
        block(J, axis="T.axis.spatial(4, j)", where="j < 6"), r"goes from 0 to 5 \(4 at j = 4\)",
    ),
    "a condition that does not bound": (
        block(J, "if j % 2 == 1:", axis="T.axis.spatial(4, j)"), r"from 1 to 7 \(5 at j = 5\)",
    ),
    "swapped": (
        block(J, axis="T.axis.spatial(j, 8)"),
        r"is empty, but its binding 8 .*; T.axis.spatial and T.axis.reduce take the extent first: "
        r"are the two swapped\?",
    ),
    "long loops": (
        block(f"for i, j in {LONG}:", axis="T.axis.spatial(4096 * 4096 - 1, i * 4096 + j)"),
        r"\(16777215 at i = 4095, j = 4095\)",
    ),
    "a constant": (block(J, axis="T.axis.spatial(4, 4)"), r"binding 4 goes from 4 to 4;"),
    "inside another block": (
        """
for i in range(4):
    with T.block("outer"):
        vi = T.axis.spatial(4, i)
        for j in range(4):
            with T.block("b"):
                v = T.axis.spatial(15, vi * 4 + j)
                A[v] = T.float32(0)
""",
        r"\(15 at i = 3, j = 3\)",
    ),
    "threads": (
        block('for j in T.thread_binding(8, "threadIdx.x"):', axis="T.axis.spatial(4, j)"),
        r"\(4 at j = 4\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_axis_that_leaves_its_domain_is_refused(name):
    body, message = WRONG[name]
    with pytest.raises(DiagnosticError, match=message) as caught:
        parsed(body)
    line = str(caught.value).splitlines()[-2]
    assert "v = T.axis." in line, "the error shows the line of the axis"
    func = parsed(body, check_well_formed=False)
    assert not verify_well_formed(func, assert_mode=False)
    with pytest.raises(IRValueError, match=message):
        verify_well_formed(func)


LEGAL = {
    "whole": block(J, axis="T.axis.spatial(8, j)"),
    "less than the domain": block(J, axis="T.axis.spatial(16, j + 8)"),
    "a pair": block(J, axis="T.axis.spatial((2, 10), j + 2)"),
    "a predicate": block(J, axis="T.axis.spatial(4, j)", where="j < 4"),
    "two conditions": block(J, "if j < 6:", axis="T.axis.spatial(4, j)", where="j != 4 and j != 5"),
    "else": block(J, ELSE, axis="T.axis.spatial(4, j - 4)"),
    "tail of a split": block(
        "for i, j in T.grid(4, 16):", axis="T.axis.spatial(50, i * 16 + j)", where="i * 16 + j < 50"
    ),
    "fused": block("for x in range(32):", axis="T.axis.spatial(4, x // 8)"),
    "an empty loop": block("for i in range(0):", axis="T.axis.spatial(4, 9)"),
    "symbolic": block("for j in range(n):", axis="T.axis.spatial(4, j)"),
    "a symbolic domain": block(J, axis="T.axis.spatial(n, j)"),
    "data": block(J, axis="T.axis.spatial(4, I[j])"),
    "under data": block(J, "if I[j] > 2:", axis="T.axis.spatial(4, j)"),
    "under a parameter": block(J, "if n > 2:", axis="T.axis.spatial(4, j)"),
    "inside of while": block(J, "while I[j] > 2:", axis="T.axis.spatial(4, j)"),
    "long loops": block(f"for i, j in {LONG}:", axis="T.axis.spatial(64, (i * 4096 + j) % 64)"),
    "correlated": block(J, axis="T.axis.spatial(4, j - j // 4 * 4)"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_what_stays_or_is_not_known_is_legal(name):
    assert verify_well_formed(parsed(LEGAL[name]))


def by_hand(extent: int):
    """A function of nodes: eight iterations, one axis over ``extent``."""
    buffer, loop, axis = tir.decl_buffer((8,)), Var("j", "int32"), Var("vj", "int32")
    domain = IterVar(Range(0, extent), axis, IterVar.DataPar)
    store = BufferStore(buffer, tir.const(1.0, "float32"), [axis])
    inner = BlockRealize(
        [loop], IntImm("bool", 1), Block([domain], [], [buffer[0:8]], "b", store)
    )  # fmt: skip
    root = Block([], [], [], "root", For(loop, 0, 8, ForKind.SERIAL, inner))
    return tir.PrimFunc([buffer], BlockRealize([], IntImm("bool", 1), root))


@pytest.mark.parametrize("use", [tir.Schedule, weft.build, lambda func: weft.compile(
    weft.IRModule({"f": func}))])  # fmt: skip
def test_a_program_of_nodes_is_refused_where_it_is_used(use):
    use(by_hand(8))
    with pytest.raises(AxisDomainError, match=r"axis vj in block 'b' is 0 to 3, .* \(4 at j = 4\)"):
        use(by_hand(4))


@pytest.mark.no_replay("a replay checks the program again")
def test_schedules_without_checks_take_it():
    assert tir.Schedule(by_hand(4), enable_check=False).get_block("b") is not None


def test_a_symbolic_axis_runs_as_its_binding_says():
    """Nothing tests such an axis at run time: its accesses are tested."""
    func = parsed(LEGAL["symbolic"])
    data = np.ones(64, "float32")
    weft.build(func)(data, np.zeros(64, "int32"), 6)
    assert list(data[:8]) == [0, 0, 0, 0, 0, 0, 1, 1]
    with pytest.raises(weft.TVMError, match="out of bounds"):
        weft.build(func)(data, np.zeros(64, "int32"), 65)


def test_scheduled_programs_stay_legal():
    x, w = te.placeholder((30, 18), name="x"), te.placeholder((18, 22), name="w")
    k = te.reduce_axis((0, 18), name="k")
    func = te.create_prim_func(
        [x, w, te.compute((30, 22), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")]
    )
    sch = tir.Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    outer = sch.split(sch.fuse(i, j), [None, 7, 16])
    sch.reorder(*sch.split(k, [None, 5]), outer[2])
    check_axis_domains(sch.mod["main"])
    assert "T.where" in sch.mod["main"].script()
