"""suggest_layout_transforms: blocks and inputs that follow new layouts of outputs."""

import numpy as np
import pytest

from weft import tir
from weft.relax.analysis import suggest_layout_transforms
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import IndexMap, interp


def last(n, c, h):
    return n, h, c


def blocks(n, c, h):
    return n, c // 2, h, c % 2


def scheduled(func, suggestions):
    """The function with all suggestions carried out, each buffer once."""
    sch = tir.Schedule(func)
    done = set()
    for block, suggestion in suggestions.items():
        for item, index_map in suggestion.items():
            if item is block:
                sch.transform_block_layout(block.name_hint, index_map)
            elif item not in done:
                done.add(item)
                sch.transform_layout(sch.get_block(block.name_hint), item, index_map)
    return sch.mod["main"]


def by_name(suggestions):
    """How each buffer and block changes, by name."""
    found = {}
    for block, suggestion in suggestions.items():
        for item, index_map in suggestion.items():
            found[block.name_hint if item is block else item.name] = index_map
    return found


def moved(index_map, array):
    """An array in the layout of an index map."""
    if index_map is None:
        return array
    made = np.zeros([int(d.value) for d in index_map.map_shape(array.shape)], array.dtype)
    for place in np.ndindex(*array.shape):
        made[tuple(int(i.value) for i in index_map.map_indices(list(place)))] = array[place]
    return made


def suggested(func, layout, *names):
    """The names that change, after a check that the function still computes the same."""
    suggestions = suggest_layout_transforms(func, [layout])
    found = by_name(suggestions)
    shapes = [[int(d.value) for d in func.buffer_map[p].shape] for p in func.params]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    inputs = [func.buffer_map[p].name for p in func.params[:-1]]
    laid = [moved(found.get(n), a) for n, a in zip(inputs, arrays, strict=False)]
    interp.run(func, *arrays)
    out = moved(IndexMap.from_func(layout) if found else None, arrays[-1])
    after = np.zeros_like(out)
    interp.run(scheduled(func, suggestions), *laid, after)
    np.testing.assert_array_equal(after, out)
    return {name: item.to_python_string().replace(",)", ")") for name, item in found.items()}


@T.prim_func(private=True)
def relu(A: T.Buffer((1, 4, 3), "float32"), R: T.Buffer((1, 4, 3), "float32")):
    for n, c, h in T.grid(1, 4, 3):
        with T.block("relu"):
            vn, vc, vh = T.axis.remap("SSS", [n, c, h])
            R[vn, vc, vh] = T.max(A[vn, vc, vh], T.float32(0))


@pytest.mark.parametrize("layout", [last, blocks])
def test_element_wise(layout):
    found = suggested(relu, layout)
    assert found.keys() == {"relu", "A", "R"}
    assert len(set(found.values())) == 1


def test_an_operand_of_fewer_dimensions():
    @T.prim_func(private=True)
    def add(A: T.Buffer((1, 4, 3), "float32"), B: T.Buffer((4, 3), "float32"),
            C: T.Buffer((1, 4, 3), "float32")):  # fmt: skip
        for n, c, h in T.grid(1, 4, 3):
            with T.block("add"):
                vn, vc, vh = T.axis.remap("SSS", [n, c, h])
                C[vn, vc, vh] = A[vn, vc, vh] + B[vc, vh]

    assert suggested(add, last)["B"] == "lambda c, h: (h, c)"
    assert suggested(add, blocks)["B"] == "lambda c, h: (c // 2, h, c % 2)"


def test_reduced_axes_stay_where_they_are():
    @T.prim_func(private=True)
    def total(A: T.Buffer((2, 4, 3, 5), "float32"), B: T.Buffer((2, 4, 3), "float32")):
        for n, c, h, k in T.grid(2, 4, 3, 5):
            with T.block("total"):
                vn, vc, vh, vk = T.axis.remap("SSSR", [n, c, h, k])
                with T.init():
                    B[vn, vc, vh] = T.float32(0)
                B[vn, vc, vh] = B[vn, vc, vh] + A[vn, vc, vh, vk]

    found = suggested(total, last)
    assert found.keys() == {"total", "A", "B"}
    assert found["A"] == "lambda n, c, h, d: (n, h, c, d)"


def test_a_read_in_another_order_stays():
    @T.prim_func(private=True)
    def transpose(A: T.Buffer((3, 4, 1), "float32"), B: T.Buffer((1, 4, 3), "float32")):
        for n, c, h in T.grid(1, 4, 3):
            with T.block("transpose"):
                vn, vc, vh = T.axis.remap("SSS", [n, c, h])
                B[vn, vc, vh] = A[vh, vc, vn]

    assert suggested(transpose, last).keys() == {"transpose", "B"}


def test_a_buffer_that_is_read_in_two_ways_stays():
    @T.prim_func(private=True)
    def both(A: T.Buffer((1, 4, 4), "float32"), B: T.Buffer((1, 4, 4), "float32")):
        for n, c, h in T.grid(1, 4, 4):
            with T.block("both"):
                vn, vc, vh = T.axis.remap("SSS", [n, c, h])
                B[vn, vc, vh] = A[vn, vc, vh] + A[vn, vh, vc]

    assert suggested(both, last).keys() == {"both", "B"}


def test_a_buffer_in_between_follows_its_reader():
    @T.prim_func(private=True)
    def chain(A: T.Buffer((1, 4, 3), "float32"), C: T.Buffer((1, 4, 3), "float32")):
        B = T.alloc_buffer((1, 4, 3))
        for n, c, h in T.grid(1, 4, 3):
            with T.block("first"):
                vn, vc, vh = T.axis.remap("SSS", [n, c, h])
                B[vn, vc, vh] = A[vn, vc, vh] * T.float32(2)
        for n, c, h in T.grid(1, 4, 3):
            with T.block("second"):
                vn, vc, vh = T.axis.remap("SSS", [n, c, h])
                C[vn, vc, vh] = B[vn, vc, vh] + T.float32(1)

    found = suggested(chain, last)
    assert found.keys() == {"first", "second", "A", "B", "C"}


def test_what_is_too_complex_has_no_suggestion():
    @T.prim_func(private=True)
    def nested(A: T.Buffer((2, 4, 3), "float32"), B: T.Buffer((2, 4, 3), "float32")):
        for n in range(2):
            with T.block("outer"):
                vn = T.axis.spatial(2, n)
                for c, h in T.grid(4, 3):
                    with T.block("inner"):
                        vc, vh = T.axis.remap("SS", [c, h])
                        B[vn, vc, vh] = A[vn, vc, vh]

    assert suggest_layout_transforms(nested, [last]) == {}
    assert suggest_layout_transforms(relu, []) == {}
    assert suggest_layout_transforms(relu, [lambda n, c, h: (n, h, c // 3, c % 3)]) == {}  # pads


def test_wrong_transformations_are_errors():
    with pytest.raises(IRValueError, match="at most 2 as the PrimFunc has parameters, got 3"):
        suggest_layout_transforms(relu, [last, last, last])
    with pytest.raises(IRValueError, match="R: expected an index map of 3 dimensions, got"):
        suggest_layout_transforms(relu, [lambda n, c: (c, n)])
    with pytest.raises(IRTypeError, match=r"expected a tir\.IndexMap or a function, got int"):
        suggest_layout_transforms(relu, [2])
