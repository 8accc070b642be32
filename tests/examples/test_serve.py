"""The example of serving: eight callers at once, and a file that is replaced while they call."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import relax

PATH = Path(__file__).resolve().parents[2] / "examples" / "serve.py"
CLIENTS, CALLS = 8, 25


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def path(tmp_path):
    save_classifier(tmp_path / "net.weft", 1.0)
    return tmp_path / "net.weft"


def save_classifier(path, factor):
    """A model of images (1, 1, 28, 28): the sum of each column, times a factor."""
    builder = relax.BlockBuilder()
    image = relax.Var("image", relax.TensorStructInfo((1, 1, 28, 28), "float32"))
    with builder.function("main", [image]):
        sums = builder.emit(relax.op.sum(image, axis=(1, 2)))
        builder.emit_func_output(
            builder.emit(relax.op.multiply(sums, relax.const(factor, "float32")))
        )
    weft.compile(builder.get()).save(path)


def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 9, (1, 1, 28, 28)).astype("float32") for _ in range(CLIENTS)]


def sums_of(image):
    return image.sum((1, 2))


def test_eight_threads_get_their_own_results(serve, path):
    served = serve.Served(path, (images()[0],), num_threads=1)
    together = threading.Barrier(CLIENTS)

    def client(image):
        together.wait(60)
        return all(np.array_equal(served(image), sums_of(image)) for _ in range(CALLS))

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(client, images()))


def test_a_replaced_file_is_loaded_while_threads_call(serve, path):
    served = serve.Served(path, (images()[0],))
    together, is_replaced = threading.Barrier(CLIENTS + 1), threading.Event()

    def client(image):
        together.wait(60)
        factors = set()
        while not is_replaced.is_set():
            factors.add(float(served(image)[0, 0] / sums_of(image)[0, 0]))
        return factors

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(client, image) for image in images()]
        together.wait(60)
        try:
            save_classifier(path, 2.0)
            served(images()[0])
        finally:
            is_replaced.set()
        assert set().union(*[each.result(60) for each in clients]) <= {1.0, 2.0}
    assert np.array_equal(served(images()[1]), 2 * sums_of(images()[1]))


def test_a_damaged_file_leaves_the_old_model(serve, path, caplog):
    served = serve.Served(path, (images()[0],))
    damaged = path.with_name("damaged")
    damaged.write_bytes(path.read_bytes()[:1000])
    os.replace(damaged, path)
    assert np.array_equal(served(images()[0]), sums_of(images()[0]))
    assert "damaged or cut off" in caplog.text
    save_classifier(path, 2.0)
    assert np.array_equal(served(images()[0]), 2 * sums_of(images()[0]))


def test_eight_clients_of_fastapi(serve, path, monkeypatch):
    pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    monkeypatch.setenv("MODEL", str(path))
    client = testclient.TestClient(serve.application())

    def ask(image):
        answers = [client.post("/predict", json={"image": image[0, 0].tolist()}) for _ in range(5)]
        return all(answer.json() == {"scores": sums_of(image)[0].tolist()} for answer in answers)

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(ask, images()))
    wrong = client.post("/predict", json={"image": [[1, 2]]})
    assert wrong.status_code == 422
    assert "28 rows of 28 numbers" in wrong.text
