"""What the texts show without running it parses, its names supplied, and means what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft

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
