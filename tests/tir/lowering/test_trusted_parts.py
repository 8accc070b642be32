"""What native code could only trust is refused when a program is built, by every entry."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime.faults import IndexFault
from weft.script import from_source
from weft.support.errors import UnsupportedError
from weft.tir.lowering.trusted_parts import refuse_trusted_parts

COMPUTED = "expected no pointer that is computed, got one in"
PROGRAMS = {
    "the data of a buffer by another name": (
        "with T.LetStmt(A.data) as q:\n"
        "        V = T.decl_buffer((n,), 'int32', data=q)\n"
        "        V[n - 1] = 7",
        f"{COMPUTED} the value of q",
    ),
    "the address of an element": (
        "with T.LetStmt(T.address_of(A[2])) as q:\n"
        "        V = T.Buffer((n,), 'int32', data=q)\n"
        "        V[n - 1] = 7",
        f"{COMPUTED} the value of q",
    ),
    "a pointer in an expression": (
        "q = T.handle('int32')\n    M.inner(T.Let(q, where={q: A.data}))",
        f"{COMPUTED} the value of q",
    ),
    "a pointer that is chosen": (
        "M.inner(T.if_then_else(n > 0, A.data, A.data))",
        f"{COMPUTED} a choice",
    ),
    "a pointer that is selected": (
        "M.inner(T.Select(n > 0, A.data, A.data))",
        f"{COMPUTED} a choice",
    ),
    "a pointer in memory": (
        "P = T.alloc_buffer((1,), 'handle')\n    P[0] = A.data",
        f"{COMPUTED} a store to P",
    ),
    "an array of any size": (
        "T.evaluate(T.tvm_call_packed('f', T.tvm_stack_make_array(A.data, "
        "T.tvm_stack_make_shape(1000), 0, 1, T.int32(0), 0)))",
        "whether the memory is as large as the array is not known",
    ),
    "the range of a loop": (
        "for i in T.serial(n, annotations={'weft.range': [T.int64(0), T.int64(3)]}):\n"
        "        A[i] = 7",
        "the annotation weft.range of the loop i is for lowering itself",
    ),
    "a declaration": (
        "T.func_attr({'weft.declared': {'written': [], 'unknown': [], 'returns': ''}})",
        "the attribute weft.declared is for lowering itself",
    ),
    "a table of pointers": (
        "T.evaluate(T.table_get(A.data, 1000))",
        "tir.table_get is for lowering itself",
    ),
    "a conversion of what may be no number": (
        "A[T.unchecked_cast('int32', T.float32(1e30))] = 7",
        "tir.unchecked_cast is for lowering itself",
    ),
    "a function that calls itself": ("M.main(n - 1, A)", "got main -> main; write a loop"),
    "functions that call each other": ("M.again(n, A)", "got main -> again -> main; write a"),
}  # fmt: skip
MODULE = """
@I.ir_module
class M:
    @T.prim_func
    def main(n: T.int32, A: T.Buffer((4,), "int32")):
        {body}

    @T.prim_func
    def inner(B: T.Buffer((4,), "int32")):
        B[0] = 1

    @T.prim_func
    def again(n: T.int32, A: T.Buffer((4,), "int32")):
        {again}
{graph}"""
GRAPH = """
    @R.function
    def graph(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.add(x, x)
"""


def module_of(body, graph=""):
    again = "M.main(n, A)" if "M.again" in body else "A[0] = 1"
    indented = body.replace("\n    ", "\n        ")
    return from_source(MODULE.format(body=indented, again=again, graph=graph))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_cannot_be_tested_is_refused(kind):
    body, message = PROGRAMS[kind]
    module = module_of(body)
    with pytest.raises(UnsupportedError) as refusal:
        weft.build(module)
    assert message in str(refusal.value)
    assert len(str(refusal.value).splitlines()) <= 10


@pytest.mark.parametrize("entry", [relax.build, weft.compile])
def test_kernels_beside_a_graph_are_refused_too(entry):
    body, message = PROGRAMS["the range of a loop"]
    with pytest.raises(UnsupportedError, match=message):
        entry(module_of(body, GRAPH))


def test_kernels_of_a_legalisation_are_refused_too():
    body, message = PROGRAMS["the range of a loop"]
    forged = module_of(body)["main"]

    def legalize(builder, call):
        return relax.call_tir(builder.add_func(forged, "forged"), call.args, call.struct_info)

    x = relax.Var("x", relax.TensorStructInfo((4,), "int32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.negative(x)))
    passes = relax.transform.LegalizeOps({"relax.negative": legalize})
    with pytest.raises(UnsupportedError, match=message):
        relax.build(builder.get(), relax_pipeline=passes)


def test_pointers_from_elsewhere_are_the_callers_own():
    body = "with T.LetStmt(T.reinterpret('handle', T.uint64(0))) as q:\n        A[n] = 7"
    x = np.zeros(4, "int32")
    weft.build(module_of(body))["main"](2, x)
    assert x.tolist() == [0, 0, 7, 0]


RAW = """
@I.ir_module
class M:
    @T.prim_func
    def inner(p: T.handle("int32"), n: T.int32):
        V = T.decl_buffer((1024,), "int32", data=p)
        for i in range(n):
            V[i] = 7

    @T.prim_func
    def main(n: T.int32, A: T.Buffer((4,), "int32"), q: T.handle("int32")):
        M.inner({argument}, n)
"""


@pytest.mark.parametrize(
    "argument", ["A", "A.data", "T.address_of(A[n])", "A.access_ptr('rw')", "A[1]"]
)
def test_memory_of_buffers_is_no_raw_pointer(argument):
    with pytest.raises(UnsupportedError, match="main: inner takes p as a raw pointer, of whose"):
        weft.build(from_source(RAW.format(argument=argument)))


def test_a_raw_pointer_stays_one():
    x = np.zeros(4, "int32")
    weft.build(from_source(RAW.format(argument="q")))["main"](3, x, x.ctypes.data)
    assert x.tolist() == [7, 7, 7, 0]


HANDED_ON = """
@I.ir_module
class M:
    @T.prim_func
    def inner(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(7)

    @T.prim_func
    def main(p: T.handle("float32")):
        M.inner({argument})
"""


@pytest.mark.parametrize(
    "argument", ["p", "T.tvm_access_ptr(T.type_annotation('float32'), p, 0, 4, 2)"]
)
def test_a_raw_pointer_that_is_handed_on_is_an_address(argument):
    built = weft.build(from_source(HANDED_ON.format(argument=argument)))["main"]
    with pytest.raises(IndexFault, match="expected the address of memory for p, got 0"):
        built(None)
    x = np.zeros(4, "float32")
    built(x.ctypes.data)
    assert x.tolist() == [7] * 4


def chain(length):
    """``f0`` calls ``f1``, which calls ``f2``, and so on."""
    text = "@I.ir_module\nclass M:\n"
    for at in range(length):
        call = f"M.f{at + 1}(A)" if at + 1 < length else "A[0] = 1"
        text += f'    @T.prim_func\n    def f{at}(A: T.Buffer((4,), "int32")):\n        {call}\n'
    return from_source(text)


def test_a_long_chain_of_calls_is_refused():
    refuse_trusted_parts(chain(100))
    for length in (101, 2000):
        with pytest.raises(UnsupportedError, match="f0: expected calls .* at most 100 deep"):
            weft.build(chain(length))
