"""Models that keep tensors between calls: in node as here, one call after the other."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import weft
from tests.lib.node import JavaScriptError, missing, node, run_in_node

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "none"),
    pytest.mark.torch,
]
LARGEST_LOADER = 5 * 1024


class Cache(torch.nn.Module):
    """A counter, the last five rows, and two tensors that change places in every call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.full((), 7, dtype=torch.int64))
        self.register_buffer("rows", torch.arange(15.0).reshape(5, 3))
        self.register_buffer("left", torch.ones(2))
        self.register_buffer("right", torch.zeros(2))
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x):
        self.count += 1
        self.rows.copy_(torch.cat([self.rows[1:], x], 0))
        left = self.left.clone()
        self.left.copy_(self.right)
        self.right.copy_(left)
        return self.linear(self.rows), self.count * 1, self.left - self.right


def rows(seed, count=1):
    return np.random.default_rng(seed).standard_normal((count, 3), "float32")


def saved(net, folder, *example, **options):
    """The folder of a model, and what the same model gives in calls here."""
    weft.compile(net, example, target="wasm", **options).save(folder)
    return weft.compile(net, example, **options)


def close(results, wanted):
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, np.asarray(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("relaxed", [False, True])
def test_calls_in_turn_give_what_they_give_here(relaxed, tmp_path):
    native = saved(Cache(), tmp_path, torch.ones(1, 3))
    calls = [[rows(seed)] for seed in range(4)]
    for (x,), results in zip(calls, run_in_node(tmp_path, *calls, relaxed=relaxed), strict=True):
        close(results, native(x))
    assert np.asarray(results[1]) == 11


class Sum(torch.nn.Module):
    """Adds the sum of all rows so far to as many rows as it gets; changes its second input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x, scale):
        self.total += x.sum(0)
        scale.mul_(2)
        return x * scale + self.total


def test_states_of_a_model_of_any_size_that_writes_an_input(tmp_path):
    sizes = ({0: torch.export.Dim("n")}, None)
    native = saved(Sum(), tmp_path, torch.ones(2, 3), torch.ones(3), dynamic_shapes=sizes)
    calls = [[rows(count, count), np.float32([1, 2, 3])] for count in (3, 1, 0, 8)]
    for inputs, results in zip(calls, run_in_node(tmp_path, *calls), strict=True):
        close(results, [native(*inputs)])


SCRIPT = """\
import { load } from "./model.js";
const first = await load(), second = await load(), said = [];
const call = (model) => said.push([...model.run(Float32Array.of(1, 2, 3))[0].data]);
call(first); call(first); call(second);
try { first.run(new Float32Array(4)); } catch (error) { said.push(error.message); }
call(first);
first.reset();
call(first); call(second);
console.log(JSON.stringify({ said, inputs: first.inputs.map((input) => input.name) }));
"""


class Running(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))

    def forward(self, x):
        self.total += x
        return self.total * 1


def test_every_loaded_model_has_states_of_its_own_and_reset(tmp_path):
    saved(Running(), tmp_path, torch.ones(3))
    (tmp_path / "run.mjs").write_text(SCRIPT, encoding="utf-8")
    printed = json.loads(node(["run.mjs"], tmp_path))
    one, two, three = [2, 3, 4], [3, 5, 7], [4, 7, 10]
    wrong = "x: expected 3 elements, found 4"
    assert printed == {"said": [one, two, one, wrong, three, one, two], "inputs": ["x"]}


class Checked(torch.nn.Module):
    """Looks a row up after it has counted."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.table = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x):
        self.count += 1
        return self.table[x] + self.count


def test_a_call_that_fails_changes_no_state(tmp_path):
    saved(Checked(), tmp_path, torch.zeros(2, dtype=torch.int64))
    script = """\
import { load } from "./model.js";
const model = await load();
let text = "";
try { model.run(BigInt64Array.of(0n, 9n)); } catch (error) { text = error.message; }
console.log(JSON.stringify([text, ...model.run(BigInt64Array.of(0n, 3n))[0].data]));
"""
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    text, *values = json.loads(node(["run.mjs"], tmp_path))
    assert "out of bounds" in text
    assert values == [1, 4]


def test_a_state_is_no_argument(tmp_path):
    saved(Running(), tmp_path, torch.ones(3))
    with pytest.raises(JavaScriptError, match=r"expected 1 inputs \(x\), found 2"):
        run_in_node(tmp_path, [np.ones(3, "float32")] * 2)


def test_what_is_written_about_a_model_names_no_state(tmp_path):
    saved(Running(), tmp_path, torch.ones(3))
    declared, page = [(tmp_path / name).read_text() for name in ("model.d.ts", "index.html")]
    assert "run(x: Float32Array | Tensor<Float32Array>)" in declared
    assert "reset(): void;" in declared
    assert "<li>input x" in page
    assert "total" not in declared + page
    assert (tmp_path / "model.js").stat().st_size <= LARGEST_LOADER
