"""The page of a package in Chromium: it loads, and classifies a picture that it is given."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import threading

import numpy as np
import pytest

import weft
from weft import relax

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
    pytest.mark.slow,
]
sync_api = pytest.importorskip("playwright.sync_api", reason="there is no playwright")
Image = pytest.importorskip("PIL.Image", reason="there is no Pillow")
PATIENCE = 300_000  # milliseconds: a busy machine is not an error


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_):
        pass


class Isolated(Quiet):
    """Isolates its pages, so that they may share memory between threads."""

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


@contextlib.contextmanager
def serving(folder, handler):
    """The address at which a server offers a folder."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which a server offers it."""
    with serving(tmp_path, Quiet) as address:
        yield tmp_path, address


@pytest.fixture
def tab():
    """A page of a headless browser; what goes wrong on it is an error."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
        assert not errors


def brightest(shape):
    """A model of a picture whose largest score is that of its brightest quarter."""
    x = relax.Var("picture", relax.TensorStructInfo(shape, "float32"))
    builder, op = relax.BlockBuilder(), relax.op
    with builder.function("main", [x]):
        with builder.dataflow():
            half = shape[2] // 2
            means = builder.emit(op.nn.avg_pool2d(x, (half, half), (half, half)))
            grey = builder.emit(op.mean(means, axis=[1]))
            result = builder.emit_output(op.nn.softmax(builder.emit(op.reshape(grey, (1, 4))), -1))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_is_classified(channels, served, tab):
    folder, address = served
    model = brightest((1, channels, 16, 16))
    weft.compile(model, target="wasm").save(folder)
    (folder / "labels.json").write_text('["a", "b", "the third quarter", "d"]', encoding="utf-8")
    pixels = np.full((32, 32, 3), 20, "uint8")
    pixels[16:, :16] = 250
    Image.fromarray(pixels).save(folder / "picture.png")
    tab.goto(address)
    tab.wait_for_function("document.getElementById('state').textContent.includes('is loaded')")
    tab.set_input_files("#file", str(folder / "picture.png"))
    tab.wait_for_selector("#classes tr")
    first = tab.inner_text("#classes tr:first-child")
    assert first.startswith("the third quarter")
    grey = pixels[::2, ::2].astype("float32") / 255
    image = np.broadcast_to(grey.transpose(2, 0, 1)[:channels], (1, channels, 16, 16))
    share = weft.compile(model)(np.ascontiguousarray(image)).max()
    assert abs(float(first.split()[-2]) - 100 * share) < 0.2
    assert "model-relaxed.wasm: " in tab.inner_text("#state")


def test_another_model_says_how_it_is_called(served, tab):
    folder, address = served
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    weft.compile(builder.get(), target="wasm").save(folder)
    tab.goto(address)
    tab.wait_for_function("document.getElementById('state').textContent.includes('is loaded')")
    assert "input x: float32 (3,)" in tab.inner_text("body")


@pytest.mark.parametrize(("handler", "threads"), [(Isolated, 3), (Quiet, 1)])
def test_threads_run_where_the_page_is_isolated(handler, threads, tmp_path, tab):
    x = relax.Var("x", relax.TensorStructInfo((256, 256), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        product = builder.emit(relax.op.matmul(x, x))
        builder.emit_func_output(builder.emit(relax.op.nn.softmax(product, 0)))
    weft.compile(builder.get(), target="wasm -num-cores=3").save(tmp_path)
    script = """async () => {
      const { load } = await import("./model.js");
      const x = Float32Array.from({ length: 65536 }, (_, i) => Math.sin(i * 1.7) / 2);
      const model = await load({ threads: 3 });
      for (let i = 0; i < 20; i++) model.run(x);
      return [model.threads, model.module, [...model.run(x)[0].data]];
    }"""
    with serving(tmp_path, handler) as address:
        tab.goto(address)
        count, module, values = tab.evaluate(script)
    assert count == threads
    assert module == ("model-threads-relaxed.wasm" if threads > 1 else "model-relaxed.wasm")
    given = (np.sin(np.arange(65536) * 1.7) / 2).astype("float32").reshape(256, 256)
    wanted = weft.compile(builder.get())(given)
    np.testing.assert_allclose(np.float32(values), wanted.ravel(), rtol=1e-4, atol=1e-5)
