"""What is damaged and what is then done with it, one function for each kind: ``KINDS``.

A function takes a source of random numbers and says how far it came: "loaded", "computed". What
it raises is for the worker to judge.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path

import weft
from tests.fuzz.hostile_corpus import applied, random_saved, random_script, random_trace
from tests.fuzz.hostile_models import random_onnx, random_suite_model
from tests.lib.mutation import mutated_bytes, mutated_json, mutated_message
from tests.lib.text_mutation import mutated_text
from weft import relax
from weft.ir.module import IRModule
from weft.relax.expr import Function
from weft.relax.frontend.onnx import from_onnx
from weft.runtime.artifact.checks import interface_of
from weft.script import from_source


def built(program):
    """Print a program and compile it: what loads may still make no sense."""
    str(program)
    functions = program.functions.values() if isinstance(program, IRModule) else [program]
    graph = any(isinstance(func, Function) for func in functions)
    (relax.build if graph else weft.build)(program)
    return "computed"


def ir_json(r):
    """JSON of programs: the tree, now and then the characters."""
    text = weft.ir.save_json(random_script(r)[1])
    if r.random() < 0.2:
        text = mutated_bytes(r, text.encode()).decode(errors="replace")
    else:
        text = json.dumps(mutated_json(r, json.loads(text)))
    return built(weft.ir.load_json(text))


def trace(r):
    """JSON of schedule traces."""
    func, instructions = random_trace(r)
    mutated = json.loads(json.dumps(mutated_json(r, instructions)))
    schedule = applied(func, mutated)
    str(schedule.trace)
    return built(schedule.mod)


def texts(r):
    """Scripts."""
    return built(from_source(mutated_text(r, random_script(r)[0])))


def artifact_bytes(r):
    """Bytes of a ``.weft`` file."""
    data, arguments = random_saved(r)
    return _called(mutated_bytes(r, data), arguments)


_FOLDER = tempfile.TemporaryDirectory(prefix="weft-hostile-")
JSON_ENTRIES = ("manifest.json", "program.json", "module.json", "module.py")


def artifact_json(r):
    """JSON inside of a ``.weft`` file, whose digests are those of what stands there."""
    data, arguments = random_saved(r)
    entries = entries_of(data)
    name = r.choice(JSON_ENTRIES)
    if name == "module.py":
        entries[name] = mutated_text(r, entries[name].decode()).encode(errors="replace")
    else:
        entries[name] = json.dumps(mutated_json(r, json.loads(entries[name]))).encode()
    return _called(with_digests(entries), arguments)


def with_digests(entries):
    """The bytes of a file of these entries; what its manifest says of them is made true."""
    try:
        manifest = json.loads(entries["manifest.json"])
        for name in manifest["digests"]:
            digest = hashlib.blake2b(entries[name], digest_size=16)
            manifest["digests"][name] = digest.hexdigest()
        entries = {**entries, "manifest.json": json.dumps(manifest).encode()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # the manifest itself is what was changed
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target.getvalue()


def artifact_interface(r):
    """What describes to the runtime how native code is called, with its digest made right, too.

    Such a file is only loaded: its machine code relies on what it says.
    """
    data, _ = random_saved(r)
    entries = entries_of(data)
    program, manifest = (json.loads(entries[name]) for name in ("program.json", "manifest.json"))
    natives = {name: item["native"] for name, item in program.items()}
    code = manifest["code"] or {"specs": []}
    described = mutated_json(r, [natives, code["specs"]])
    try:
        program = {name: {**program[name], "native": described[0][name]} for name in program}
        code["specs"] = described[1]
        tensors = weft.load(_written(data)).program.constants
        manifest["interface"] = interface_of(described[1], program, tensors)
    except (KeyError, TypeError, IndexError):
        return "nothing"  # nothing of that form is written
    entries["program.json"] = json.dumps(program).encode()
    entries["manifest.json"] = json.dumps(manifest).encode()
    repr(weft.load(_written(with_digests(entries))).as_text())
    return "loaded"


def entries_of(data):
    """The entries of a ``.weft`` file by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _written(data):
    """The path of a new file."""
    path = Path(_FOLDER.name, "m.weft")
    path.write_bytes(data)
    return path


def _called(data, arguments):
    """Load a file and call what is in it."""
    model = weft.load(_written(data))
    repr(model)
    model.as_text()
    try:
        str(model.mod)
    except weft.TVMError as error:
        if isinstance(error, weft.InternalError):
            raise
    model.script()
    model(*arguments)
    return "computed"


def onnx_bytes(r):
    """Bytes of an ONNX model."""
    return _imported(r, mutated_bytes(r, random_onnx(r).SerializeToString()))


def onnx_fields(r):
    """Fields of an ONNX model."""
    return _imported(r, mutated_message(r, random_onnx(r)))


def onnx_suite(r):
    """Fields of models of ONNX's own tests."""
    return _imported(r, mutated_message(r, random_suite_model(r)))


def _imported(r, model):
    """Import a model; compile some."""
    module = from_onnx(model)
    str(module)
    if r.random() < 0.4:
        relax.build(module)
        return "computed"
    return "loaded"


KINDS = {
    "ir_json": ir_json,
    "trace": trace,
    "texts": texts,
    "artifact_bytes": artifact_bytes,
    "artifact_json": artifact_json,
    "artifact_interface": artifact_interface,
    "onnx_bytes": onnx_bytes,
    "onnx_fields": onnx_fields,
    "onnx_suite": onnx_suite,
}
