"""ONNX files with trained weights as people have them: sizes that vary, choices, int8.

Each compiles without help (no shapes, no options) and gives ONNX Runtime's results at three sizes.
The packages that carry them are in ``weights.txt``; the files are read, no code of theirs runs.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.trained_files import file_of, integers, largest_difference, normal, uniform

pytestmark = [pytest.mark.onnx, pytest.mark.slow]


def encoded(batch, length):
    mask = np.ones((batch, length), bool)
    mask[:, -1] = False
    return {"src": integers(1, 20, batch, length), "src_mask": mask}


def decoded(batch, target, source):
    return {"prefix": integers(1, 100, batch, target), "memory": normal(batch, source, 256),
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


def page(batch, height, width):
    """Rows of dark strokes on white: words are found. Where none are, results are below 1e-4, and
    the sigmoid of ONNX Runtime is 1e-7 off, several times what it should be.
    """
    strokes = uniform(batch, 1, height, width // 3 + 1) < 0.5
    rows = (np.arange(height) // 12 % 2 == 1)[:, None]
    dark = np.repeat(strokes, 3, axis=3)[..., :width] & rows
    return np.where(dark, np.float32(-2), np.full((batch, 3, height, width), 2, "float32"))


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
        lambda batch: {"bytes": integers(0, 257, batch, 2048).astype("int32")}, [(1,), (2,), (3,)],
    ),
    "bodies": (
        ("nudenet", "320n.onnx"),
        lambda batch, size: {"images": uniform(batch, 3, size, size)},
        [(1, 320), (2, 320), (1, 256)],
    ),
    "where words are": (
        (*OCR, "ch_PP-OCRv4_det_infer.onnx"),
        lambda batch, height, width: {"x": page(batch, height, width)},
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
                       "c": normal(1, 1, 128, seed=1)}, [(1,), (3,), (7,)],
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


@pytest.mark.parametrize("name", FILES)
def test_a_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


@pytest.mark.parametrize("name", QUANTIZED)
def test_a_quantized_file_agrees_within_the_quantum(name):
    path, inputs_of, sizes = QUANTIZED[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 0.05
