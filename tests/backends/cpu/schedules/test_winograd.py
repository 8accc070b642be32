"""The schedule of Winograd's algorithm: the same results, memory of one band, registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import dlight, te, tir, topi
from weft.backends.cpu.schedules import winograd
from weft.driver.pipeline import lower_tir
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.interp import run
from weft.tir.stmt import DeclBuffer, For, ForKind, LetStmt
from weft.topi.nn.winograd import winograd_function
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form

pytestmark = pytest.mark.sampled(3)

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
RNG = np.random.default_rng(6)

FORMS = {
    "bands": Form(4, 1, (1, 1, 1, 1), (1, 2, 6, 7, 4), 4, 4, 4),
    "bands of images": Form(2, 2, (1, 0, 0, 1), (2, 1, 4, 3, 4), 8, 4, 8),
    "one band": Form(2, 4, (0, 1, 0, 1), (2, 2, 5, 4, 4), 8, 4, 4),
    "bands of a kernel": Form(4, 1, (1, 1, 1, 1), (1, 2, 6, 7, 4), 8, 4, 4, takes_kernel=True),
    "a kernel in one panel": Form(2, 2, (1, 0, 0, 1), (2, 1, 4, 3, 4), 8, 4, 8, takes_kernel=True),
    "one band of a kernel": Form(2, 4, (0, 1, 0, 1), (2, 2, 5, 4, 4), 16, 4, 8, takes_kernel=True),
    "a panel of a whole way": Form(
        2, 2, (1, 1, 1, 1), (1, 32, 4, 2, 4), 16, 8, 8, takes_kernel=True
    ),
    "blocks wider than vectors": Form(2, 2, (1, 1, 1, 1), (1, 1, 4, 5, 8), 8, 8, 8),
}
ALL = frozenset([BATCH, HEIGHT, WIDTH])
SYMBOLIC = {
    "any batch": Form(4, 2, (1, 1, 1, 1), (1, 2, 7, 6, 4), 4, 4, 4, symbols=frozenset([BATCH])),
    "any width": Form(
        4, 3, (1, 1, 0, 1), (2, 1, 5, 16, 4), 8, 4, 4, symbols=frozenset([WIDTH]), groups=2
    ),
    "any height": Form(
        2, 5, (1, 1, 1, 1), (1, 2, 5, 6, 4), 8, 4, 8, symbols=frozenset([HEIGHT]), groups=3
    ),
    "any image": Form(2, 2, (1, 1, 1, 1), (1, 1, 8, 8, 4), 8, 4, 8, symbols=ALL, groups=3),
    "any image in groups of its own": Form(
        4, 3, (0, 1, 1, 0), (1, 1, 8, 8, 4), 8, 4, 8, symbols=ALL
    ),
}
SIZES = [(0, 7, 6), (1, 1, 1), (2, 3, 17)]


def scheduled(func):
    """Every step checked, and the trace replayed (``conftest.py``)."""
    sch = tir.Schedule(func)
    assert winograd.schedule(sch, winograd.stages_of(sch), machine_of(SMALL))
    return sch.mod["main"]


@pytest.mark.parametrize("name", FORMS)
def test_results_are_kept(name):
    form = FORMS[name]
    func = winograd_function(form)
    made = scheduled(func)
    weights = form.kernel if form.takes_kernel else form.weights
    arrays = [RNG.normal(size=shape).astype("float32") for shape in (form.data, weights)]
    shape = (form.data[0], form.filters // form.block, *form.size, form.block)
    out = [np.full(shape, np.nan, "float32") for _ in range(3)]
    run(func, *arrays, out[0])
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    run(lowered, *arrays, out[1])  # which knows the bounds of all memory
    np.testing.assert_allclose(out[1], out[0], rtol=1e-4, atol=1e-4)
    given = [weft.nd.array(array) for array in (*arrays, out[2])]
    weft.build(made.with_attr("global_symbol", "main"), SMALL)["main"](*given)
    np.testing.assert_allclose(given[-1].numpy(), out[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_results_of_any_size_are_kept(name):
    form = SYMBOLIC[name]
    func = winograd_function(form)
    made = scheduled(func)
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    built = weft.build(made.with_attr("global_symbol", "main"), SMALL)["main"]
    for sizes in SIZES:
        batch, height, width = [
            size if axis in form.symbols else form.data[axis]
            for axis, size in zip((BATCH, HEIGHT, WIDTH), sizes, strict=True)
        ]
        data = (batch, form.data[1], height, width, form.data[4])
        arrays = [RNG.normal(size=shape).astype("float32") for shape in (data, form.weights)]
        top, left, bottom, right = form.padding
        size = (height + top + bottom - 2, width + left + right - 2)
        shape = (batch, form.filters // form.block, *size, form.block)
        out = [np.full(shape, np.nan, "float32") for _ in range(3)]
        run(func, *arrays, out[0])
        run(lowered, *arrays, out[1])
        np.testing.assert_allclose(out[1], out[0], rtol=1e-4, atol=1e-4)
        given = [weft.nd.array(array) for array in (*arrays, out[2])]
        built(*given)
        np.testing.assert_allclose(given[-1].numpy(), out[0], rtol=1e-4, atol=1e-4)


def bands(form):
    """The loop over bands of a scheduled and lowered function."""
    lowered = lower_tir()(weft.IRModule({"main": scheduled(winograd_function(form))}))["main"]
    [parallel] = [loop for loop in collect(lowered.body, For) if loop.kind is ForKind.PARALLEL]
    return parallel


def memory_of(loop):
    """Name -> shape of each buffer in the body of a loop."""
    return {decl.buffer.name: [int(extent) for extent in decl.buffer.shape]
            for decl in collect(loop, DeclBuffer)}  # fmt: skip


def test_each_band_has_memory_of_its_own_and_no_more():
    form = Form(4, 2, (1, 1, 1, 1), (1, 2, 16, 16, 4), 8, 8, 8)
    inside = memory_of(bands(form))
    assert inside["winograd_data"] == [1, 1, 6, 6, 2, 8, 4]
    assert inside["winograd_products"] == [1, 1, 6, 6, 1, 8, 8]
    assert inside["winograd_lines"] == [1, 1, 1, 1, 6, 18, 4]
    assert inside["winograd_tiles_local"] == [1, 1, 1, 1, 4, 4, 8]


@pytest.mark.parametrize(
    ("cpu", "register", "panel", "rows"), [("x86-64-v3", "ymm", 16, 6),
                                           ("skylake-avx512", "zmm", 32, 12)]
)  # fmt: skip
def test_products_keep_their_tile_in_registers(cpu, register, panel, rows):
    form = Form(4, 2, (1, 1, 1, 1), (1, 4, 48, 48, 16), 64, 16, panel)
    target = weft.target.Target(f"llvm -mcpu={cpu} -num-cores=1")
    func = winograd_function(form).with_attr("global_symbol", "main")
    made = dlight.cpu.Winograd().apply(func, target, False)
    text = weft.build(made.mod, target).get_source("asm")
    loops = re.split(r"^\.LBB\w+:|^\s+j\w+\s.*$", text, flags=re.MULTILINE)
    found = {body: re.findall(rf"vfmadd231ps\s.*%{register}(\d+)$", body, re.MULTILINE)
             for body in loops}  # fmt: skip
    # Of the loops in which each accumulator is used as often as the others, the largest.
    even = [body for body, used in found.items()
            if len({used.count(name) for name in used}) == 1]  # fmt: skip
    inner = max(even, key=lambda body: len(found[body]))
    assert len(set(found[inner])) == rows * 2
    assert "rsp" not in inner  # no spills


def test_only_a_panel_of_the_kernel_is_transformed_at_once():
    form = Form(4, 2, (1, 1, 1, 1), (1, 8, 8, 8, 4), 16, 4, 8, takes_kernel=True)
    lowered = lower_tir()(weft.IRModule({"main": scheduled(winograd_function(form))}))["main"]
    [weights] = [decl.buffer for decl in collect(lowered.body, DeclBuffer)
                 if decl.buffer.name == "weights"]  # fmt: skip
    assert [int(extent) for extent in weights.shape] == [36, 1, 32, 8]


def test_a_band_of_numbered_tiles_is_as_large_as_its_groups_whatever_the_image_is():
    form = Form(4, 4, (1, 1, 1, 1), (1, 2, 16, 16, 4), 8, 8, 8, symbols=ALL, groups=3)
    inside = memory_of(bands(form))
    assert inside["winograd_data"] == [1, 3, 6, 6, 2, 4, 4]
    assert inside["winograd_products"] == [1, 3, 6, 6, 1, 4, 8]
    assert inside["winograd_lines"] == [1, 1, 1, 1, 6, 6, 4]


def test_the_last_band_computes_no_group_without_tiles():
    form = Form(4, 2, (1, 1, 1, 1), (1, 1, 16, 16, 4), 4, 4, 4, symbols=ALL, groups=4)
    groups = [
        loop for loop in collect(bands(form).body, For) if not isinstance(loop.extent, IntImm)
    ]
    assert len(groups) == 3  # of the data, the products and the results


def test_a_tile_is_found_by_divisions_once():
    form = Form(4, 4, (1, 1, 1, 1), (1, 2, 16, 16, 4), 8, 8, 8, symbols=frozenset([HEIGHT, WIDTH]))
    lowered = lower_tir()(weft.IRModule({"main": scheduled(winograd_function(form))}))["main"]
    divisions = [part for part in collect(lowered.body, (FloorDiv, FloorMod))
                 if not isinstance(part.b, IntImm)]  # fmt: skip
    named = [part for let in collect(lowered.body, LetStmt)
             for part in collect(let.value, (FloorDiv, FloorMod))
             if not isinstance(part.b, IntImm)]  # fmt: skip
    assert len(divisions) == len(named) == 4  # row and column, of the data and of the result


def test_other_functions_are_left_to_other_rules():
    x = te.placeholder((8, 8), name="x")
    func = te.create_prim_func([x, topi.exp(x)])
    assert dlight.cpu.Winograd().apply(func, SMALL, False) is None
    form = Form(2, 1, (1, 1, 1, 1), (1, 1, 1, 1, 4), 4, 4, 4)
    assert dlight.cpu.Winograd().apply(winograd_function(form), SMALL, False) is None  # one tile
    cuda = weft.target.Target("cuda")
    assert dlight.cpu.Winograd().apply(winograd_function(FORMS["bands"]), cuda, False) is None
