"""Files of compiled models: equal bytes for equal models, and what is wrong with wrong ones."""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft.runtime.artifact import weft_file
from weft.runtime.artifact.constants import constants_to_bytes, read_constants
from weft.runtime.native.object_code import ObjectCode, check_processor
from weft.runtime.ndarray import NDArray
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import (
    ArtifactError,
    ArtifactFormatError,
    ArtifactTargetError,
    ArtifactVersionError,
    TVMError,
)

X = np.arange(12, dtype="float32").reshape(3, 4) - 5


def example():
    weight = weft.relax.const(np.eye(4, dtype="float32") * 2)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            with R.dataflow():
                y = R.nn.relu(R.matmul(x, weight))
                R.output(y)
            return y

    return Module


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.weft"
    weft.compile(example()).save(path)
    return path


def test_a_loaded_model_computes_the_same(saved):
    model = weft.load(saved)
    np.testing.assert_array_equal(model(X), np.maximum(X * 2, 0))
    np.testing.assert_array_equal(model(x=X[:1]), np.maximum(X[:1] * 2, 0))


def test_a_loaded_model_is_an_executable(saved):
    machine = weft.relax.VirtualMachine(weft.load(str(saved)), weft.cpu())
    np.testing.assert_array_equal(machine["main"](X).numpy(), np.maximum(X * 2, 0))


def test_the_module_is_there_again(saved):
    assert weft.ir.structural_equal(weft.load(saved).mod, example())
    assert "R.matmul" in weft.load(saved).script()


def test_saving_again_gives_the_same_bytes(saved, tmp_path):
    weft.load(saved).save(tmp_path / "again.weft")
    assert (tmp_path / "again.weft").read_bytes() == saved.read_bytes()


PROGRAM = """
import sys
import numpy as np, weft
sys.path.insert(0, {folder!r})
from test_weft_file import example
weft.compile(example(), cache=False).save({path!r})
"""


