"""The helpers of ``tvm.contrib``: folders, kept results, the C compiler, library products."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

import weft
from weft import te
from weft.compat import cblas, contrib, toolchain
from weft.support.errors import TVMError, UnsupportedError


def test_a_temporary_folder_goes_with_its_context():
    with contrib.tempdir() as folder:
        path = folder.relpath("a.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("x")
        assert folder.listdir() == ["a.txt"]
        assert path == folder / "a.txt"
    assert not os.path.exists(path)


def test_memoize_computes_once():
    calls = []

    @contrib.memoize("key")
    def double(value):
        calls.append(value)
        return 2 * value

    assert (double(3), double(3), double(4)) == (6, 6, 8)
    assert calls == [3, 4]


needs_cc = pytest.mark.skipif(toolchain.get_cc() is None, reason="needs a C compiler")


@needs_cc
def test_a_shared_library_is_made_from_source(tmp_path):
    source, library = tmp_path / "f.c", str(tmp_path / "f.so")
    source.write_text(
        '#ifdef __cplusplus\nextern "C"\n#endif\nint twice(int x) { return 2 * x; }\n'
    )
    toolchain.create_shared(library, [source])
    assert ctypes.CDLL(library).twice(21) == 42
    toolchain.cross_compiler("cc")(library, str(source), options=["-O2"])


@needs_cc
def test_an_error_of_the_compiler_is_short(tmp_path):
    source = tmp_path / "f.c"
    source.write_text("this is no program\n")
    with pytest.raises(TVMError, match="ended with status 1"):
        toolchain.create_shared(str(tmp_path / "f.so"), [source])


def test_a_machine_without_clang_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert toolchain.find_clang(required=False) == []
    with pytest.raises(UnsupportedError, match="there is no clang on PATH"):
        toolchain.create_llvm("int x;")
    with pytest.raises(UnsupportedError, match="there is no C compiler on PATH"):
        toolchain.create_shared("f.so", [])


@pytest.mark.parametrize(("transa", "transb"), [(False, False), (True, False), (False, True)])
def test_a_library_product_in_a_te_program(transa, transb):
    left = np.arange(6, dtype="float32").reshape((3, 2) if transa else (2, 3))
    right = np.arange(12, dtype="float32").reshape((4, 3) if transb else (3, 4))
    a, b = te.placeholder(left.shape, name="a"), te.placeholder(right.shape, name="b")
    c = cblas.matmul(a, b, transa, transb)
    built = weft.build(te.create_prim_func([a, b, c]), target="llvm")
    out = weft.nd.empty((2, 4), "float32")
    built["main"](weft.nd.array(left), weft.nd.array(right), out)
    expected = (left.T if transa else left) @ (right.T if transb else right)
    weft.testing.assert_allclose(out, expected)
