"""Legal programs that mean something else than they say warn, at the user's line; no others do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import weft
from weft import ScriptWarning, te, tir
from weft.script import ir as I
from weft.script import tir as T

HEAD = """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"),
      C: T.Buffer((8, 8), "float32"), K: T.Buffer((8,), "int32"), n: T.int32):
"""


def body(text: str) -> str:
    lines = text.strip("\n").splitlines()
    return HEAD + "".join([f"    {line}\n" for line in lines])


def warned(text: str) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        weft.script.from_source(text)
    return caught


def matmul(kinds: str = "SSR", *lines: str, update: str = "C[vi, vj] + A[vi, vk] * B[vk, vj]"):
    inside = "".join([f"\n        {line}" for line in lines])
    return body(f"""
for i, j, k in T.grid(8, 8, 8):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("{kinds}", [i, j, k]){inside}
        C[vi, vj] = {update}
""")


INIT = ("with T.init():", "    C[vi, vj] = T.float32(0)")
READS = ("T.reads(C[vi, vj], A[vi, vk], B[vk, vj])", "T.writes(C[vi, vj])")
FIRST = """
for i, j in T.grid(8, 8):
    with T.block("zero"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = T.float32(0)
"""
SUM = "s = T.float32(0)\n"

MISTAKES = {
    "a reduction without T.init": (
        matmul(), 'with T.block("C")',
        r"block 'C' adds to C along vk, and nothing gives C a first value: write "
        r"`with T.init\(\): C\[vi, vj\] = ...` first, or T.reads\(C\[vi, vj\], ...\) if",
    ),
    "in memory of its own": (
        body("""
S = T.alloc_buffer((8,))
for i, k in T.grid(8, 8):
    with T.block("S"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(8, k)
        S[vi] += A[vi, vk]
"""), 'with T.block("S")', "block 'S' adds to S along vk",
    ),
    "a maximum": (
        matmul(update="T.max(C[vi, vj], A[vi, vk])"), 'T.block("C")', "nothing gives C a first",
    ),
    "T.init without a reduction axis": (
        matmul("SSS", *INIT), 'with T.block("C")',
        "block 'C' has T.init but no reduction axis: C starts anew in every iteration of vk, and "
        "only the last one counts; make vk a reduction axis",
    ),
    "T.init in a block without axes": (
        body("""
for i, k in T.grid(8, 8):
    with T.block("row"):
        with T.init():
            C[i, 0] = T.float32(0)
        C[i, 0] = C[i, 0] + A[i, k]
"""), 'T.block("row")', "starts anew in every iteration of k",
    ),
    "S for a reduction": (
        matmul("SSS"), 'with T.block("C")',
        "axis vk of block 'C' is spatial, but C is built up along it: .* with T.init",
    ),
    "S after a first value": (
        body(FIRST) + matmul("SSS").removeprefix(HEAD), 'with T.block("C")', "axis vk of block 'C'"
    ),
    "an integer buffer times a float": (
        body("for i in range(8):\n    K[i] = K[i] * 0.5"), "K[i] = ",
        r"K holds int32, and the value stored is float32: what stands behind the point is cut off "
        r'\(0.75 becomes 0\); make K a buffer of float32, or say that it is meant: '
        r'T.Cast\("int32", ...\)',
    ),
    "a fraction": (body("K[0] = 0.5"), "K[0] = ", "is cut off"),
    "in place": (body("K[0] += T.float32(0.5)"), "K[0] += ", "is cut off"),
    "a sum in a variable": (
        body(SUM + "for i in range(8):\n    s = s + A[0, i]\nC[0, 0] = s"), "s = s + A[0, i]",
        r"s ends with the statements around it: `s = s \+ A\[0, i\]` makes a new variable, and "
        r"the s of line 5 keeps its value; keep what changes in a buffer: s = T.alloc_buffer",
    ),
    "a sum that nobody reads after the loop": (
        body(SUM + "for i in range(8):\n    s = s + A[0, i]\n    C[0, i] = s"), "s = s + ", "s ends"
    ),
    "+=": (body(SUM + "for i in range(8):\n    s += A[0, i]\nC[0, 0] = s"), "s += ", "s ends with"),
    "in an inner loop": (
        body(SUM + "for i in range(8):\n    for j in range(8):\n        s = s + A[i, j]\n"
             "    C[0, i] = s"), "s = s + ", "s ends with",
    ),
    "of the turn before": (
        body(SUM + "for i in range(8):\n    C[0, i] = s\n    s = A[0, i]"), "s = A", "s ends with"
    ),
    "of a branch": (
        body(SUM + "if n > 3:\n    s = A[0, 0]\nC[0, 0] = s"), "s = A[0, 0]", "s ends with"
    ),
    "of a parameter": (
        body("while n > 0:\n    n = n - 1\nK[0] = n"), "n = n - 1", "the n of line 3 keeps its"
    ),
    "with a type": (
        body(SUM + "if n > 3:\n    s: T.float32 = A[0, 0]\nC[0, 0] = s"), "s: T", "s ends with"
    ),
    "swapped arguments of an axis": (
        body("for i in range(8):\n    with T.block('b'):\n        v = T.axis.spatial(i, n)\n"
             "        K[v] = 1"), "v = T.axis",
        r"axis v goes up to the loop i and is bound to n: its arguments are swapped; write "
        r"T.axis.spatial\(n, i\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_likely_mistake_warns_at_its_line(name):
    text, line, message = MISTAKES[name]
    with pytest.warns(ScriptWarning, match=message) as caught:
        weft.script.from_source(text)
    assert len(caught) == 1
    assert caught[0].filename == "<str>"
    assert line in text.splitlines()[caught[0].lineno - 1]


MEANT = {
    "with T.init": matmul("SSR", *INIT),
    "an update that says that it reads": matmul("SSR", *READS),
    "a first value before": body(FIRST) + matmul().removeprefix(HEAD),
    "a first value from a call": body('T.evaluate(T.call_extern("int32", "zero", C.data))')
    + matmul().removeprefix(HEAD),
    "a first value under a condition": matmul("SSR", "if vk == 0:", "    C[vi, vj] = T.float32(0)"),
    "a block around that says that it reads": body("""
with T.block("all"):
    T.reads(A[0:8, 0:8], C[0:8, 0:8])
    T.writes(C[0:8, 0:8])
    for i, k in T.grid(8, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi, 0] = C[vi, 0] + A[vi, vk]
"""),
    "a part of a buffer": body("""
C[0, 0] = T.float32(0)
with T.block("all"):
    S = T.match_buffer(C[0:8, 0:8], (8, 8))
    for k in range(8):
        with T.block("S"):
            vk = T.axis.reduce(8, k)
            S[0, 0] = S[0, 0] + A[0, vk]
"""),
    "T.init before an inner loop": body("""
for i in range(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        with T.init():
            C[vi, 0] = T.float32(0)
        for k in range(8):
            C[vi, 0] = C[vi, 0] + A[vi, k]
"""),
    "in place, each element once": body("""
for i, j in T.grid(8, 8):
    with T.block("twice"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = C[vi, vj] * 2.0
"""),
    "a histogram": body("""
for i in range(8):
    with T.block("count"):
        vi = T.axis.spatial(8, i)
        C[K[vi], 0] = C[K[vi], 0] + 1.0
"""),
    "an axis of one": body("""
for i in range(1):
    with T.block("b"):
        vi = T.axis.spatial(1, i)
        C[0, 0] = C[0, 0] + A[vi, 0]
"""),
    "a scan": body("""
for i in range(8):
    with T.block("b"):
        vi = T.axis.scan(8, i)
        with T.init():
            C[0, 0] = T.float32(0)
        C[0, 0] = C[0, 0] + A[0, vi]
"""),
    "a whole number": body("K[0] = 2.0"),
    "a cast": body('K[0] = T.Cast("int32", A[0, 0] * 0.5)'),
    "a let inside a loop": body("for i in range(8):\n    s = A[0, i]\n    s += s\n    C[0, i] = s"),
    "a name again in the next loop": body(
        "for i in range(8):\n    s = A[0, i]\n    C[0, i] = s\n"
        "for i in range(8):\n    s = A[1, i]\n    C[1, i] = s"
    ),
    "a name in both branches": body(
        "if n > 3:\n    s = A[0, 0]\n    C[0, 0] = s\nelse:\n    s = A[0, 1]\n    C[0, 0] = s"
    ),
    "over a name that is read in the other branch": body(
        SUM + "if n > 3:\n    s = A[0, 0]\n    C[0, 0] = s\nelse:\n    C[0, 0] = s"
    ),
    "over a name that is not read again": body(
        SUM + "C[0, 1] = s\nfor i in range(8):\n    s = A[0, i]\n    C[0, i] = s"
    ),
    "one after the other": body(SUM + "s += A[0, 0]\ns += A[0, 1]\nC[0, 0] = s"),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_does_not_warn(name):
    assert [str(item.message) for item in warned(MEANT[name])] == []


def test_the_variable_of_a_loop_keeps_its_value_indeed():
    """What the warning says: C[0] stays what s was before the loop."""
    with pytest.warns(ScriptWarning):
        func = weft.script.from_source(MISTAKES["a sum in a variable"][0])
    A, C = np.ones((8, 8), "float32"), np.full((8, 8), 7, "float32")
    weft.build(func)(A, A, C, np.zeros(8, "int32"), 3)
    assert C[0, 0] == 0


def test_a_decorated_function_warns_at_the_users_line_once():
    def parsed():
        with pytest.warns(ScriptWarning, match="adds to C along vk") as caught:

            @T.prim_func
            def sums(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
                for i, k in T.grid(8, 8):
                    with T.block("sums"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + A[vi, vk]

        return caught

    caught = parsed()
    assert caught[0].filename == __file__
    with open(__file__, encoding="utf-8") as file:
        assert 'with T.block("sums")' in file.readlines()[caught[0].lineno - 1]
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("default")
        for _ in range(3):
            weft.script.from_source(matmul())
    assert len(again) == 1


def test_a_module_warns_for_each_function():
    with pytest.warns(ScriptWarning) as caught:

        @I.ir_module
        class Module:
            @T.prim_func
            def f(K: T.Buffer((8,), "int32")):
                K[0] = 0.5

            @T.prim_func
            def g(K: T.Buffer((8,), "int32")):
                K[0] = 1.5

    assert len(caught) == 2


def test_no_warning_without_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.script.from_source(matmul(), check_well_formed=False)


def test_what_schedules_write_does_not_warn():
    """The text of a decomposed, blocked or factored reduction is read back without a warning."""
    k = te.reduce_axis((0, 16), name="k")
    x = te.placeholder((4, 16), name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: te.sum(x[i, k], axis=k), name="C")])
    for primitive in ("decompose_reduction", "rfactor", "blockize", "cache_write"):
        sch = tir.Schedule(func)
        block = sch.get_block("C")
        outer, inner = sch.split(sch.get_loops(block)[1], [None, 4])
        if primitive == "decompose_reduction":
            sch.decompose_reduction(block, outer)
        elif primitive == "rfactor":
            sch.rfactor(inner, 0)
        elif primitive == "blockize":
            sch.blockize(inner)
        else:
            sch.cache_write(block, 0, "local")
        assert warned(sch.mod.script()) == []
