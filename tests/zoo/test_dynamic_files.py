"""ONNX files with trained weights as people have them: sizes that vary, choices, int8.

Each compiles without help (no shapes, no options) and gives ONNX Runtime's results at three sizes.
The packages that carry them are in ``weights.txt``; the files are read, no code of theirs runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.zoo.test_real_weights import file_of

onnxruntime = pytest.importorskip("onnxruntime", reason="its results are what is compared with")
pytestmark = [pytest.mark.onnx, pytest.mark.slow]

RNG = np.random.default_rng(0)


def normal(*shape, scale=1.0):
    return RNG.standard_normal(shape).astype("float32") * np.float32(scale)


def whole(low, high, *shape):
    return RNG.integers(low, high, shape)


def encoded(batch, length):
    mask = np.ones((batch, length), bool)
    mask[:, -1] = False
    return {"src": whole(1, 20, batch, length), "src_mask": mask}


def decoded(batch, target, source):
    return {"prefix": whole(1, 100, batch, target), "memory": normal(batch, source, 256),
            "src_mask": np.ones((batch, source), bool),
            "hidden": normal(batch, 2, 256)}  # fmt: skip


def voice(batch, with_rate=True):
    inputs = {"input": normal(batch, 576, scale=0.1), "state": normal(2, batch, 128)}
    return {**inputs, "sr": np.array(16000)} if with_rate else inputs


def tone(length):
    wave = np.sin(np.arange(length, dtype="float32") * np.float32(0.1))[None]
    return {"audio": wave + normal(1, length, scale=0.1), "fmin": np.array(60, "float32"),
            "fmax": np.array(900, "float32")}  # fmt: skip


NAMES = ("arabic_name_romanizer", "resources")
EEG = ("brainmaze_eeg_models",)
OCR = ("rapidocr_onnxruntime", "models")
VOICE = ("silero_vad", "data")
SCALED = ("spindles", "_models")
FILES = {
    "names, encoder": ((*NAMES, "encoder.onnx"), encoded, [(1, 5), (2, 9), (3, 3)]),
    "names, decoder": ((*NAMES, "decoder.onnx"), decoded, [(1, 1, 5), (2, 4, 9), (3, 7, 3)]),
    "Persian, encoder": ((*NAMES, "persian", "encoder.onnx"), encoded, [(1, 5), (2, 9), (3, 3)]),
    "Persian, decoder": (
        (*NAMES, "persian", "decoder.onnx"), decoded, [(1, 1, 5), (2, 4, 9), (3, 7, 3)],
    ),
    "seizures": (
        (*EEG, "seizure", "_models", "modelA_paper.onnx"),
        lambda batch, time: {"x": normal(batch, 100, time)}, [(1, 30), (2, 50), (1, 77)],
    ),
    "spindles": (
        (*EEG, *SCALED, "spindle-detector-eeg.onnx"),
        lambda batch: {"raw_signal": normal(batch, 1, 7500),
                       "spectrogram": normal(batch, 15, 7500)}, [(1,), (2,), (3,)],
    ),
    "letters": (
        ("captcha_whisperer", "models", "captcha_crnn.onnx"),
        lambda batch: {"image": normal(batch, 3, 60, 160)}, [(1,), (2,), (3,)],
    ),
    "words": (
        ("ddddocr", "common.onnx"), lambda width: {"input1": normal(1, 1, 64, width)},
        [(80,), (123,), (200,)],
    ),
    "file types": (
        ("magika", "models", "standard_v3_3", "model.onnx"),
        lambda batch: {"bytes": whole(0, 257, batch, 2048).astype("int32")}, [(1,), (2,), (3,)],
    ),
    "bodies": (
        ("nudenet", "320n.onnx"),
        lambda batch, size: {"images": RNG.random((batch, 3, size, size), "float32")},
        [(1, 320), (2, 320), (1, 256)],
    ),
    "where words are": (
        (*OCR, "ch_PP-OCRv4_det_infer.onnx"),
        lambda batch, height, width: {"x": normal(batch, 3, height, width)},
        [(1, 64, 96), (2, 96, 64), (1, 128, 160)],
    ),
    "what words are": (
        (*OCR, "ch_PP-OCRv4_rec_infer.onnx"),
        lambda batch, width: {"x": normal(batch, 3, 48, width)}, [(1, 100), (2, 160), (1, 320)],
    ),
    "which side is up": (
        (*OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        lambda batch: {"x": normal(batch, 3, 48, 192)}, [(1,), (3,), (6,)],
    ),
    "voice": ((*VOICE, "silero_vad.onnx"), voice, [(1,), (2,), (3,)]),
    "voice, 16 kHz": ((*VOICE, "silero_vad_16k_op15.onnx"), voice, [(1,), (2,), (3,)]),
    "voice, half": (
        (*VOICE, "silero_vad_half.onnx"), lambda batch: voice(batch, False), [(1,), (2,), (3,)],
    ),
    "voice, ifless": ((*VOICE, "silero_vad_op18_ifless.onnx"), voice, [(1,), (2,), (3,)]),
    "voice, sequence": (
        (*VOICE, "silero_vad_16k_sequence.onnx"),
        lambda steps: {"input": normal(steps, 576, scale=0.1), "h": normal(1, 1, 128),
                       "c": normal(1, 1, 128)}, [(1,), (3,), (7,)],
    ),
    "pitch": (("swift_f0", "model.onnx"), tone, [(16000,), (8000,), (12345,)]),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, three sizes."""
QUANTIZED = {
    "words, int8": (
        ("ddddocr", "common_old.onnx"), lambda width: {"input1": normal(1, 1, 64, width)},
        [(80,), (123,), (200,)],
    ),
}  # fmt: skip
"""Those that ONNX Runtime runs on rounded data where weft does not."""


def largest_difference(path, inputs_of, sizes):
    """Of all outputs at all sizes, in parts of the largest magnitude of each."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    compiled = weft.compile(path, cache=False)
    names = [item.name for item in session.get_inputs()]
    apart = 0.0
    for size in sizes:
        inputs = inputs_of(*size)
        results = compiled(*[inputs[name] for name in names])
        results = results if isinstance(results, tuple | list) else [results]
        for result, wanted in zip(results, session.run(None, inputs), strict=True):
            mine = np.asarray(result)
            assert (mine.shape, mine.dtype) == (wanted.shape, wanted.dtype)
            scale = max(float(np.abs(wanted).max()), 1e-30)
            apart = max(apart, float(np.abs(mine.astype("float64") - wanted).max()) / scale)
    return apart


@pytest.mark.parametrize("name", FILES)
def test_a_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


@pytest.mark.parametrize("name", QUANTIZED)
def test_a_quantized_file_agrees_within_the_quantum(name):
    path, inputs_of, sizes = QUANTIZED[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 0.05
