"""FillTails: whole vectors in memory of the kernel's own, guards elsewhere."""

from __future__ import annotations

import numpy as np

import weft
from weft.script import from_source
from weft.script import tir as T
from weft.tir.transform import FillTails


def test_the_last_vector_of_own_memory_is_whole(becomes):
    @T.prim_func
    def before(a: T.Buffer((13,), "float32"), c: T.Buffer((13,), "float32")):
        for o in range(2):
            x = T.allocate([8], "float32", "global")
            x_1 = T.decl_buffer((8,), data=x)
            y = T.allocate([8], "float32", "global")
            y_1 = T.decl_buffer((8,), data=y)
            for v in range(8):
                if o * 8 + v < 13:
                    T.attr(T.StringImm(""), "pragma_fill_tail", 1)
                    x_1[v] = a[o * 8 + v]
            for v in T.vectorized(8):
                if o * 8 + v < 13 and o < 7:
                    T.attr(T.StringImm(""), "pragma_fill_tail", 1)
                    y_1[v] = x_1[v] * T.float32(2)
            for v in range(8):
                if o * 8 + v < 13:
                    c[o * 8 + v] = y_1[v]

    @T.prim_func
    def expected(a: T.Buffer((13,), "float32"), c: T.Buffer((13,), "float32")):
        for o in range(2):
            x = T.allocate([8], "float32", "global")
            x_1 = T.decl_buffer((8,), data=x)
            y = T.allocate([8], "float32", "global")
            y_1 = T.decl_buffer((8,), data=y)
            for v in range(8):
                if o * 8 + v < 13:
                    x_1[v] = a[o * 8 + v]
                else:
                    x_1[v] = T.float32(0)
            for v in T.vectorized(8):
                if o < 7:
                    y_1[v] = x_1[v] * T.float32(2)
            for v in range(8):
                if o * 8 + v < 13:
                    c[o * 8 + v] = y_1[v]

    becomes(FillTails(), before, expected)


MARK = 'T.attr(T.StringImm(""), "pragma_fill_tail", 1)'
NOT_OWN = f"""
@T.prim_func
def main(a: T.Buffer((13,), "float32"), c: T.Buffer((16,), "float32")):
    for o in range(2):
        x = T.allocate([7], "float32", "global")
        x_1 = T.decl_buffer((7,), data=x)
        y = T.allocate([8], "float32", "global")
        y_1 = T.decl_buffer((8,), data=y)
        y_1[7] = T.float32(1)
        for v in T.vectorized(8):
            if o * 8 + v < 7:
                {MARK}
                x_1[v] = T.float32(2)
        for v in T.vectorized(8):
            if o * 8 + v < 13:
                {MARK}
                y_1[v] = T.float32(3)
        for v in T.vectorized(8):
            if o * 8 + v < 13:
                {MARK}
                c[o * 8 + v] = T.float32(4)
"""


def test_guards_stay_where_there_is_no_room_or_others_write(becomes):
    before, expected = (from_source(text) for text in (NOT_OWN, NOT_OWN.replace(f"{MARK}\n", "\n")))
    becomes(FillTails(), before, expected)


def test_an_annotated_block_has_the_same_results():
    @T.prim_func
    def main(a: T.Buffer((13,), "float32"), c: T.Buffer((13,), "float32")):
        for o in range(2):
            with T.block("root"):
                T.reads(a[0:13])
                T.writes(c[0:13])
                x = T.alloc_buffer((13,), "float32")
                for v in T.vectorized(8):
                    with T.block("x"):
                        i = T.axis.spatial(13, o * 8 + v)
                        T.where(o * 8 + v < 13)
                        T.block_attr({"pragma_fill_tail": 1})
                        x[i] = a[i] * a[i]
                for v in range(8):
                    with T.block("c"):
                        i = T.axis.spatial(13, o * 8 + v)
                        T.where(o * 8 + v < 13)
                        c[i] = x[i] + T.float32(1)

    data, out = np.arange(13, dtype="float32"), np.zeros(13, "float32")
    arrays = weft.nd.array(data), weft.nd.array(out)
    weft.build(main)["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), data * data + 1)
