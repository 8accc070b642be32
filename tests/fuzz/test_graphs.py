"""Random graphs: reference, every pass, native code and bytecode agree.

``make test`` runs fixed seeds for a minute at most; ``make fuzz MINUTES=30`` runs new ones. A
failing graph is printed as the shortest program that shows it, and saved.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.lib.graph_forms import FORMS
from tests.lib.graph_pool import Pool, Value, is_exact
from tests.lib.graph_recipes import RECIPES
from tests.lib.random_graphs import (
    LARGEST,
    Given,
    Graph,
    Step,
    build,
    problem_of,
    random_graph,
    report,
    script,
    shrunk,
)
from weft import topi
from weft.driver.pipeline import get_pipeline
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.relax.expr import Call
from weft.relax.op.definition import FUNCTIONS

pytestmark = pytest.mark.sampled(3)

NOT_OF_A_GRAPH = set(
    """
    assert_op call_builtin_with_ctx call_dps_packed call_inplace_packed call_packed call_pure_packed
    call_tir call_tir_inplace call_tir_with_grad couple_pairs hint_on_device invoke_closure
    invoke_pure_closure
    make_closure multinomial_from_uniform nn.dropout null_value print shape_of
    shape_to_tensor tensor_to_shape to_vdevice tree_ensemble wrap_param
    """.split()
)
"""Calls of something else, shapes, effects, devices, samples, what only passes write, and tables
that refer to themselves (tests/relax/op/test_classical.py has those)."""
ROOMS = ("builtin.", "ccl.", "dist.", "linalg.", "memory.", "vm.")
"""Rooms of operators that only passes write, that need several devices, or (``linalg``) that have
no result for some matrices, or factors whose signs are free: tests/relax/numerics has the rows."""
BLOCK = 8
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
SHARE = 1 / 3
"""Of the minutes: the other fuzzers have the rest."""


@pytest.mark.parametrize("block", range(3))
def test_graphs_keep_their_meaning(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        failure = report(seed)
        assert failure is None, failure


def test_a_seed_gives_the_same_graph():
    assert random_graph(11) == random_graph(11)


@pytest.mark.slow
def test_operators_shapes_and_dtypes_occur():
    operators, ranks, dtypes, symbolic, empty = Counter(), Counter(), Counter(), 0, 0
    for seed in range(1000, 2500):
        graph = random_graph(seed)
        operators.update(step.operator for step in graph.steps)
        if not graph.steps or seed % 10:
            continue
        _, values = build(graph)
        for value in values.values():
            assert value.array.size <= LARGEST
            ranks[value.ndim] += 1
            dtypes[value.dtype] += 1
            empty += value.array.size == 0
        symbolic += any("n" in text for given in graph.inputs for text in given.dims)
    assert len(set(RECIPES) - set(operators)) <= 3  # a few need a rare shape
    assert not set(FORMS) - set(operators)
    assert set(ranks) >= {0, 1, 2, 3, 4, 5}
    wanted = {"float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"}
    assert set(dtypes) >= wanted
    assert symbolic > 20
    assert empty > 20


def test_kernels_write_over_arguments():
    """In place of those that nothing needs later: some of the graphs that are compared above."""
    written = 0
    for seed in range(100):
        mod = get_pipeline("weft")(build(random_graph(seed))[0])
        calls = [getattr(call.op, "name", "") for call in collect(mod["main"], Call)]
        written += calls.count("relax.call_tir_inplace")
        if written >= 3:
            return
    pytest.fail(f"{written} of the kernels of 100 graphs write over an argument")


def test_recipes_are_of_operators():
    assert not set(RECIPES) - set(FUNCTIONS) - {"linear"}  # two operators under one name


def test_operators_without_a_recipe_are_known():
    missing = {name for name in FUNCTIONS if not name.startswith(ROOMS)} - set(RECIPES)
    new = sorted(missing - NOT_OF_A_GRAPH)
    assert not new, (
        f"give a recipe in tests/lib/graph_recipes.py to {new}, or name in NOT_OF_A_GRAPH"
    )
    assert not NOT_OF_A_GRAPH - missing


def test_exact_floats_are_eighths():
    assert is_exact(np.array([0.125, -3.5, 100.0], "float32"))
    assert not is_exact(np.array([0.1], "float32"))
    assert not is_exact(np.array([np.nan], "float32"))
    assert not is_exact(np.array([1e9], "float32"))
    assert is_exact(np.array([1 << 40]))


def test_large_values_are_results_only():
    pool = Pool(random.Random(0))
    pool.values.append(Value("x", np.array([1e6], "float32"), False, 1e6))
    assert pool.float() is None


def wrong_graph():
    """Harmless calls, and one whose result the patched reference gets wrong."""
    given = Given("x0", ("3", "n"), "float32", 7)
    texts = ["op.abs(x0)", "op.add(v0, x0)", "op.tanh(x0)", "op.exp(v2)", "op.negative(v1)"]
    steps = [Step(f"v{i}", text[3:].split("(")[0], text) for i, text in enumerate(texts)]
    return Graph(2, 1, (given,), tuple(steps))


def test_a_wrong_result_is_found_shrinks_and_is_written_down(monkeypatch):
    graph = wrong_graph()
    assert problem_of(graph) is None

    def sinh_instead(bb, call):
        return bb.call_te(topi.sinh, call.args[0])

    monkeypatch.setitem(Op.get("relax.tanh").attributes, "FLegalize", sinh_instead)
    problem = problem_of(graph)
    assert problem is not None
    assert "LegalizeOps" in problem
    small = shrunk(graph, lambda other: (problem_of(other) or "").startswith(problem[:20]))
    assert [step.operator for step in small.steps] == ["tanh"]
    text = script(small, problem)
    with pytest.raises(AssertionError, match="LegalizeOps"):
        exec(compile(text, "script", "exec"), {})


def test_shrinking_keeps_what_is_needed():
    graph = wrong_graph()
    small = shrunk(graph, lambda other: any(step.operator == "negative" for step in other.steps))
    assert [step.operator for step in small.steps] == ["abs", "add", "negative"]
    assert replace(small, steps=graph.steps) == graph


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES * SHARE
    start = random.SystemRandom().randrange(1 << 40)
    folder = Path(tempfile.mkdtemp(prefix="weft-graphs-"))
    count, failures = 0, []
    while time.monotonic() < end:
        seed = start + count
        count += 1
        failure = report(seed)
        if failure is not None:
            failures.append(seed)
            (folder / f"{seed}.py").write_text(failure, encoding="utf-8")
            print(failure, flush=True)  # noqa: T201 - what the fuzzer is for
        if count % 100 == 0:
            print(f"{count} graphs from {start}, {len(failures)} fail", flush=True)  # noqa: T201
    assert not failures, f"{len(failures)} of {count} graphs; the scripts are in {folder}"
