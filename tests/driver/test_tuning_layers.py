"""Layers whose algorithm a search chooses: which there are, their answers, what a model gets."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.dlight.decisions import GRAPH, Decisions, deciding, tuned_key, using
from weft.driver.tuning import tune as whole
from weft.driver.tuning.kernels import kernels_of, stages
from weft.driver.tuning.layers import layers_of
from weft.driver.tuning.trial_process import TrialProcess
from weft.relax.transform.layout import winograd_choice
from weft.target.target import Target

RNG = np.random.default_rng(5)
TARGET = Target("llvm -mcpu=x86-64-v3 -num-cores=1")
STEP = "UseWinograd"


def network(*sizes, side=20, batch=1):
    """Convolutions one after the other: (filters, channels, window) of each."""
    x = relax.Var("x", relax.TensorStructInfo((batch, sizes[0][1], side, side), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for filters, channels, window in sizes:
                drawn = RNG.normal(size=(filters, channels, window, window)) / channels / 3
                weights = relax.const(drawn.astype("float32"))
                value = relax.op.nn.conv2d(value, weights, padding=window // 2)
                value = builder.emit(relax.op.nn.relu(builder.emit(value)))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def layers(module):
    front, step, _ = stages(TARGET, STEP)
    with TARGET:
        return layers_of(front(module), step)


def answers_of(layer):
    _, step, _ = stages(TARGET, STEP)
    bound = relax.transform.BindParams("main", {"x1": weft.nd.array(weights_like(layer))})
    with TARGET, deciding(Decisions()) as decisions:
        step(bound(layer.module))
    return dict(decisions.offered)


def weights_like(layer):
    shape = [int(extent) for extent in layer.module["main"].params[1].struct_info.shape]
    return (RNG.normal(size=shape) / 100).astype("float32")


def algorithms(module, taken):
    """The tiles of the convolutions that use Winograd's algorithm, with these answers."""
    front, step, _ = stages(TARGET, STEP)
    with TARGET, using({GRAPH: taken}):
        made = step(front(module))
    names = [var.name_hint for var in made.functions if "winograd" in var.name_hint]
    return len(names)


def test_layers_are_the_calls_with_a_choice():
    """Convolutions of one pixel have none; equal ones are one layer."""
    several = layers(network((64, 64, 3), (64, 64, 1), (64, 64, 3), (32, 64, 3)))
    assert sorted((layer.name[:28], layer.calls, layer.weights) for layer in several) == [
        ("convolution 1x64x20x20 by 32", 1, (False, True)),
        ("convolution 1x64x20x20 by 64", 2, (False, True)),
    ]
    assert {layer.step for layer in several} == {STEP}


def test_a_network_without_choices_has_no_layers():
    assert layers(network((32, 32, 1), (32, 32, 1))) == []


def test_every_answer_computes_the_same():
    module = network((64, 64, 3))
    x = RNG.normal(size=(1, 64, 20, 20)).astype("float32")
    [layer] = layers(module)
    [(name, answers)] = answers_of(layer).items()
    assert "direct" in answers
    assert len(answers) > 2
    expected = np.asarray(weft.compile(module, target=TARGET)(x))
    for answer in answers:
        with using({GRAPH: {name: answer}}):
            result = np.asarray(weft.compile(module, target=TARGET)(x))
        np.testing.assert_allclose(result, expected, atol=2e-4 * np.abs(expected).max())


def test_a_model_has_the_algorithm_that_is_taken():
    module = network((64, 64, 3))
    [layer] = layers(module)
    [(name, answers)] = answers_of(layer).items()
    other = next(answer for answer in answers if answer.startswith("tiles of 2"))
    assert algorithms(module, {name: "direct"}) == 0
    assert algorithms(module, {name: other}) == 1
    assert algorithms(module, {name: "what another version of weft wrote"}) == algorithms(
        module, {}
    )


def test_an_answer_cannot_take_memory_that_there_is_not(monkeypatch):
    module = network((64, 64, 3))
    [layer] = layers(module)
    [(name, answers)] = answers_of(layer).items()
    larger = next(
        item for item in answers if item.startswith("tiles of 4") and "kernel" not in item
    )
    assert algorithms(module, {name: larger}) == 1
    monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", 0)
    monkeypatch.setattr(winograd_choice, "_SHARE_OF_WEIGHTS", 0.0)
    assert algorithms(module, {name: larger}) == 0


def test_the_cache_of_models_knows_the_algorithms():
    with using({GRAPH: {"algorithm of a": "direct"}}):
        first = tuned_key()
    assert first != tuned_key()


def test_the_winner_is_in_the_model(monkeypatch):
    """A search in which the direct algorithm is said to be twice as fast as any other."""
    module = network((64, 64, 3))
    [layer] = layers(module)
    offered = answers_of(layer)

    def trial(self, kernel, taken):
        chosen = kernel.step == STEP and "direct" in taken.values()
        return (50.0 if chosen else 100.0), offered if kernel.step == STEP and not taken else {}

    monkeypatch.setattr(TrialProcess, "trial", trial)
    monkeypatch.setattr(TrialProcess, "compare", lambda self, kernel, taken, rounds: (100.0, 50.0))
    monkeypatch.setattr(whole, "_is_faster", lambda *models: True)
    tuned = weft.tune(module, minutes=5, database=None, target=TARGET)
    [row] = tuned.tuning.layers
    assert list(row.taken.values()) == ["direct"]
    assert "layer" in str(tuned.tuning)
    assert tuned.tuning.gain > 1.0
    names = [kernel.name for kernel in tuned.tuning.kernels]
    assert names
    assert not any("winograd" in name for name in names)
    default = [kernel.name for kernel in kernels_of(stages(TARGET).front(module))]
    assert any("winograd" in name for name in default)


@pytest.mark.slow
def test_a_real_search_keeps_what_the_model_computes():
    module = network((64, 64, 3), (32, 64, 3), side=14)
    x = RNG.normal(size=(1, 64, 14, 14)).astype("float32")
    tuned = weft.tune(module, minutes=0.3, database=None, target=TARGET)
    assert [row.trials for row in tuned.tuning.layers if row.trials > 1]
    expected = np.asarray(weft.compile(module, target=TARGET)(x))
    np.testing.assert_allclose(np.asarray(tuned(x)), expected, atol=2e-4 * np.abs(expected).max())
