"""Models with trained weights, from packages that carry them: equal to what runs them elsewhere.

weft's own are in the fast suite. The others are behind ``-m slow`` and ask for the packages of
``weights.txt`` (files are read from them, no code but that of the three networks that find faces)
and, for ONNX files, for onnxruntime: ONNX's own reference takes the statistics of the batch for
BatchNormalization before opset 14 where there is a momentum.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

import weft  # noqa: E402 - after the question whether torch is there
from tests.lib.trained_files import (  # noqa: E402 - likewise
    channels_first,
    file_of,
    image_of_words,
    normal,
)
from tests.lib.zoo import import_torchvision  # noqa: E402 - likewise
from weft.cli.demo import MODELS  # noqa: E402 - likewise
from weft.data import fashion_mnist  # noqa: E402 - likewise

pytestmark = pytest.mark.filterwarnings("ignore")
TOLERANCE = 1e-4
"""Of the largest magnitude of an output."""


def assert_close(found, expected, what):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    scale = float(np.abs(expected).max())
    assert scale > 0, f"{what}: all zeros, which says nothing of the model"
    apart = float(np.abs(found.astype("float64") - expected).max()) / scale
    assert apart <= TOLERANCE, f"{what}: {apart:.2e} of its scale"


@pytest.mark.torch
@pytest.mark.parametrize(("model", "right"), list(zip(MODELS, (860, 900), strict=True)),
                         ids=lambda item: getattr(item, "name", ""))  # fmt: skip
def test_what_weft_trained_classifies_as_in_pytorch(model, right):
    """All 1,000 images that ship; the accuracy is that of trained weights."""
    data = fashion_mnist.load_subset()
    network = model.torch_model(model.load())
    images = torch.from_numpy(data.as_float().reshape(-1, *model.input_shape[1:]))
    with torch.no_grad():
        expected = network(images)
    found = weft.compile(network, (images,), cache=False)(images)
    assert_close(found, expected, model.name)
    assert int((found.argmax(1).numpy() == data.labels).sum()) >= right


def both_run(path, inputs, freeze=()):
    """Outputs of an ONNX file by weft and by onnxruntime; ``freeze`` names inputs to hold fixed."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = session.run(None, inputs)
    model = onnx.load(str(path))
    for name in freeze:
        model.graph.initializer.append(onnx.numpy_helper.from_array(inputs[name], name))
        kept = [value for value in model.graph.input if value.name != name]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    given = {name: value for name, value in inputs.items() if name not in freeze}
    found = weft.compile(model, given, cache=False)(**given)
    found = found if isinstance(found, (tuple, list)) else [found]
    assert len(found) == len(expected)
    return found, expected, session


# The branch for 8 kHz has no meaning for 576 samples, so the rate is held fixed.
VOICE = ("silero_vad", "data")
HELD = {"state": normal(2, 1, 128), "input": normal(1, 576, scale=0.1)}
# With noise: the logarithm of a pure tone's empty frequencies is that of rounding errors.
TONE = np.sin(np.arange(8000, dtype="float32") * np.float32(0.1))[None]
ONNX_FILES = {
    "voice": ((*VOICE, "silero_vad.onnx"), {**HELD, "sr": np.array(16000)}, ("sr",)),
    "voice, opset 15":
        ((*VOICE, "silero_vad_16k_op15.onnx"), {**HELD, "sr": np.array(16000)}, ("sr",)),
    "voice, half": ((*VOICE, "silero_vad_half.onnx"), HELD, ()),
    "voice, sequence": (
        (*VOICE, "silero_vad_16k_sequence.onnx"),
        {"input": normal(7, 576, scale=0.1), "h": normal(1, 1, 128),
         "c": normal(1, 1, 128, seed=1)}, (),
    ),
    "pitch": (
        ("swift_f0", "model.onnx"),
        {"audio": TONE + normal(1, 8000, scale=0.1),
         "fmin": np.array(50, "float32"), "fmax": np.array(500, "float32")}, (),
    ),
    "file types": (
        ("magika", "models", "standard_v3_3", "model.onnx"),
        {"bytes": np.random.default_rng(0).integers(0, 256, (3, 2048)).astype("int32")}, (),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ONNX_FILES)
def test_an_onnx_file_of_a_package_equals_onnxruntime(name):
    path, inputs, freeze = ONNX_FILES[name]
    found, expected, session = both_run(file_of(*path), inputs, freeze)
    for output, mine, its in zip(session.get_outputs(), found, expected, strict=True):
        assert_close(mine, its, f"{name}: {output.name}")


OCR = ("rapidocr_onnxruntime", "models")


@pytest.mark.slow
def test_words_are_found_in_an_image():
    image = channels_first(
        image_of_words("weft", 160, 64),
        np.array([0.485, 0.456, 0.406]),
        np.array([0.229, 0.224, 0.225]),
    )
    found, expected, _ = both_run(file_of(*OCR, "ch_PP-OCRv4_det_infer.onnx"), {"x": image})
    assert expected[0].max() > 0.9
    assert_close(found[0], expected[0], "where words are")


@pytest.mark.slow
def test_words_are_read_from_an_image():
    path = file_of(*OCR, "ch_PP-OCRv4_rec_infer.onnx")
    image = channels_first(image_of_words("weft compiles", 320, 48))
    found, expected, session = both_run(path, {"x": image})
    assert_close(found[0], expected[0], "the words")
    # characters from 1 on, in the order of the file; 0, and a repetition, say nothing
    letters = session.get_modelmeta().custom_metadata_map["character"].split("\n")
    best = np.asarray(found[0])[0].argmax(1).tolist()
    kept = [now for now, before in zip(best, [0, *best], strict=False) if now not in (0, before)]
    read = "".join([letters[index - 1] if index <= len(letters) else " " for index in kept])
    assert read.strip() == "weft compiles"


@pytest.mark.slow
def test_the_side_up_of_words_is_told():
    image = channels_first(image_of_words("weft", 192, 48))
    both = np.concatenate([image, image[:, :, ::-1, ::-1]])
    path = file_of(*OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx")
    found, expected, _ = both_run(path, {"x": both})
    assert_close(found[0], expected[0], "which side is up")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(("name", "size"), [("PNet", 30), ("RNet", 24), ("ONet", 48)])
def test_a_network_that_finds_faces_equals_pytorch(name, size):
    file_of("facenet_pytorch")
    pytest.importorskip("requests")
    import_torchvision()
    networks = importlib.import_module("facenet_pytorch.models.mtcnn")
    model = getattr(networks, name)().eval()
    images = torch.from_numpy(normal(2, 3, size, size))
    with torch.no_grad():
        expected = model(images)
    found = weft.compile(model, (images,), cache=False)(images)
    for index, (mine, its) in enumerate(zip(found, expected, strict=True)):
        assert_close(mine, its, f"{name}: {index}")
