"""``weft demo``: classifies FashionMNIST's test images by two models.

First come the models as ``weft.compile`` compiles them by default, beside PyTorch, torch.compile
and ONNX Runtime, where these are installed (``demo_engines``). Then, as the lesson, each model
built in the ways of the course: most of them are loops as written, without a schedule.
There is one row for each way: the accuracy, how many predictions equal PyTorch's, milliseconds per
batch of weft, PyTorch and numpy in the same run, and the time from IRModule to loaded machine code.
Then come one image with its class, and the paths of the modules' scripts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from weft import relax
from weft.cli import demo_cnn, demo_engines, demo_mlp
from weft.cli.demo_mlp import BATCH, Parameters
from weft.data import fashion_mnist
from weft.ir.module import IRModule
from weft.support.errors import IRValueError

Classifier = Callable[[np.ndarray], np.ndarray]
TIMED_BATCHES: Final = 15
SHADES: Final = " .:-=+*#%@"


@dataclass(frozen=True)
class Model:
    """One network: how to feed it, the same model in PyTorch and numpy, the ways of building it."""

    name: str
    load: Callable[[], Parameters]
    input_shape: tuple[int, ...]
    numpy_model: Callable[[Parameters, np.ndarray], np.ndarray]
    torch_model: Callable[[Parameters], Callable[..., Any]]
    ways: dict[str, Callable[[Parameters], IRModule]]


@dataclass(frozen=True)
class Subject:
    """One network with its parameters, the images in batches, and PyTorch's predictions."""

    model: Model
    parameters: Parameters
    batches: list[np.ndarray]
    labels: np.ndarray
    torch_classify: Classifier | None
    torch_predicted: np.ndarray | None


@dataclass(frozen=True)
class Row:
    """One line of the table; None stands for what is unknown because PyTorch is not installed."""

    model: str
    way: str
    accuracy: float
    equal: int | None
    milliseconds: float
    torch_milliseconds: float | None
    numpy_milliseconds: float
    build_seconds: float


MODELS: Final = (
    Model(
        "MLP", fashion_mnist.load_mlp_parameters, (BATCH, 784), demo_mlp.numpy_model,
        demo_mlp.torch_model,
        {
            "TVMScript": demo_mlp.script_explicit,
            "TVMScript, bound parameters": demo_mlp.script_bound,
            "TE with BlockBuilder": demo_mlp.tensor_expressions,
            "operators, fused and lowered": demo_mlp.operators,
            "operators, default schedules": demo_mlp.scheduled_operators,
            "torch.fx with an own map": demo_mlp.from_torch,
            "library functions by DLPack": demo_mlp.library_explicit,
        },
    ),
    Model(
        "CNN", fashion_mnist.load_cnn_parameters, (BATCH, 1, 28, 28), demo_cnn.numpy_model,
        demo_cnn.torch_model,
        {
            "TVMScript": demo_cnn.script_explicit,
            "TVMScript, bound parameters": demo_cnn.script_bound,
            "TE with BlockBuilder": demo_cnn.tensor_expressions,
            "operators, fused and lowered": demo_cnn.operators,
            "operators, default schedules": demo_cnn.scheduled_operators,
            "torch.fx with an own map": demo_cnn.from_torch,
            "library functions by DLPack": demo_cnn.library_bound,
        },
    ),
)  # fmt: skip
HEADINGS: Final = (
    "model", "way", "accuracy", "equal to PyTorch", "ms/batch", "PyTorch", "numpy", "build s",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with the idx files of the test set"
    )
    parser.add_argument("--images", type=int, metavar="N", help="use only the first N test images")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-modules"),
        metavar="DIR",
        help="where each module's script goes (default: demo-modules)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the whole demo; the exit status is 0 if every way agrees with PyTorch and numpy."""
    data = load_images(options.data, options.images)
    print(f"FashionMNIST: {data.source}, batches of {BATCH}")
    print(f"weft {weft.__version__}, numpy {np.__version__}, {torch_version()}\n")
    options.out.mkdir(parents=True, exist_ok=True)
    subjects = [prepare(model, data) for model in MODELS]
    print("Compiled by default, weft.compile(model), beside other engines:")
    batches = [(subject.model.name.lower(), subject.batches[0]) for subject in subjects]
    labels = data.labels[:BATCH]
    demo_engines.show([demo_engines.Subject(name, batch, labels) for name, batch in batches])
    print(f"\nThe ways of the course, most of them loops as written:\n{format_line(HEADINGS)}")
    rows, last = [], np.zeros(0, dtype=np.int64)
    for subject in subjects:
        model = subject.model
        for way in model.ways:
            if way.startswith("torch") and subject.torch_classify is None:
                print(f"{model.name:5} {way}: left out, since it needs PyTorch")
                continue
            row, last = run_way(subject, way, options.out)
            rows.append(row)
            print(format_line(cells(row, len(data))), flush=True)
    print(f"\n{draw(data.images[0])}")
    names = fashion_mnist.CLASS_NAMES
    print(f"predicted: {names[last[0]]}, labelled: {names[data.labels[0]]}")
    print(f"\nThe script of each module is in {options.out}/")
    return 0 if all(row.equal in (None, len(data)) for row in rows) else 1