def test_every_process_writes_the_same_bytes(saved, tmp_path):
    for number, (seed, threads) in enumerate((("0", "1"), ("4711", "3"))):
        path = tmp_path / f"{number}.weft"
        code = PROGRAM.format(folder=str(Path(__file__).parent), path=str(path))
        subprocess.run(
            [sys.executable, "-c", code], check=True, timeout=600,
            env={"PYTHONHASHSEED": seed, "WEFT_NUM_THREADS": threads, "WEFT_NO_CACHE": "1",
                 "PYTHONPATH": str(Path(weft.__file__).parents[1]), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert path.read_bytes() == saved.read_bytes()


RUN = """
import sys
import numpy as np
import weft.runtime
model = weft.runtime.load({path!r})
x = np.arange(12, dtype="float32").reshape(3, 4) - 5
assert (model(x) == np.maximum(x * 2, 0)).all()
loaded = [name.split(".") for name in sys.modules if name.startswith("weft.")]
rooms = sorted({{name[1] for name in loaded if name[1] != "backends"}})
tables = sorted({{".".join(name[1:4]) for name in loaded if name[1] == "backends" if name[3:]}})
print(rooms, tables, [name for name in ("torch", "onnx") if name in sys.modules])
"""


def test_the_runtime_alone_loads_and_runs(saved):
    printed = output_of(RUN.format(path=str(saved)))
    of_the_cpu = ["backends.cpu.device", "backends.cpu.isa"]
    assert printed.strip() == f"['runtime', 'support'] {of_the_cpu} []"


def test_constants_of_every_type_come_back():
    arrays = [
        weft.nd.array(np.array([[1, 0], [0, 1]], dtype)) for dtype in
        ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float64")
    ]  # fmt: skip
    ml_dtypes = pytest.importorskip("ml_dtypes")
    arrays += [
        weft.nd.array(np.array(3.5, ml_dtypes.bfloat16)),
        weft.nd.array(np.array([1.5], ml_dtypes.float8_e4m3fn)),
        weft.nd.array(np.zeros((0, 3), "float32")),
    ]
    data = constants_to_bytes(arrays)
    found = read_constants(memoryview(data), [str(array.dtype) for array in arrays], share=False)
    for array, other in zip(arrays, found, strict=True):
        assert isinstance(other, NDArray)
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        assert array.numpy().tobytes() == other.numpy().tobytes()


def test_entries_are_aligned_and_dated_alike(saved):
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        assert names == sorted(names)
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.compress_type == zipfile.ZIP_STORED


# What is no model, or a damaged one.


def changed(saved, tmp_path, name, edit):
    path = tmp_path / "changed.weft"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == name:
                data = edit(data)
            if data is not None:
                new.writestr(entry, data)
    return path


def manifest(**values):
    return lambda data: json.dumps({**json.loads(data), **values}).encode()


@pytest.mark.parametrize(
    ("name", "edit", "error", "message"),
    [
        ("manifest.json", manifest(version=3), ArtifactVersionError,
         "this file has format 3, and this weft reads 2; compile the model again"),
        ("manifest.json", manifest(version=1), ArtifactVersionError, "this file has format 1"),
        ("manifest.json", manifest(interface="0"), ArtifactFormatError,
         "how its code is called is not what was written"),
        ("manifest.json", manifest(format="other"), ArtifactFormatError,
         "expected format 'weft-model', got 'other'"),
        ("manifest.json", lambda data: data[:40], ArtifactFormatError, "its manifest cannot be"),
        ("manifest.json", lambda data: b"[]", ArtifactFormatError, "its manifest cannot be read"),
        ("manifest.json", lambda data: None, ArtifactFormatError, "got another zip file"),
        ("manifest.json", manifest(signature={}), ArtifactFormatError, "damaged or cut off"),
        ("manifest.json", manifest(digests=[1]), ArtifactFormatError, "damaged or cut off"),
        ("manifest.json", manifest(digests={}), ArtifactFormatError, "is not what was written"),
        ("manifest.json", manifest(digests=None), ArtifactFormatError, "damaged or cut off"),
        ("manifest.json", manifest(states=-1), ArtifactFormatError, "it has -1 states"),
        ("manifest.json", manifest(states=99), ArtifactFormatError, "it has 99 states"),
        ("manifest.json", manifest(code=None), ArtifactFormatError, "its code has no function"),
        ("manifest.json", manifest(kernels=["k"]), ArtifactFormatError, "code has no function 'k'"),
        ("code.o", lambda data: data[:-1], ArtifactFormatError, "code.o is not what was written"),
        ("code.o", lambda data: None, ArtifactFormatError, "code.o is not what was written"),
        ("constants.safetensors", lambda data: b"", ArtifactFormatError, "damaged or cut off"),
        ("constants.safetensors", lambda data: None, ArtifactFormatError, "damaged or cut off"),
        ("program.json", lambda data: data.replace(b"x", b"y"), ArtifactFormatError,
         "program.json is not what was written"),
    ],
)  # fmt: skip
def test_files_that_were_changed(saved, tmp_path, name, edit, error, message):
    with pytest.raises(error, match=message):
        weft.load(changed(saved, tmp_path, name, edit))


def test_entries_that_would_grow_are_refused_before_they_are_read(saved, tmp_path):
    path = tmp_path / "bomb.weft"
    shutil.copy(saved, path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("parts/big.o", bytes(1 << 24))
    with pytest.raises(ArtifactFormatError, match=r"parts/big\.o is compressed, and save"):
        weft.load(path)


def test_entries_that_share_bytes_are_refused(saved, tmp_path):
    path = tmp_path / "shared.weft"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")
        archive.writestr("a", bytes(1 << 16))
        first = archive.getinfo("a")
        for name in ("b", "c"):
            copy = zipfile.ZipInfo(name)
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(copy, field, getattr(first, field))
            archive.filelist.append(copy)
    with pytest.raises(ArtifactFormatError, match=r"its entries have \d+ bytes, and the file has"):
        weft.load(path)


def test_two_entries_of_one_name_are_refused(saved, tmp_path):
    path = tmp_path / "twice.weft"
    shutil.copy(saved, path)
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        archive.writestr("code.o", archive.read("code.o"))
    with pytest.raises(ArtifactFormatError, match="two entries have one name"):
        weft.load(path)


@pytest.mark.parametrize("junk", [b"", b"junk", b"\x7fELF\x02\x01" + bytes(10)])
def test_code_that_is_no_object_is_refused_whatever_its_digest(saved, tmp_path, junk):
    with zipfile.ZipFile(saved) as archive:
        digests = json.loads(archive.read("manifest.json"))["digests"]
    digests["code.o"] = hashlib.blake2b(junk, digest_size=16).hexdigest()
    first = changed(saved, tmp_path, "code.o", lambda data: junk)
    (tmp_path / "again").mkdir()
    path = changed(first, tmp_path / "again", "manifest.json", manifest(digests=digests))
    with pytest.raises(TVMError, match=r"expected object code \(64-bit ELF\), got"):
        weft.load(path)(X)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.99, 0.9999])
def test_files_that_were_cut_off(saved, tmp_path, share):
    data = saved.read_bytes()
    (tmp_path / "cut.weft").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ArtifactFormatError, match=r"cut\.weft: this file is damaged or cut off"):
        weft.load(tmp_path / "cut.weft")


