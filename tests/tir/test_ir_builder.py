import numpy as np
import pytest

from weft.tir import ir_builder
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import AttrStmt, For, ForKind


def execute(build, count=6, dtype="int32"):
    """Run ``build(ib, out)`` on a zeroed output of ``count`` elements."""
    buffer = decl_buffer([count], dtype, "out")
    ib = ir_builder.create()
    build(ib, ib.buffer_ptr(buffer))
    result = np.zeros(count, dtype)
    run(PrimFunc([buffer], ib.get()), result)
    return result.tolist()


def test_for_and_if():
    def build(ib, out):
        with ib.for_range(1, 5, "i") as i:
            with ib.if_scope(i % 2 == 0):
                out[i] = i * 10
            with ib.else_scope():
                out[i] = i

    assert execute(build) == [0, 1, 20, 3, 40, 0]


def test_while_allocate_and_let():
    def build(ib, out):
        state = ib.allocate("int32", [1], "state")
        state[0] = 0
        with ib.while_loop(state[0] < 4):
            twice = ib.let("twice", state[0] * 2)
            out[state[0]] = twice
            state[0] = state[0] + 1

    assert execute(build) == [0, 2, 4, 6, 0, 0]


def test_new_scope_and_loop_kinds():
    def build(ib, out):
        with ib.new_scope():
            with ib.for_range(0, 3, kind="unroll") as i:
                out[i] = 7

    assert execute(build) == [7, 7, 7, 0, 0, 0]
    ib = ir_builder.create()
    out = ib.buffer_ptr(decl_buffer([3], "int32"))
    with ib.for_range(0, 3, kind="parallel") as i:
        out[i] = 1
    loop = ib.get()
    assert isinstance(loop, For)
    assert loop.kind is ForKind.PARALLEL


def test_flat_index_on_two_dimensions():
    buffer = decl_buffer([2, 3], "int32", "out")
    ib = ir_builder.create()
    out = ib.buffer_ptr(buffer)
    with ib.for_range(0, 6, "i") as i:
        out[i] = i
    result = np.zeros((2, 3), "int32")
    run(PrimFunc([buffer], ib.get()), result)
    np.testing.assert_array_equal(result, np.arange(6).reshape(2, 3))


def test_misuse_is_named():
    ib = ir_builder.create()
    with pytest.raises(ValueError, match="must follow an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match="expected one of serial"):
        ib.for_range(0, 3, kind="sideways")
    out = ib.buffer_ptr(decl_buffer([3], "int32", "out"))
    with pytest.raises(TypeError, match="out holds int32, the value is float32"):
        out[0] = ir_builder.as_prim_expr(1.5)
    ib.for_range(0, 3)
    with pytest.raises(ValueError, match="1 scopes are still open"):
        ib.get()


def test_memory_made_by_a_builder_is_a_parameter():
    ib = ir_builder.create()
    A = ib.pointer("float32", name="A")
    A[0] = 1.0
    func = PrimFunc([A], ib.get())
    assert func.buffer_map[func.params[0]] is A.asobject()
    assert A.asobject().name == "A"


def test_loops_without_a_name_are_numbered():
    ib = ir_builder.create()
    names = []
    for _ in range(5):
        with ib.for_range(0, 4) as i:
            names.append(i.name)
            ib.emit(i)
        with ib.for_range(0, 4, name="row") as row:
            assert row.name == "row"
            ib.emit(row)
    assert names == ["i", "j", "k", "i_0", "i_1"]


def test_attributes_take_buffers_axes_and_texts():
    ib = ir_builder.create()
    n = Var("n", "int32")
    thread = ib.thread_axis((0, n), "threadIdx.x", "tx")
    out = ib.buffer_ptr(decl_buffer([8], "float32", "out"))
    ib.scope_attr(thread, "thread_extent", n)
    ib.scope_attr(out, "storage_scope", "global")
    out[thread] = 1.0
    outer = ib.get()
    assert isinstance(outer, AttrStmt)
    assert outer.node is thread
    assert str(outer.value) in ("T.max(1, n)", "T.max(n, 1)")
    assert outer.body.node is out.buffer
    assert outer.body.value.value == "global"
    assert outer.body.body.indices[0] is thread.var


def test_empty_scopes_do_nothing():
    ib = ir_builder.create()
    with ib.for_range(0, 4):
        pass
    ib.scope_attr("", "mark", 1)
    loop, attr = ib.get().seq
    assert str(loop.body) == str(attr.body) == "T.evaluate(0)"
