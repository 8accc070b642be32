"""Memory that nothing was stored to has some values: programs that read it stay in their memory.

To LLVM it has none, so that a jump that depends on it may go anywhere: out of the function, or past
the test of an index.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.guarded_memory import GuardedMemory
from weft.codegen.llvm.decisive_loads import decisive_loads
from weft.codegen.llvm.emit import lower_to_llvm
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.runtime.faults import DivisionFault, IndexFault
from weft.script import from_source
from weft.tir.buffer import BufferLoad

READS = {
    "an index": "A[V[0]] = 1",
    "an index behind a test": "if V[0] >= 0 and V[0] < 4:\n        A[V[0]] = 1",
    "a choice": "A[0] = T.if_then_else(V[0] >= 0 and V[0] < 4, A[V[0]], 0)",
    "a divisor": "A[0] = 100 // V[0]",
    "a divisor behind a test": "if V[0] != 0:\n        A[0] = 100 % V[0]",
    "a dividend and a divisor": "A[0] = V[0] // V[1]",
    "the bound of a loop": "for i in range(V[0] % 8):\n        A[i] = 1",
    "a loop that goes on": "while V[0] > 1000:\n        V[0] = V[0] // 2",
    "a variable": "with T.LetStmt(V[0] + V[1]) as v:\n        A[v] = A[v] + 1",
    "lanes": "A[V[T.Ramp(0, 1, 4)]] = T.Broadcast(1, 4)",
    "what it was copied to": "A[0] = V[0]\n    if A[0] > 0:\n        A[A[0]] = 1",
    "the size of memory": "with T.LetStmt(V[0] % 100) as n:\n"
    "        W = T.allocate([n], 'int32', 'global')\n"
    "        U = T.Buffer((n,), 'int32', data=W)\n        U[V[1]] = 1",
    "where a view begins": "U = T.decl_buffer((2,), 'int32', data=A.data, elem_offset=V[0])\n"
    "    U[1] = 1",
}  # fmt: skip
MEMORY = {
    "stack": "T.alloc_buffer((8,), 'int32', scope='local')",
    "heap": "T.alloc_buffer((100000,), 'int32')",
}
PROGRAM = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    V = {memory}
    {reads}
"""


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("kind", READS)
def test_what_is_read_there_leads_nowhere_else(kind, memory):
    func = from_source(PROGRAM.format(memory=MEMORY[memory], reads=READS[kind]))
    built = weft.build(func)
    guarded = GuardedMemory(1)
    placed = guarded.place(0, 16, True)
    array = guarded.array(placed, (4,), np.dtype("int32"), (4,))
    array[...] = 0
    try:
        built(array)
    except (IndexFault, DivisionFault):
        pass
    assert guarded.damage(placed) == []


def test_values_that_are_only_data_stay_as_they_are():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.LetStmt(A[i]) as v:
            B[v] = B[i] + A[3 - i]
""")
    loads = collect(func.body, BufferLoad)
    assert [str(load) for load in loads if id(load) in decisive_loads(func.body)] == ["A[i]"]
    text = lower_to_llvm(lower_tir()(IRModule({"f": func})))
    assert text.count("freeze i32") == 1
