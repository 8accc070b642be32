"""Damage differs from what it damages, says the same for the same seed, and reaches every kind."""

from __future__ import annotations

import ast
import json
import random

import onnx
import pytest
from onnx import helper

from tests.lib.mutation import mutated_bytes, mutated_json, mutated_message
from tests.lib.text_mutation import mutated_text

DATA = bytes(range(200))
TREE = {"a": [1, 2.5, "x", None, True], "b": {"c": {"d": "text"}}, "e": [[1], [2]]}
TEXT = """@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = 1
"""
GRAPH = helper.make_graph(
    [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], "g",
    [helper.make_tensor_value_info("x", 1, [2, "n"])],
    [helper.make_tensor_value_info("y", 1, None)], [helper.make_tensor("w", 1, [2], [1.0, 2.0])],
)  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "given"),
    [(mutated_bytes, DATA), (mutated_json, TREE), (mutated_text, TEXT), (mutated_message, GRAPH)],
)
def test_a_seed_gives_the_same_damage(damage, given):
    before = str(given)
    found = [str(damage(random.Random(seed), given)) for seed in range(60)]
    again = [str(damage(random.Random(seed), given)) for seed in range(60)]
    assert found == again
    assert str(given) == before
    assert sum(item != before for item in found) > 40
    assert len({*found}) > 30


def test_json_stays_json_and_shrinks_grows_and_changes_types():
    found = [mutated_json(random.Random(seed), TREE) for seed in range(400)]
    assert all(json.loads(json.dumps(item, allow_nan=True)) is not None or item is None
               for item in found)  # fmt: skip
    assert any(isinstance(item, dict) and set(item) < set(TREE) for item in found)
    assert any(isinstance(item, dict) and len(item.get("a") or "") > 5 for item in found)
    assert any(not isinstance(item, dict) for item in found)


def test_texts_are_python_often_and_sometimes_not():
    good = 0
    for seed in range(300):
        try:
            ast.parse(mutated_text(random.Random(seed), TEXT))
            good += 1
        except (SyntaxError, ValueError):
            continue
    assert 60 < good < 290


def test_messages_still_are_messages():
    for seed in range(200):
        data = mutated_message(random.Random(seed), GRAPH).SerializeToString()
        onnx.GraphProto.FromString(data)
