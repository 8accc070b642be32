"""What the texts show without running it parses, its names supplied, and means what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft import te, tir, topi

SNIPPETS = Path(__file__).parent / "snippets"


def parse(name: str, **known: object):
    text = (SNIPPETS / f"{name}.txt").read_text(encoding="utf-8")
    return weft.script.from_source(text, known, check_well_formed=False)


def run(function, *arrays: np.ndarray) -> list[np.ndarray]:
    """Build the function for the host and run it on copies of the arrays."""
    built = weft.build(function, target="llvm")
    given = [weft.nd.array(array.copy()) for array in arrays]
    name = function.attrs["global_symbol"]
    built[str(name)](*given)
    return [array.numpy() for array in given]


def test_two_dataflow_blocks_parse_with_an_allocation_between_them():
    names = {name: weft.ir.GlobalVar(name) for name in ("linear0", "relu0", "linear1")}
    function = parse("two_dataflow_blocks", **names)
    blocks = function.body.blocks
    kinds = [isinstance(block, weft.relax.DataflowBlock) for block in blocks]
    assert kinds == [True, False, True]
    assert [p.name_hint for p in function.params] == ["x", "w0", "b0", "w1", "b1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("before_inline", lambda a: a * 2 + 1), ("before_fuse", lambda a: a * 2)],
)
def test_elementwise_functions_of_the_assignment_run(name, expected):
    a = np.random.default_rng(0).standard_normal((128, 128)).astype("float32")
    _, out = run(parse(name), a, np.zeros_like(a))
    np.testing.assert_array_equal(out, expected(a).astype("float32"))


def test_scheduled_convolution_of_the_assignment_runs():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 1, 28, 28)).astype("float32")
    w = rng.standard_normal((32, 1, 3, 3)).astype("float32")
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), axis=(1, 2))
    expected = np.einsum("nyxij,fij->nfyx", windows, w[:, 0])
    *_, out = run(parse("target_func"), x, w, np.zeros((4, 32, 26, 26), "float32"))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("decompose_first", [True, False])
def test_section_4_of_the_assignment_gives_its_target_function(decompose_first):
    """Inline, split, reorder, decompose, fuse, parallel, unroll, vectorise: the text's own target.

    The text lists the steps in this order; decomposing last gives the same. The target has the
    32-bit indices of tensor expressions; ``emit_te`` has had 64 since 2022.
    """
    x = te.placeholder((4, 1, 28, 28), name="rxplaceholder")
    w = te.placeholder((32, 1, 3, 3), name="rxplaceholder_1")
    func = te.create_prim_func([x, w, topi.nn.conv2d(x, w, 1, 0, 1)])
    sch = tir.Schedule(weft.IRModule({"conv2d": func}))
    block = sch.get_block("conv2d_nchw", "conv2d")
    sch.compute_inline(sch.get_block("pad_temp", "conv2d"))
    n, f, y, x, rc, _, _ = loops = sch.get_loops(block)
    split = [sch.split(loop, [None, factor]) for loop, factor in ((n, 2), (f, 4), (y, 2), (x, 2))]
    outer, inner = [parts[0] for parts in split], [parts[1] for parts in split]
    sch.reorder(*outer, *loops[4:], *inner)
    parts = [sch.decompose_reduction(block, rc), block] if decompose_first else [block]
    sch.parallel(sch.fuse(*outer))
    for part in parts:
        inner = sch.get_loops(part)[-4:]
        sch.unroll(sch.fuse(*inner[:2]))
        sch.vectorize(sch.fuse(*inner[2:]))
    if not decompose_first:
        sch.decompose_reduction(block, rc)
    plain = sch.mod["conv2d"].without_attr("tir.noalias").without_attr("global_symbol")
    target = parse("target_func").without_attr("tir.noalias").without_attr("global_symbol")
    weft.ir.assert_structural_equal(plain, target, map_free_vars=True)
