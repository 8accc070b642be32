"""Every bad use of models has its message in messages.txt: one short error of weft, and no other.

``WEFT_UPDATE_DOCS=1`` writes the messages there. Paths, versions and processors are left out.
"""

from __future__ import annotations

import errno
import importlib.util
import inspect
import os
import re
from pathlib import Path

import pytest

import weft
from weft.support.errors import ArtifactError, ArtifactFormatError, TVMError
from weft.target.host import host_cpu

HERE = Path(__file__).parent
TABLE = HERE / "messages.txt"
pytestmark = [pytest.mark.torch, pytest.mark.onnx, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("torch")
pytest.importorskip("onnx")


def module(name):
    """A table of uses beside this file."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


torch_uses, onnx_uses, call_uses = (module(f"{x}_uses") for x in ("torch", "onnx", "call"))


def known():
    """The messages by use, as the table has them."""
    text = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    parts = re.split(r"^== (.*)\n", text, flags=re.MULTILINE)[1:]
    return {name: said.rstrip("\n") for name, said in zip(parts[::2], parts[1::2], strict=True)}


KNOWN = known()
SEEN: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    if os.environ.get("WEFT_UPDATE_DOCS") and SEEN:
        rows = {**KNOWN, **SEEN}
        text = "\n\n".join([f"== {name}\n{said}" for name, said in sorted(rows.items())])
        TABLE.write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def model():
    example = {"x": call_uses.torch.ones(4, 3)}
    shapes = {"batch": {"x": {0: call_uses.ROWS}}}
    return weft.compile(call_uses.Net(), (example,), dynamic_shapes=shapes)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.weft"
    model.save(path)
    return path


def plain(text, folder):
    """A message without what differs from machine to machine and from version to version."""
    text = text.replace(f"{folder}/", "").replace(str(folder), "FOLDER")
    text = text.replace(f"{HERE.parents[1]}/", "")
    text = text.replace(f"({host_cpu()})", "(CPU)").replace(f"processor {host_cpu()}", "processor")
    text = re.sub(r"x86_64-[\w-]+|aarch64-[\w-]+", "TRIPLE", text)
    text = re.sub(r"onnx \d+\.\d+\.\d+", "onnx V", text)
    text = re.sub(r"(up to|opset 1 to|opset: expected 1 to) \d+", r"\1 N", text)
    text = re.sub(r"\.py:\d+", ".py:LINE", text)
    text = re.sub(r"have \d+ bytes, and the file has \d+", "have N bytes, and the file has M", text)
    return "\n".join([line.rstrip() for line in text.splitlines()])


def check(use, action, folder):
    """The action raises one short TVMError, the one of the table."""
    with pytest.raises(TVMError) as caught:
        action()
    said = f"{type(caught.value).__name__}: {caught.value}"
    assert len(said.splitlines()) <= 10
    assert max(map(len, said.splitlines())) <= 500
    SEEN[use] = plain(said, folder)
    if not os.environ.get("WEFT_UPDATE_DOCS"):
        assert SEEN[use] == KNOWN.get(use)


def uses(*tables):
    return [
        pytest.param(f"{kind}: {name}", action, id=f"{kind}: {name}")
        for kind, rows in tables
        for name, action in rows.items()
    ]


@pytest.mark.parametrize(("use", "action"), uses(
    ("torch", torch_uses.MODELS), ("torch option", torch_uses.OPTIONS),
    ("onnx option", onnx_uses.OPTIONS),
))  # fmt: skip
def test_models_from_torch_and_options(use, action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    takes = inspect.signature(action).parameters
    check(use, lambda: action(tmp_path) if takes else action(), tmp_path)


@pytest.mark.parametrize(("use", "action"), uses(("onnx file", onnx_uses.FILES)))
@pytest.mark.parametrize("take", [weft.compile, onnx_uses.from_onnx], ids=["compile", "from_onnx"])
def test_files_of_onnx(use, action, take, tmp_path):
    path = action(tmp_path)
    check(f"{use}, {take.__name__}", lambda: take(str(path)), tmp_path)


@pytest.mark.parametrize(("use", "action"), uses(("onnx", onnx_uses.MODELS)))
def test_models_of_onnx(use, action, tmp_path):
    check(use, lambda: weft.compile(action()), tmp_path)


@pytest.mark.parametrize(("use", "action"), uses(("call", call_uses.CALLS)))
def test_calls(use, action, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(use, lambda: action(model), tmp_path)
    assert not list(tmp_path.glob(".*")), "a file that was begun is left"


@pytest.mark.parametrize(("use", "action"), uses(("load", call_uses.LOADS)))
@pytest.mark.parametrize("load", [weft.load, weft.runtime.load])
def test_loads(use, action, load, saved, tmp_path):
    path = action(saved, tmp_path)
    check(use, lambda: load(path), tmp_path)


def test_an_entry_that_climbs_out_of_its_folder_is_never_written(saved, tmp_path, model):
    folder = tmp_path / "deep"
    folder.mkdir()
    with pytest.raises(ArtifactFormatError, match="owned.txt is not what was written"):
        weft.load(call_uses.with_entry(saved, folder, "../owned.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_no_more_leaves_the_old_file(model, tmp_path, monkeypatch, number):
    path = tmp_path / "m.weft"
    path.write_bytes(b"old")

    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ArtifactError, match=re.escape(os.strerror(number)) + ".* is unchanged"):
        model.save(path)
    assert [item.name for item in tmp_path.iterdir()] == ["m.weft"]
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ArtifactError, match="Permission denied"):
        model.save(tmp_path / "m.weft")


def test_the_table_is_of_these_uses():
    rows = [torch_uses.MODELS, torch_uses.OPTIONS, onnx_uses.OPTIONS, onnx_uses.MODELS,
            call_uses.CALLS, call_uses.LOADS]  # fmt: skip
    assert len(KNOWN) == sum(map(len, rows)) + 2 * len(onnx_uses.FILES)
