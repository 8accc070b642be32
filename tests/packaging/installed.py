"""What an installed wheel does, tried by ``make wheel-test`` in an environment of its own.

Run with that environment's Python, and away from the repository: it imports nothing of it.
``python installed.py`` prints what it measures as JSON; the exit status is not 0 if a result is
wrong. What needs PyTorch is left out where there is none.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DISTRIBUTION = "weft-compiler"
HAS_TORCH = importlib.util.find_spec("torch") is not None


def main() -> None:
    """Try everything, and print the measurements."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["WEFT_CACHE_DIR"] = folder
        file = Path("net.onnx")
        figures = {
            "installed MB": installed_bytes() / 1e6,
            "import s": import_seconds(),
            "MLP s": torch_mlp() if HAS_TORCH else None,
            "ONNX s": onnx_file(file),
            "viz s": picture(file),
            "native call": native_call() if HAS_TORCH else None,
        }
    print(json.dumps(figures))


def installed_bytes() -> int:
    """The size of the wheel and of all that it requires."""
    names, seen = [DISTRIBUTION], set()
    size = 0
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        for requirement in distribution.requires or ():
            if "extra ==" not in requirement:
                names.append(re.split(r"[^A-Za-z0-9._-]", requirement)[0])
        paths = [Path(str(file.locate())) for file in distribution.files or ()]
        size += sum(path.stat().st_size for path in paths if path.exists())
    return size


def import_seconds() -> float:
    """The least time of five for ``import weft`` in a process of its own."""
    program = "import time; t = time.perf_counter(); import weft; print(time.perf_counter() - t)"
    return min(
        float(
            subprocess.run(
                [sys.executable, "-c", program], stdout=subprocess.PIPE, check=True
            ).stdout
        )
        for _ in range(5)
    )


def torch_mlp() -> float:
    """Compile an MLP for one size and for any; returns how long the first one took."""
    import torch

    import weft

    torch.manual_seed(0)
    layers = torch.nn
    net = layers.Sequential(layers.Linear(784, 128), layers.ReLU(), layers.Linear(128, 10)).eval()
    x = torch.randn(16, 784)
    begin = time.perf_counter()
    model = weft.compile(net, (x,))
    seconds = time.perf_counter() - begin
    torch.testing.assert_close(model(x), net(x))
    torch.testing.assert_close(torch.as_tensor(model(x.numpy())), net(x))
    batch = torch.export.Dim("batch", min=1, max=64)
    model = weft.compile(net, (x,), dynamic_shapes=({0: batch},))
    for rows in (1, 7, 64):
        torch.testing.assert_close(model(torch.ones(rows, 784)), net(torch.ones(rows, 784)))
    model.save("mlp.weft")
    torch.testing.assert_close(weft.load("mlp.weft")(x), net(x))
    torch.testing.assert_close(torch.compile(net, backend="weft")(x), net(x))
    return seconds


def native_call() -> bool:
    """Whether calls on torch's tensors go through native code alone.

    Older releases of torch lack what that needs; calls then go through Python.
    """
    import torch

    import weft

    net = torch.nn.Linear(4, 4).eval()
    x = torch.ones(2, 4)
    model = weft.compile(net, (x,))
    for _ in range(20):
        torch.testing.assert_close(model(x), net(x))
    with torch.no_grad():
        torch.testing.assert_close(model(x[:, :4]), net(x))
    return hasattr(torch.Tensor, "__dlpack_c_exchange_api__")


def onnx_file(file: Path) -> float:
    """Compile a small file of ONNX and compare with the format's own reference."""
    import numpy as np
    import onnx
    import onnx.reference
    from onnx import helper

    import weft

    rng = np.random.default_rng(0)
    weights = {
        "kernel": rng.standard_normal((8, 3, 3, 3)).astype("float32"),
        "matrix": rng.standard_normal((8, 5)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "matrix"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3, 16, 16])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 5])],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(proto, file)
    x = rng.standard_normal((2, 3, 16, 16)).astype("float32")
    begin = time.perf_counter()
    model = weft.compile(file)
    seconds = time.perf_counter() - begin
    [expected] = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)
    return seconds


def picture(file: Path) -> float:
    """Write a page with the command; returns how long it takes."""
    command = [str(Path(sys.executable).with_name("weft")), "viz", str(file), "-o", "page.html"]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    assert "<html" in Path("page.html").read_text(encoding="utf-8")[:1000]
    return seconds


if __name__ == "__main__":
    main()