def load_images(directory: Path | None, count: int | None) -> fashion_mnist.LabelledImages:
    """The full test set if it is there, else the subset; cut to a whole number of batches."""
    if directory is not None or fashion_mnist.find_full() is not None:
        data = fashion_mnist.load_full(directory)
    else:
        data = fashion_mnist.load_subset()
    wanted = len(data) if count is None else count
    if wanted < BATCH:
        raise IRValueError(f"--images: expected at least one batch of {BATCH}, got {wanted}")
    return data.first(min(wanted, len(data)) // BATCH * BATCH)


def prepare(model: Model, data: fashion_mnist.LabelledImages) -> Subject:
    """Load the parameters, cut the images into batches and let PyTorch classify them."""
    parameters = model.load()
    images = data.as_float().reshape(-1, *model.input_shape[1:])
    batches = np.split(images, len(images) // BATCH)
    peer = torch_peer(model, parameters)
    predicted = None if peer is None else predictions(peer, batches)
    return Subject(model, parameters, batches, data.labels, peer, predicted)


def run_way(subject: Subject, way: str, out: Path) -> tuple[Row, np.ndarray]:
    """Build one module, classify all images, time it beside PyTorch and numpy, write its script."""
    model, parameters, batches = subject.model, subject.parameters, subject.batches
    module = model.ways[way](parameters)
    file_name = f"{model.name}-{way}".lower().replace(",", "").replace(" ", "-")
    (out / f"{file_name}.py").write_text(module.script(), encoding="utf-8")
    started = time.perf_counter()
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), weft.cpu())
    build_seconds = time.perf_counter() - started
    extra = [weft.nd.array(v) for v in parameters.values()] if takes_parameters(module) else []

    def classify(batch: np.ndarray) -> np.ndarray:
        scores: np.ndarray = machine["main"](weft.nd.array(batch), *extra).numpy()
        return scores

    predicted = predictions(classify, batches)
    wanted, torch_classify = subject.torch_predicted, subject.torch_classify
    row = Row(
        model.name,
        way,
        accuracy=float((predicted == subject.labels).mean()),
        equal=None if wanted is None else int((predicted == wanted).sum()),
        milliseconds=milliseconds(classify, batches),
        torch_milliseconds=None
        if torch_classify is None
        else milliseconds(torch_classify, batches),
        numpy_milliseconds=milliseconds(lambda b: model.numpy_model(parameters, b), batches),
        build_seconds=build_seconds,
    )
    return row, predicted


def takes_parameters(module: IRModule) -> bool:
    """Whether ``main`` takes the model's parameters after the images."""
    return len(module["main"].params) > 1


def predictions(classify: Classifier, batches: list[np.ndarray]) -> np.ndarray:
    """The class of every image."""
    return np.concatenate([classify(batch).argmax(axis=1) for batch in batches])


def milliseconds(classify: Classifier, batches: list[np.ndarray]) -> float:
    """The median time of a batch, after one batch to warm up."""
    classify(batches[0])
    times = []
    for index in range(TIMED_BATCHES):
        started = time.perf_counter()
        classify(batches[index % len(batches)])
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def torch_peer(model: Model, parameters: Parameters) -> Classifier | None:
    """The model in PyTorch as a function of arrays; None without PyTorch."""
    try:
        import torch  # noqa: PLC0415 - optional
    except ImportError:
        return None
    module = model.torch_model(parameters)

    def classify(batch: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            scores: np.ndarray = module(torch.from_numpy(batch)).numpy()
        return scores

    return classify


def torch_version() -> str:
    """``PyTorch 2.13.0``, or ``no PyTorch``."""
    try:
        import torch  # noqa: PLC0415 - optional
    except ImportError:
        return "no PyTorch"
    return f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads"


def cells(row: Row, count: int) -> tuple[str, ...]:
    """The row as text; a dash where there is no PyTorch to compare with."""
    torch_time = "-" if row.torch_milliseconds is None else f"{row.torch_milliseconds:.2f}"
    return (
        row.model,
        row.way,
        f"{100 * row.accuracy:.2f} %",
        "-" if row.equal is None else f"{row.equal} of {count}",
        f"{row.milliseconds:.2f}",
        torch_time,
        f"{row.numpy_milliseconds:.2f}",
        f"{row.build_seconds:.2f}",
    )


def format_line(texts: tuple[str, ...]) -> str:
    """One line of the table: words to the left, numbers to the right."""
    left = f"{texts[0]:5} {texts[1]:30}"
    widths = (10, 18, 10, 9, 9, 9)
    return left + "".join(f"{t:>{w}}" for t, w in zip(texts[2:], widths, strict=True))


def draw(image: np.ndarray) -> str:
    """The image (28, 28) as text: grey half blocks in a terminal, else characters as shades."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    upper, lower = image[0::2].astype(int), image[1::2].astype(int)
    if not colour:
        levels = (upper + lower) * (len(SHADES) - 1) // 510
        return "\n".join("".join(SHADES[level] for level in row).rstrip() for row in levels)
    lines = []
    for top, bottom in zip(upper, lower, strict=True):
        pairs = zip(232 + top * 23 // 255, 232 + bottom * 23 // 255, strict=True)
        lines.append("".join(f"\x1b[38;5;{t};48;5;{b}m▀" for t, b in pairs) + "\x1b[0m")
    return "\n".join(lines)