def test_no_flipped_bit_gets_through(saved, tmp_path):
    data = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    path = tmp_path / "flipped.weft"
    for place in rng.integers(0, len(data), 60):
        data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            np.testing.assert_array_equal(weft.load(path)(X), np.maximum(X * 2, 0))
        except ArtifactError as error:
            assert len(str(error)) < 300  # noqa: PT017 - either is right, a crash is not
        data = bytearray(saved.read_bytes())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n", r"expected a compiled model .* begins with b'\\x89PNG'"),
        (b"\x7fELF\x02\x01" + bytes(90), "got a library or object file without one"),
        (b"", "it is empty"),
    ],
)
def test_files_of_other_kinds(tmp_path, content, message):
    (tmp_path / "other.weft").write_bytes(content)
    with pytest.raises(ArtifactFormatError, match=message):
        weft.load(tmp_path / "other.weft")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ArtifactError, match=r"cannot read '.*none\.weft': No such file"):
        weft.load(tmp_path / "none.weft")
    with pytest.raises(ArtifactError, match="cannot read '.*': Is a directory"):
        weft.load(tmp_path)


# Machines.


def code(triple="x86_64-unknown-linux-gnu", features=("avx2",)):
    return ObjectCode(b"", (), triple, "znver3", features)


def test_a_processor_that_lacks_instructions_is_refused():
    here = ("x86_64-unknown-linux-gnu", "nehalem", {"sse4.2": True, "avx2": False})
    with pytest.raises(
        ArtifactTargetError,
        match=r"for the processor znver3 and needs avx2, which this one \(nehalem\) lacks; .*-v3",
    ):
        check_processor(code(), here)
    check_processor(code(features=("sse4.2",)), here)


def test_another_system_is_refused():
    here = ("aarch64-unknown-linux-gnu", "apple-m1", {})
    with pytest.raises(ArtifactTargetError, match="is for x86_64.* this process runs on aarch64"):
        check_processor(code(), here)


def test_loading_checks_the_processor(saved, tmp_path):
    described = json.loads(zipfile.ZipFile(saved).read("manifest.json"))["code"]
    described["features"] = ["avx1024", "sse9"]
    path = changed(saved, tmp_path, "manifest.json", manifest(code=described))
    with pytest.raises(ArtifactTargetError, match="needs avx1024, sse9, which this one"):
        weft.load(path)


# Disks.


def refuse(number):
    def replace(self, target):
        raise OSError(number, "No space left on device")

    return replace


def test_a_full_disk_leaves_the_old_file(saved, tmp_path, monkeypatch):
    target = tmp_path / "model.weft"
    shutil.copy(saved, target)
    monkeypatch.setattr(Path, "replace", refuse(errno.ENOSPC))
    with pytest.raises(
        ArtifactError, match="No space left on device; the file that was there is unchanged"
    ):
        weft.load(saved).save(target)
    assert target.read_bytes() == saved.read_bytes()
    assert [item.name for item in tmp_path.iterdir()] == ["model.weft"]


LIMITED = """
import resource, signal
import weft.runtime
model = weft.runtime.load({source!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    model.save({target!r})
except weft.runtime.ArtifactError as error:
    print(error)
"""


def test_a_file_that_may_not_grow(saved, tmp_path):
    target = tmp_path / "model.weft"
    target.write_bytes(b"before")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(source=str(saved), target=str(target))],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "File too large; the file that was there is unchanged" in done.stdout, done.stderr
    assert target.read_bytes() == b"before"
    assert [item.name for item in tmp_path.iterdir()] == ["model.weft"]


