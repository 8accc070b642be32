"""What models in WebAssembly call: the multiply-add of float64."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.lib.node import missing, node
from weft.backends.wasm.link import link
from weft.backends.wasm.package import runtime_objects

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
const { exports } = (await WebAssembly.instantiate(readFileSync("m.wasm"))).instance;
const rows = new Float64Array(readFileSync("in.bin").buffer.slice(0));
const results = new Float64Array(rows.length / 3);
results.forEach((_, i) => (results[i] = exports.fma(...rows.subarray(3 * i, 3 * i + 3))));
writeFileSync("out.bin", new Uint8Array(results.buffer));
"""


def test_a_multiply_add_rounds_once(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20000, 3)) * 2.0 ** rng.integers(-60, 60, (20000, 3))
    rows[::3, 2] = -rows[::3, 0] * rows[::3, 1]  # the rest of a product
    rows[1::3, 2] = -rows[1::3, 0] * rows[1::3, 1] * (1 + rng.integers(-3, 4, 6667) * 2.0**-52)
    rows[:8] = [
        [0.0, 3.0, -0.0], [-0.0, 3.0, -0.0], [np.inf, 0.0, 1.0], [np.nan, 1.0, 1.0],
        [1e308, 10.0, 1.0], [1.0, np.inf, -np.inf], [2.0, 3.0, np.inf], [0.0, 0.0, 5e-324],
    ]  # fmt: skip
    (tmp_path / "m.wasm").write_bytes(link(runtime_objects(), ["fma"]).code)
    (tmp_path / "in.bin").write_bytes(rows.tobytes())
    (tmp_path / "run.mjs").write_text(SCRIPT, encoding="utf-8")
    node(["run.mjs"], tmp_path)
    results = np.frombuffer((tmp_path / "out.bin").read_bytes())
    library = ctypes.CDLL("libm.so.6").fma
    library.restype, library.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    np.testing.assert_array_equal(results, [library(*row) for row in rows.tolist()])
