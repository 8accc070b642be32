"""Random graphs of integer layers give what integer numpy gives, here and on AVX2's pairs.

``make test`` runs fixed seeds; ``make fuzz MINUTES=30`` runs new ones and counts what they were. A
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

from tests.lib.integer_draws import random_integer_graph
from tests.lib.integer_layers import Convolution, Product, Setting, Sums, Tail
from tests.lib.integer_moves import Limit, Mean
from tests.lib.integer_numbers import Coding, Real, Weights, quantised
from tests.lib.random_integer_graphs import (
    TARGETS,
    Graph,
    Input,
    Run,
    Step,
    answers_of,
    as_sure,
    data_of,
    instructions_of,
    module_of,
    problem_of,
    report,
    script,
    shrunk,
)
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.relax.expr import Call
from weft.relax.transform.layout import offset_integers
from weft.relax.transform.layout.dequantize_after_product import DequantizeAfterProduct
from weft.relax.transform.layout.offset_integers import OffsetIntegers
from weft.relax.transform.layout.widen_integers import WidenIntegers
from weft.relax.transform.stages import NORMS
from weft.target.host import host_features
from weft.target.machine import machine_of
from weft.target.target import Target

pytestmark = [
    pytest.mark.sampled(3),
    pytest.mark.skipif(not host_features().get("avx2", False), reason="cannot run code for AVX2"),
]

BLOCK = 3
MINUTES = float(os.environ.get("WEFT_FUZZ_MINUTES", "0"))
SHARE = 1 / 6
"""Of the minutes: the other fuzzers have the rest."""
LOOKED_AT = 10
"""Of one in so many graphs, the assembly is looked at: writing it takes as long as compiling."""


@pytest.mark.parametrize("block", range(3))
def test_graphs_give_what_integer_numpy_gives(block):
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        failure = report(random_integer_graph(seed))
        assert failure is None, f"seed {seed}\n{failure}"


def test_a_seed_gives_the_same_graph():
    assert random_integer_graph(11) == random_integer_graph(11)


def test_layers_codings_and_sizes_occur():
    kinds, types, weights, sizes = Counter(), Counter(), Counter(), Counter()
    for seed in range(400):
        graph = random_integer_graph(seed)
        types.update(item.coding.dtype for item in graph.inputs)
        types.update("given" for item in graph.inputs if item.is_zero_given)
        types.update("at an end" for item in graph.inputs if item.coding.zero in (-128, 127, 255))
        sizes.update(run.n for run in graph.runs if any("n" in item.shape for item in graph.inputs))
        for step in graph.steps:
            kinds[type(step.layer).__name__, step.layer.form] += 1
            own = step.layer.weights if isinstance(step.layer, Sums) else None
            if own is not None:
                weights.update([own.dtype, *["zero points"] * any(own.zeros)])
                weights["by channel"] += len(own.scales) > 1
                weights["-128"] += bool((own.numbers() == -128).any())
    assert {name for name, _ in kinds} >= {"Combine", "Convolution", "Join", "Largest", "Limit"}
    assert {name for name, _ in kinds} >= {"Mean", "Move", "Product"}
    assert all(kinds[name, form] > 20 for name in ("Convolution", "Product")
               for form in ("integer", "qdq"))  # fmt: skip
    assert all(types[name] > 20 for name in ("uint8", "int8", "int16", "at an end", "given"))
    names = ("uint8", "int8", "zero points", "by channel", "-128")
    assert all(weights[name] > 20 for name in names)
    assert set(range(10)) <= set(sizes)


def test_instructions_for_small_integers_are_reached():
    looked = Looked()
    assert problem_of(dense("qdq"), look=looked) is None
    assert {machine_of(target).dot_products[0] for target in TARGETS} <= looked.names


@pytest.mark.parametrize(
    ("cpu", "pair"), [("cascadelake", "uint8 int8"), ("haswell", "int16 int16")]
)
def test_most_products_become_products_of_small_integers(cpu, pair):
    """By the passes, without compiling: of bytes where there is an instruction for that."""
    kinds = Counter()
    passes = (*NORMS, DequantizeAfterProduct(), OffsetIntegers(), WidenIntegers())
    for seed in range(60):
        with Target(f"llvm -mcpu={cpu}"):
            mod = Sequential(passes)(module_of(random_integer_graph(seed)))
        for call in collect(mod["main"].body, Call):
            if getattr(call.op, "name", "") in ("relax.matmul", "relax.nn.conv2d"):
                kinds[" ".join(str(arg.struct_info.dtype) for arg in call.args)] += 1
    assert kinds[pair] > kinds.total() / 3, kinds


# The oracle


def dense(form, result=None, tail=None, scale=0.25):
    """A product of 5 rows of 33 bytes with 16 columns."""
    weights = Weights((33, 16), "int8", 5, "ends", 1, (0,), (scale,))
    layer = Product(("x0",), form, result, weights, False, tail or Tail())
    given = Input("x0", ("n", 33), Coding("int8", scale, 3))
    step = Step("v0", layer, ("n", 16), result)
    return Graph((given,), (step,), (Run(5, "ends", 1), Run(0, "any", 2)), True)


def test_ties_are_rounded_to_even_and_the_ends_hold():
    real = Real.of(np.array([0.5, 1.5, -0.5, 2.5, 1e9, -1e9]))
    low, high = quantised(real, Coding("uint8", 1.0, 3))
    np.testing.assert_array_equal(low, [3, 5, 3, 5, 255, 0])
    np.testing.assert_array_equal(low, high)


def test_one_quantum_is_allowed_only_where_an_error_reaches_over_a_tie():
    real = Real.of(np.array([0.4999, 0.49, 0.5001, 7.2]), np.array([1e-3, 1e-3, 1e-3, 0]))
    low, high = quantised(real, Coding("int8", 1.0, 0))
    np.testing.assert_array_equal(low, [0, 0, 0, 7])
    np.testing.assert_array_equal(high, [1, 0, 1, 7])


def answer(graph, has_bytes=True):
    setting = Setting(graph.is_power, has_bytes)
    ((_, answer),) = answers_of(graph, setting, data_of(graph, graph.runs[0]), {})
    return answer


def test_sums_wrap_around_as_int32_do():
    weights = Weights((600, 1), "int8", 0, "least", 1, (0,), (1.0,))
    layer = Product(("x0",), "integer", None, weights, False, Tail())
    given = Input("x0", (1, 600), Coding("int16", 1.0, 0))
    graph = Graph((given,), (Step("v0", layer, (1, 1), None),), (Run(1, "least", 0),), True)
    total = 600 * 128 * 32768
    assert total > 2**31
    assert answer(graph).low.tolist() == [[total - 2**32]]
    assert problem_of(graph) is None


def test_sums_are_sure_where_arithmetic_is_exact():
    assert answer(dense("integer", scale=0.3)).is_sure
    assert answer(dense("qdq", Coding("uint8", 900.0, 7), scale=0.3)).is_sure, "scaled once"
    fused = replace(dense("qdq", tail=Tail(bias=1), scale=0.3), is_power=False)
    assert not answer(fused).is_sure, "a bias may be added in the instruction that scales"


# Failures


def test_a_wrong_sum_is_found_shrinks_and_is_written_down(monkeypatch):
    """Sums without what the offset of the bytes adds to them, in the first of two layers."""
    coding = Coding("int8", 64.0, -7)
    first = dense("integer", coding)
    later = Step("v1", Limit(("v0",), "qdq", coding, 0, None), ("n", 16), coding)
    graph = replace(first, steps=(*first.steps, later))
    assert problem_of(graph) is None
    right = offset_integers._matmul
    monkeypatch.setattr(
        offset_integers,
        "_matmul",
        lambda *args: None if (parts := right(*args)) is None
        else replace(parts, sums=np.zeros_like(parts.sums)),
    )  # fmt: skip
    if not machine_of(TARGETS[0]).multiplies_bytes:
        pytest.skip("the host has no products of bytes")
    problem = problem_of(graph)
    assert problem is not None
    small = shrunk(graph, lambda other: problem_of(other, TARGETS[:1]) is not None)
    assert [step.name for step in small.steps] == ["v0"]
    assert len(small.runs) == 1
    with pytest.raises(AssertionError, match="elements differ"):
        exec(compile(script(small, problem), "script", "exec"), {})


def test_a_value_that_numpy_is_not_sure_of_is_returned_too():
    coding = Coding("uint8", 1.0, 0)
    mean = Step("v0", Mean(("x0",), "qdq", coding, None), (1, 1, 1, 1), coding)
    limit = Step("v1", Limit(("v0",), "qdq", coding, 0, 60), (1, 1, 1, 1), coding)
    given = Input("x0", (1, 1, 1, 6), Coding("uint8", 1.0, 0))
    runs = tuple(Run(1, "any", seed) for seed in range(9))
    graph = Graph((given,), (mean, limit), runs, True)
    setting = Setting(True, True)
    sums = [int(data_of(graph, run)["x0"].sum()) for run in runs]
    ties = [index for index, total in enumerate(sums) if total % 6 == 3]
    certain = [index for index, total in enumerate(sums) if total % 6 != 3]
    assert ties, "no mean of six bytes is half a quantum"
    near, far = [replace(graph, runs=tuple(runs[i] for i in part)) for part in (ties, certain)]
    assert [step.name for step in as_sure(near, setting).results] == ["v0", "v1"]
    assert [step.name for step in as_sure(far, setting).results] == ["v1"]
    assert problem_of(near) is None


def test_a_vector_times_a_matrix_is_summed_in_floats():
    weights = Weights((17, 16), "uint8", 568379170, "near zero", 0, (4,), (0.018060695379972458,))
    layer = Product(("x0",), "qdq", None, weights, True, Tail())
    given = Input("x0", (16,), Coding("uint8", 0.16710688173770905, 139))
    runs = (Run(1, "largest", 100331931), Run(1, "any", 3))
    graph = Graph((given,), (Step("v0", layer, (17,), None),), runs, False)
    assert problem_of(graph) is None


# New seeds


class Looked:
    """The instructions for small integers in what it is called with."""

    def __init__(self):
        self.names = set()

    def __call__(self, compiled):
        self.names |= instructions_of(compiled)


def kinds_of(graph: Graph) -> list[str]:
    """What a graph is counted under."""
    names = {f"{type(step.layer).__name__} ({step.layer.form})" for step in graph.steps}
    grouped = any(
        isinstance(step.layer, Convolution) and step.layer.groups > 1 for step in graph.steps
    )
    symbolic = any("n" in item.shape for item in graph.inputs)
    return [*sorted(names), *["in groups"] * grouped, *["symbolic"] * symbolic]


@pytest.mark.skipif(not MINUTES, reason="set WEFT_FUZZ_MINUTES")
def test_new_seeds():
    end = time.monotonic() + 60 * MINUTES * SHARE
    start = random.SystemRandom().randrange(1 << 40)
    folder = Path(tempfile.mkdtemp(prefix="weft-integer-graphs-"))
    counts, failures = Counter(), []
    while time.monotonic() < end:
        seed = start + counts["graphs"]
        graph, seen = random_integer_graph(seed), Looked()
        is_looked_at = counts["graphs"] % LOOKED_AT == 0
        failure = report(graph, seen if is_looked_at else None)
        counts.update(["graphs", *kinds_of(graph), *["looked at"] * is_looked_at])
        counts["integer instructions"] += bool(seen.names)
        if failure is not None:
            failures.append(seed)
            (folder / f"{seed}.py").write_text(failure, encoding="utf-8")
            print(failure, flush=True)  # noqa: T201 - what the fuzzer is for
        if counts["graphs"] % 50 == 0:
            print(f"{dict(counts)} from {start}, {len(failures)} fail", flush=True)  # noqa: T201
    assert not failures, f"{len(failures)} of {counts['graphs']} graphs; scripts are in {folder}"
