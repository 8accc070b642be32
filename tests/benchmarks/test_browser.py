"""``python -m benchmarks.browser``: one and two threads on isolated pages, with a peer or none."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("torch")
from benchmarks import browser
from benchmarks.browser import Figures, Network

PEER = """
export const env = { wasm: { numThreads: 0 } };
export class Tensor {
  constructor(type, data, shape) { Object.assign(this, { type, data, shape }); }
}
export const InferenceSession = { create: async (file) => {
  if (!(await fetch(file)).ok) throw new Error(file);
  const result = (x) => ({ y: { data: new Float32Array(10).fill(x.data[0]) } });
  return { inputNames: ["x"], run: async ({ x }) => result(x) };
} };
"""
"""What the page needs of onnxruntime-web; every result is 0."""


@pytest.fixture
def packages(tmp_path):
    """A folder as npm makes it, with a package that answers at once."""
    dist = tmp_path / "npm" / "node_modules" / "onnxruntime-web" / "dist"
    dist.mkdir(parents=True)
    script, code = browser._FILES
    (dist / script).write_text(PEER, encoding="utf-8")
    (dist / code).write_bytes(bytes(1000))
    return tmp_path / "npm"


def test_without_npm_weft_is_timed_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.install(tmp_path) is None
    assert "weft is timed alone" in capsys.readouterr().out


def test_a_row_without_a_peer_has_no_ratio():
    alone = Figures([1], [2.0, 3.0, 4.0], [], (6000, 0), None, True)
    assert alone.ratio is None
    line = browser._line(Network("net", "mlp", (1, 2)), 1, alone)
    assert line.split() == ["net", "1", "3.00", "±33", "%", "-", "-", "6", "-"]
    both = Figures([1, 1], [2.0] * 3, [4.0] * 3, (6000, 9000), 1e-7, True)
    assert both.ratio == 2.0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
@pytest.mark.parametrize("has_peer", [True, False])
def test_pages_time_one_and_two_threads(has_peer, packages, tmp_path):
    pytest.importorskip("playwright.sync_api", reason="there is no playwright")
    network, folder = Network("MLP", "mlp", (1, 784)), tmp_path / "pages"
    folder.mkdir()
    browser.prepare(network, packages if has_peer else None, (1, 2), folder)
    with browser.chromium() as chromium, browser.serving(folder) as address:
        rows = [
            browser.measure(network, count, 1, folder, address, chromium) for count in (1, 2)
        ]  # fmt: skip
    for count, row in enumerate(rows, 1):
        assert row.is_isolated
        assert list(row.threads) == [count] * (2 if has_peer else 1)
        assert min(row.weft) > 0
        assert bool(row.peer) == (row.ratio is not None) == has_peer
        assert row.code[0] > 1000
        assert (row.code[1] > 1000) == has_peer
    assert rows[1].code[0] > rows[0].code[0]  # the scripts of threads are counted
