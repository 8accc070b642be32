"""Compiled kernels in files: ``export_library`` and ``load_module``."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from tests.lib.tuning_programs import matmul
from weft.runtime.module import Module
from weft.support.errors import ArtifactError, ArtifactFormatError, UnsupportedError


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "kernels.tar")
    weft.build(matmul(8), "llvm").export_library(path)
    return path


def product(module):
    a, c = np.random.default_rng(0).random((8, 8), "float32"), weft.nd.empty((8, 8))
    module(weft.nd.array(a), weft.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), a @ a, rtol=1e-5)


def test_a_file_gives_the_functions_again(path, tmp_path):
    module = weft.runtime.load_module(path)
    assert module.entry_name == "main"
    product(module)
    module.export_library(str(tmp_path / "copy.bin"))
    product(weft.runtime.load_module(str(tmp_path / "copy.bin")))


def test_a_file_gives_the_functions_in_another_process(path):
    program = (
        "import numpy as np, weft; m = weft.runtime.load_module(r'{}'); c = weft.nd.empty((8, 8)); "
        "one = weft.nd.array(np.ones((8, 8), 'float32')); m(one, one, c); print(c.numpy().sum())"
    )
    printed = output_of(program.format(path))
    assert printed == "512.0\n"


def test_several_functions_and_a_marked_entry(tmp_path):
    first = matmul(4)["main"].with_attr("global_symbol", "first")
    second = matmul(8)["main"].with_attr("global_symbol", "second")
    mod = weft.IRModule({"first": first, "second": second.with_attr("tir.is_entry_func", True)})
    weft.build(mod, "llvm").export_library(str(tmp_path / "two.bin"))
    module = weft.runtime.load_module(str(tmp_path / "two.bin"))
    assert sorted(module.functions) == ["first", "second"]
    product(module)


@pytest.mark.parametrize("place", [20, 40, 200, -1])
def test_damage_is_found(path, place):
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        content[place] ^= 1
        file.seek(0)
        file.write(content)
    with pytest.raises(ArtifactFormatError, match="found a damaged file; build the program again"):
        weft.runtime.load_module(path)


def test_other_files_are_those_of_models(path, tmp_path):
    with pytest.raises(ArtifactError, match="expected a compiled model"):
        (tmp_path / "text.txt").write_text("no program")
        weft.runtime.load_module(str(tmp_path / "text.txt"))
    with pytest.raises(ArtifactError, match="No such file"):
        weft.runtime.load_module(str(tmp_path / "none.bin"))


def test_functions_of_python_are_not_written(tmp_path):
    with pytest.raises(UnsupportedError, match="expected a module that weft.build compiled"):
        Module({"f": print}).export_library(str(tmp_path / "f.bin"))
