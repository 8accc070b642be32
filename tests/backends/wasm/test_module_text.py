"""The JavaScript of a model: extents mean there what they mean in Python; parts come as needed."""

from __future__ import annotations

import json
import random

import pytest

from tests.lib.node import missing, node
from weft.backends.wasm.module_text import RELAXED_PROBE, _chosen, js_expression
from weft.runtime.extent import evaluate
from weft.runtime.faults import DivisionFault

needs_node = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
INFIX = ["+", "-", "*", "//", "%"]
DEFINITIONS = """\
const div = (a, b) => Math.floor(a / b), mod = (a, b) => a - b * Math.floor(a / b);
"""


def extent(rng, depth):
    """A random extent over n and m."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["n", "m", str(rng.randrange(-3, 9))])
    a, b = extent(rng, depth - 1), extent(rng, depth - 1)
    kind = rng.randrange(5)
    if kind == 0:
        return f"{rng.choice(['min', 'max'])}({a}, {b})"
    if kind == 1:
        return f"({a} if {b} {rng.choice(['<', '<=', '==', '!=', '>', '>='])} {a} else {b})"
    return f"abs({a})" if kind == 2 else f"({a} {rng.choice(INFIX)} {b})"


@needs_node
def test_extents_are_what_they_are_in_python(tmp_path):
    rng = random.Random(0)
    texts = [extent(rng, 4) for _ in range(500)]
    values = [{"n": rng.randrange(0, 50), "m": rng.randrange(1, 9)} for _ in texts]
    rows = [
        f"((v_n, v_m) => {js_expression(text)})({given['n']}, {given['m']})"
        for text, given in zip(texts, values, strict=True)
    ]
    script = f"{DEFINITIONS}console.log(JSON.stringify([{', '.join(rows)}]));"
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    results = json.loads(node(["run.mjs"], tmp_path))
    for text, given, result in zip(texts, values, results, strict=True):
        try:
            wanted = evaluate(text, given)
        except DivisionFault:
            continue  # NaN or infinite there, which is no size
        assert result == wanted, (text, given)


def test_lines_of_a_feature_come_with_it_alone():
    loader = "always;\n  both; //? planned\n// a comment\nnever; //? values\n"
    assert [*_chosen(loader, {"planned"})] == ["always;", "both;"]


@needs_node
@pytest.mark.parametrize(("flags", "valid"), [(["--experimental-wasm-relaxed-simd"], "true")])
def test_the_probe_is_a_module_where_there_is_relaxed_simd(flags, valid, tmp_path):
    probe = ",".join(map(str, RELAXED_PROBE))
    script = f"console.log(WebAssembly.validate(Uint8Array.of({probe})))"
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    assert node([*flags, "run.mjs"], tmp_path).strip() == valid
