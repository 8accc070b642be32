"""The object cache: hits, keys, damage, limits, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from weft.codegen import cache
from weft.codegen.build import compile_cached
from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.runtime.native.elf import function_bytes
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For, ForKind


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    return tmp_path / "objects"


def program(n: int = 8, name: str = "x") -> IRModule:
    a, b = decl_buffer((n,), "float32", name), decl_buffer((n,), "float32", "out")
    i = Var("i", "int32")
    loop = For(i, 0, n, ForKind.SERIAL, BufferStore(b, a[i] + 1.0, [i]))
    return IRModule({"main": PrimFunc([a, b], loop, attrs={"global_symbol": "main"})})


def test_the_second_compilation_is_a_hit(folder):
    lowered = []

    def lower(mod):
        lowered.append(mod)
        return mod

    first = compile_cached(program(), lower=lower)
    second = compile_cached(program(), lower=lower)
    assert len(lowered) == 1
    assert second.object_code == first.object_code
    assert second.specs == first.specs
    assert second.get_source("ll") == first.get_source("ll")
    assert len(list(folder.iterdir())) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


def test_everything_that_decides_the_code_is_in_the_key(folder, monkeypatch):
    compile_cached(program())
    compile_cached(program(9))
    compile_cached(program(name="y"))
    compile_cached(program(), checks=False)
    compile_cached(program(), "llvm -opt-level=1")
    compile_cached(program(), options=("unroll=4",))
    monkeypatch.setenv("WEFT_PERF", "1")
    compile_cached(program())
    assert len(list(folder.iterdir())) == 7


def test_only_code_for_perf_has_lines(folder, monkeypatch):
    sections = {}
    for flag in ("0", "1", ""):
        monkeypatch.setenv("WEFT_PERF", flag)
        sections[flag] = b".debug_line" in compile_cached(program()).object_code
    assert sections == {"0": False, "1": True, "": False}
    assert len(list(folder.iterdir())) == 2


def test_a_damaged_entry_is_a_miss(folder):
    good = compile_cached(program()).object_code
    entry = next(folder.iterdir())
    data = entry.read_bytes()
    for bad in (data[:-1], data[:20], b"", data[:100] + b"\xff" + data[101:]):
        entry.write_bytes(bad)
        assert cache.load(entry.name) is None
        assert not entry.exists()
        assert compile_cached(program()).object_code == good


def test_the_size_limit_deletes_what_was_unused_for_longest(folder, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_SIZE", "1")
    monkeypatch.setattr(cache, "_writes", 1)  # none of the writes below is the one that sweeps
    for number in range(4):
        cache.store(f"entry{number}", {"specs": []}, bytes(300_000))
        path = folder / f"entry{number}"
        os.utime(path, (number, number))
    stale = folder / "tmp-1-dead"
    stale.write_bytes(b"half")
    os.utime(stale, (1, 1))
    assert cache.load("entry0") is not None
    cache.sweep(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["entry0", "entry3"]


def test_the_cache_can_be_off_or_unusable(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    assert cache.cache_folder() is None
    monkeypatch.delenv("WEFT_NO_CACHE")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file"))
    assert cache.cache_folder() is None
    assert compile_cached(program()).object_code
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "open"))
    assert cache.cache_folder() is not None
    (tmp_path / "open" / "objects").chmod(0o777)
    assert cache.cache_folder() is None


def test_writers_may_be_killed_at_any_moment(folder):
    code = textwrap.dedent("""
        from weft.codegen import cache
        number = 0
        while True:
            number += 1
            code = bytes([number % 251]) * 200_000
            cache.store(f"key{number % 5}", {"specs": [], "n": number}, code)
    """)
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    try:
        while len(list(folder.glob("key*") if folder.exists() else [])) < 5:
            assert all(writer.poll() is None for writer in writers)
            time.sleep(0.05)
        for _ in range(200):
            for number in range(5):
                found = cache.load(f"key{number}")
                assert found is not None
                assert set(found[1]) == {found[0]["n"] % 251}
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    for number in range(5):
        assert cache.load(f"key{number}") is not None


def allocating(scope: str) -> PrimFunc:
    inner, out = decl_buffer((1,), "int32", "inner", scope=scope), decl_buffer((1,), "int32", "out")
    store = BufferStore(out, inner[0], [0])
    block = Block([], [], [], "b", store, alloc_buffers=[inner])
    return PrimFunc([out], BlockRealize([], IntImm("bool", 1), block))


def test_storage_scopes_and_where_names_end_are_in_the_key():
    digests = {cache.function_digest(allocating(scope)) for scope in ("global", "shared", "local")}
    assert len(digests) == 3
    names = [("x\0y", "z"), ("x", "y\0z"), ("ab", "c"), ("a", "bc"), ("a1;b", "c"), ("a", "1;bc")]
    odd = [PrimFunc([Var(a, "int32"), Var(b, "int32")], Evaluate(0)) for a, b in names]
    assert len({cache.function_digest(func) for func in odd}) == len(names)
    first, second = PrimFunc([], Evaluate(0)), PrimFunc([], Evaluate(1))
    assert cache.make_key([("f", first)]) != cache.make_key([("f", second)])


def test_an_entry_that_is_no_regular_file_is_a_miss(folder):
    before = compile_cached(program())
    (entry,) = folder.iterdir()
    for put in (os.mkfifo, os.mkdir):
        entry.unlink()
        put(entry)
        assert compile_cached(program()).object_code == before.object_code
        assert entry.is_dir() or entry.is_file()


def test_without_a_home_there_is_no_cache(monkeypatch):
    for name in ("WEFT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", nowhere)
    assert cache.cache_folder() is None
    assert compile_cached(program()).object_code


def test_lines_do_not_change_the_code(folder, monkeypatch):
    functions = {}
    for flag in ("0", "1"):
        monkeypatch.setenv("WEFT_PERF", flag)
        functions[flag] = function_bytes(compile_cached(program(4096)).object_code)
    assert functions["0"] == functions["1"]
    assert functions["0"]["weft__main"]
