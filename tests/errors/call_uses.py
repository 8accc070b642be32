"""Bad uses of compiled models and of their files: calls, measurements, saving, loading."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import torch

ROWS = torch.export.Dim("rows", min=3, max=8)


class Net(torch.nn.Module):
    """Takes a dict and a factor; the rows are dynamic."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, batch, scale=1.0):
        return {"y": self.linear(batch["x"]) * scale}


def given(shape=(4, 3), dtype="float32"):
    return {"x": np.ones(shape, dtype)}


X = torch.ones(4, 3)

CALLS = {
    "nothing": lambda m: m(),
    "too much": lambda m: m(given(), 1.0, 2.0),
    "a keyword": lambda m: m(batsh=given()),
    "twice": lambda m: m(given(), batch=given()),
    "no dict": lambda m: m(X),
    "a key missing": lambda m: m({}),
    "a key too many": lambda m: m({"x": X, "z": X}),
    "None": lambda m: m({"x": None}),
    "a text": lambda m: m({"x": "text"}),
    "an object": lambda m: m({"x": object()}),
    "a list of numbers": lambda m: m({"x": [[1.0, 2.0, 3.0]] * 4}),
    "a number": lambda m: m({"x": 3.0}),
    "a rank": lambda m: m(given((4, 3, 1))),
    "an extent": lambda m: m(given((4, 5))),
    "too many rows": lambda m: m(given((9, 3))),
    "too few rows": lambda m: m(given((2, 3))),
    "no rows": lambda m: m(given((0, 3))),
    "float64": lambda m: m(given(dtype="float64")),
    "int64": lambda m: m(given(dtype="int64")),
    "complex": lambda m: m(given(dtype="complex64")),
    "dates": lambda m: m({"x": np.zeros((4, 3), "M8[s]")}),
    "other bytes' order": lambda m: m(given(dtype=">f4")),
    "another factor": lambda m: m(given(), 2.0),
    "a factor that is no number": lambda m: m(given(), float("nan")),
    "a tensor as factor": lambda m: m(given(), X),
    "sparse": lambda m: m({"x": X.to_sparse()}),
    "quantized": lambda m: m({"x": torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)}),
    "meta": lambda m: m({"x": torch.ones(4, 3, device="meta")}),
    "nested": lambda m: m({"x": torch.nested.nested_tensor([X, X])}),
    "profile's shape": lambda m: m.profile(given((4, 5))),
    "profile of nothing": lambda m: m.profile(),
    "benchmark's shape": lambda m: m.benchmark(given((4, 5))),
    "benchmark of nothing": lambda m: m.benchmark(),
    "benchmark's number": lambda m: m.benchmark(given(), repeat=0),
    "benchmark's text": lambda m: m.benchmark(given(), number="x"),
    "memory's shape": lambda m: m.memory(given((4, 5))),
    "memory's rows": lambda m: m.memory(given((99, 3))),
    "memory's structure": lambda m: m.memory(X, X, X),
    "a function of it": lambda m: m["nothing"],
    "source": lambda m: m.get_source("java"),
    "save's path": lambda m: m.save(5),
    "save to nowhere": lambda m: m.save("no/such/folder/m.weft"),
    "save to a folder": lambda m: m.save("."),
    "save to no name": lambda m: m.save(""),
    "library's path": lambda m: m.export_library(5),
    "library's folder": lambda m: m.export_library("no/such/m.so"),
    "library's compiler": lambda m: m.export_library("m.so", cc="no-such-cc"),
    "library's option": lambda m: m.export_library("m.so", options=["-fnonsense"]),
    "library's words": lambda m: m.export_library("m.so", fcompile=5),
}  # fmt: skip


def rewritten(saved, folder, edit):
    """A copy of the file whose manifest is edited, digests as they were."""
    path = folder / "edited.weft"
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "manifest.json":
                told = json.loads(data)
                edit(told)
                data = json.dumps(told).encode()
            target.writestr(name, data)
    return path


def without(saved, folder, left_out):
    path = folder / "less.weft"
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            if name != left_out:
                target.writestr(name, source.read(name))
    return path


def with_entry(saved, folder, name):
    path = folder / "more.weft"
    path.write_bytes(saved.read_bytes())
    with zipfile.ZipFile(path, "a") as target:
        target.writestr(name, b"owned")
    return path


def of_bytes(folder, data, name="o.weft"):
    path = folder / name
    path.write_bytes(data)
    return path


def flipped(saved, folder, entry):
    """The file with a bit changed in one of its entries, none of which is compressed."""
    with zipfile.ZipFile(saved) as content:
        middle = content.read(entry)
    middle = middle[len(middle) // 2 :]
    data = bytearray(saved.read_bytes())
    data[data.index(middle)] ^= 0x40
    return of_bytes(folder, bytes(data))


def foreign_zip(folder):
    with zipfile.ZipFile(folder / "z.weft", "w") as target:
        target.writestr("hello.txt", "hello")
    return folder / "z.weft"


def a_folder(folder):
    (folder / "d.weft").mkdir()
    return folder / "d.weft"


def a_model(folder):
    torch.save({"w": X}, folder / "w.weft")
    return folder / "w.weft"


LOADS = {
    "no file": lambda s, f: f / "none.weft",
    "a folder": lambda s, f: a_folder(f),
    "no path": lambda s, f: 5,
    "nothing": lambda s, f: of_bytes(f, b""),
    "a text": lambda s, f: of_bytes(f, b"hello"),
    "two bytes": lambda s, f: of_bytes(f, b"PK"),
    "a library": lambda s, f: of_bytes(f, b"\x7fELF" + bytes(80)),
    "half": lambda s, f: of_bytes(f, s.read_bytes()[: len(s.read_bytes()) // 2]),
    "the last byte missing": lambda s, f: of_bytes(f, s.read_bytes()[:-1]),
    "the first half missing": lambda s, f: of_bytes(f, b"PK" + s.read_bytes()[900:]),
    "a bit of code": lambda s, f: flipped(s, f, "code.o"),
    "a bit": lambda s, f: flipped(s, f, "manifest.json"),
    "a foreign zip": lambda s, f: foreign_zip(f),
    "what torch.save wrote": lambda s, f: a_model(f),
    "a later version": (
        lambda s, f: rewritten(s, f, lambda m: m.update(version=99))),
    "another format": lambda s, f: rewritten(s, f, lambda m: m.update(format="other")),
    "no version": lambda s, f: rewritten(s, f, lambda m: m.pop("version")),
    "no signature": lambda s, f: rewritten(s, f, lambda m: m.pop("signature")),
    "another entry": lambda s, f: rewritten(s, f, lambda m: m.update(entry="nothing")),
    "other features": (
        lambda s, f: rewritten(s, f, lambda m: m["code"].update(features=["avx1024"]))),
    "another machine": (
        lambda s, f: rewritten(s, f, lambda m: m["code"].update(triple="riscv64-unknown-elf"))),
    "types": lambda s, f: rewritten(s, f, lambda m: m.update(dtypes=["int8"] * 9)),
    "no manifest": lambda s, f: without(s, f, "manifest.json"),
    "no code": lambda s, f: without(s, f, "code.o"),
    "no constants": lambda s, f: without(s, f, "constants.safetensors"),
    "no program": lambda s, f: without(s, f, "program.json"),
    "a huge number": (
        lambda s, f: of_bytes(f, s.read_bytes()[:-22] + s.read_bytes()[-22:-8] + b"\xff" * 8)),
}  # fmt: skip