@pytest.mark.parametrize(
    ("path", "message"), [("a\0b.weft", "expected the path of"), ("x" * 999, "a shorter name")]
)
def test_names_that_no_file_has(saved, path, message):
    model = weft.load(saved)
    for action in (model.save, model.export_library, weft.load):
        with pytest.raises(ArtifactError, match=message):
            action(path)


def test_pipes_and_devices_are_refused_and_links_are_kept(saved, tmp_path):
    model, pipe, link = weft.load(saved), tmp_path / "pipe", tmp_path / "link.weft"
    os.mkfifo(pipe)
    for act in (weft.load, model.save):
        with pytest.raises(ArtifactError, match="expected a regular file, found a pipe$"):
            act(pipe)
    with pytest.raises(ArtifactError, match="expected a regular file, found a device$"):
        model.save("/dev/null")
    link.symlink_to(tmp_path / "target.weft")
    model.save(link)
    assert link.is_symlink()
    assert (tmp_path / "target.weft").read_bytes() == Path(saved).read_bytes()


def test_a_folder_that_is_not_there(saved, tmp_path):
    with pytest.raises(ArtifactError, match="cannot write '.*': No such file or directory"):
        weft.load(saved).save(tmp_path / "none" / "model.weft")


# The file as memory.


def weighty(tmp_path):
    """A model whose weight takes 4 MiB, saved; and the model."""
    numbers = np.random.default_rng(0).standard_normal((1024, 1024)).astype("float32")
    weight = weft.relax.const(numbers)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 1024), "float32")) -> R.Tensor((4, 1024), "float32"):
            with R.dataflow():
                y = R.matmul(x, weight)
                R.output(y)
            return y

    path = tmp_path / "weighty.weft"
    weft.compile(Module).save(path)
    return path, numbers


def private_bytes(path):
    """How many bytes of a file that is mapped are this process's own."""
    text = Path("/proc/self/smaps").read_text(encoding="utf-8")
    areas = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", text)
    mapped = [area for area in areas if str(path) in area]
    assert mapped
    return sum(int(number) << 10 for area in mapped for number in OWN.findall(area))


OWN = re.compile(r"(?m)^Private_Dirty: +(\d+) kB")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_weights_stay_in_the_file_and_processes_share_them(tmp_path):
    path, numbers = weighty(tmp_path)
    model = weft.load(path)
    x = np.ones((4, 1024), "float32")
    np.testing.assert_allclose(model(x), x @ numbers, rtol=1e-3, atol=1e-3)
    assert private_bytes(path) == 0
    largest = max(model.program.constants, key=lambda constant: constant.size)
    largest._array[...] = 0
    assert private_bytes(path) > 1 << 20
    np.testing.assert_array_equal(model(x), np.zeros_like(x))
    np.testing.assert_allclose(weft.load(path)(x), x @ numbers, rtol=1e-3, atol=1e-3)


def test_a_file_may_be_replaced_and_removed_while_a_model_uses_it(tmp_path):
    path, numbers = weighty(tmp_path)
    model = weft.load(path)
    x = np.ones((4, 1024), "float32")
    weft.compile(example()).save(path)
    path.unlink()
    np.testing.assert_allclose(model(x), x @ numbers, rtol=1e-3, atol=1e-3)


def test_a_file_system_that_maps_nothing_is_read(tmp_path, monkeypatch):
    path, numbers = weighty(tmp_path)

    def refuse(*args, **options):
        raise OSError(errno.ENODEV, "no mapping")

    maps_nothing = SimpleNamespace(mmap=refuse, ACCESS_COPY=mmap.ACCESS_COPY)
    monkeypatch.setattr(weft_file, "mmap", maps_nothing)
    x = np.ones((4, 1024), "float32")
    np.testing.assert_allclose(weft.load(path)(x), x @ numbers, rtol=1e-3, atol=1e-3)


def test_a_flipped_bit_of_a_weight_is_found(tmp_path):
    path, numbers = weighty(tmp_path)
    data = bytearray(path.read_bytes())
    data[data.index(numbers[0, :4].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArtifactFormatError, match=r"constants\.safetensors is not what was wri"):
        weft.load(path)
