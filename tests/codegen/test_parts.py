"""A module is compiled part by part: what is compiled again, and how calls find functions."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

import weft
from weft.codegen import cache
from weft.codegen.build import compile_cached
from weft.codegen.join_objects import join_objects
from weft.codegen.parts import parts_of, with_declarations
from weft.driver.pipeline import lower_tir
from weft.runtime.native.elf import read_object
from weft.runtime.native.native_library import NativeLibrary
from weft.script import ir as I
from weft.script import tir as T
from weft.support.errors import InternalError, TVMError
from weft.support.events import observing


@I.ir_module
class Sums:
    @T.prim_func
    def add(a: T.Buffer((256,), "float32"), b: T.Buffer((256,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in T.parallel(256):
            with T.block("add"):
                vi = T.axis.spatial(256, i)
                b[vi] = T.exp(a[vi]) + T.float32(1)

    @T.prim_func
    def least(n: T.int32) -> T.int32:
        T.ret(T.min(n, 3))

    @T.prim_func
    def twice(a: T.Buffer((256,), "float32"), c: T.Buffer((256,), "float32")):
        b = T.alloc_buffer((256,), "float32")
        with T.block("root"):
            T.reads(a[0:256])
            T.writes(c[0:256])
            Sums.add(a.data, b.data)
            Sums.add(b.data, c.data)


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """The names of the functions of each module that was lowered, with a cache of its own."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "1")  # forked children would append to their copy
    seen = []

    def lower(mod):
        seen.append(sorted(var.name_hint for var in mod.functions))
        return lower_tir()(mod)

    return lambda mod: (seen.clear(), compile_cached(mod, lower=lower), list(seen))[1:]


def with_float(mod, value):
    """The module with another number added in ``add``."""
    text = mod.script().replace("T.float32(1.0)", f"T.float32({value})")
    return weft.script.from_source(text)


def test_functions_that_call_are_one_part_and_each_other_function_is_one():
    parts, callers = parts_of(Sums)
    assert [[v.name_hint for v in part.functions] for part in parts] == [["add"], ["least"]]
    assert [v.name_hint for v in callers.functions] == ["twice"]
    alone, none = parts_of(parts[0])
    assert len(alone) == 1
    assert none is None


def test_calls_between_parts_find_their_functions(compiled):
    code, seen = compiled(Sums)
    assert seen == [["add"], ["least"], ["add", "least", "twice"]]
    assert [spec.name for spec in code.specs] == ["add", "least", "twice"]
    library = NativeLibrary(code.object_code)
    add, least, twice = [library.function(spec) for spec in code.specs]
    a, b, c = np.linspace(-2, 1, 256, dtype="float32"), *np.zeros((2, 256), "float32")
    add(a, b)
    twice(a, c)
    assert np.allclose(b, np.exp(a) + 1)
    assert np.allclose(c, np.exp(b) + 1, rtol=1e-5)
    assert (least(2), least(9)) == (2, 3)


def test_an_edited_kernel_alone_is_compiled_again(compiled):
    first, _ = compiled(Sums)
    again, seen = compiled(Sums)
    assert not seen
    assert again.object_code == first.object_code
    assert again.specs == first.specs
    edited, seen = compiled(with_float(Sums, 2.5))
    assert seen == [["add"]]
    a, b = np.ones(256, "float32"), np.zeros(256, "float32")
    NativeLibrary(edited.object_code).function(edited.specs[0])(a, b)
    assert np.allclose(b, np.e + 2.5)


def test_a_caller_is_compiled_again_when_what_it_calls_writes_something_else(compiled):
    """The effects of a kernel decide which tests its callers make, so they are in their key."""
    compiled(Sums)
    text = Sums.script().replace("b[vi] = ", "a[vi] = ")
    text = text.replace("T.writes(b[vi])", "T.writes(a[vi])")
    _, seen = compiled(weft.script.from_source(text))
    assert seen == [["add"], ["add", "least", "twice"]]


def compiled_by(workers, monkeypatch, lower=None):
    """The code of ``Sums``, of so many processes, and those that lowered something."""
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", str(workers))
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    reading, writing = os.pipe()

    def told(mod):
        os.write(writing, f"{os.getpid()} ".encode())
        time.sleep(0.2)  # so that a child that was just forked gets a part
        return (lower or lower_tir())(mod)

    code = compile_cached(Sums, lower=told)
    os.close(writing)
    with os.fdopen(reading) as file:
        return code, set(file.read().split())


def test_processes_share_in_lowering_and_the_code_is_the_same(monkeypatch):
    alone, one = compiled_by(1, monkeypatch)
    shared, two = compiled_by(3, monkeypatch)
    assert (len(one), len(two)) == (1, 2)
    assert shared.object_code == alone.object_code
    assert shared.specs == alone.specs


def test_a_process_that_ends_while_it_lowers_is_done_without(monkeypatch):
    here = os.getpid()

    def lower(mod):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return lower_tir()(mod)

    code, processes = compiled_by(3, monkeypatch, lower)
    assert len(processes) == 2
    assert code.object_code == compiled_by(1, monkeypatch)[0].object_code


def test_an_error_of_lowering_is_the_same_whoever_meets_it(monkeypatch):
    def lower(mod):
        raise TVMError("no such loop")

    for workers in (1, 3):
        with pytest.raises(TVMError, match="^no such loop$"):
            compiled_by(workers, monkeypatch, lower)


def test_whoever_observes_the_compiler_sees_every_part_also_of_other_processes(monkeypatch):
    parts = []
    with observing(lambda event, *details: event == "code" and parts.append(details[0])):
        _, processes = compiled_by(3, monkeypatch)
    assert len(processes) > 1
    assert len(parts) == 3


def test_what_a_declaration_tells(compiled):
    code, _ = compiled(Sums)
    parts, callers = parts_of(Sums)
    module = with_declarations(callers, parts, code.specs)
    assert code.specs[0].launches is False  # 256 elements are too little work for threads
    told = module["add"].attrs["weft.declared"]
    assert list(told["written"]) == [1]
    assert list(told["unknown"]) == []
    assert module["least"].attrs["weft.declared"]["returns"] == "int32"


def test_a_call_with_too_small_an_argument_is_refused_as_in_one_module():
    @I.ir_module
    class Short:
        @T.prim_func
        def fill(b: T.Buffer((64,), "float32")):
            for i in range(64):
                b[i] = T.float32(1)

        @T.prim_func
        def main(n: T.int64, c: T.handle):
            C = T.match_buffer(c, (n,), "float32")
            Short.fill(C.data)

    library = weft.build(Short)
    with pytest.raises(TVMError, match="fill"):
        library["main"](8, np.zeros(8, "float32"))
    wide = np.zeros(64, "float32")
    library["main"](64, wide)
    assert wide.all()


def test_the_joined_object_has_all_symbols_once(compiled):
    code, _ = compiled(Sums)
    defined, undefined = read_object(code.object_code).symbol_names()
    assert {"weft__add", "weft__least", "weft__twice"} <= defined
    assert not defined & undefined


def test_one_object_is_joined_to_itself_and_two_of_the_same_are_refused(compiled):
    code, _ = compiled(parts_of(Sums)[0][0])
    assert join_objects([code.object_code]) is code.object_code
    with pytest.raises(InternalError, match="two objects define weft__add"):
        join_objects([code.object_code, code.object_code])
    with pytest.raises(InternalError, match="expected ELF objects"):
        join_objects([b"junk", b"junk"])


def test_a_damaged_part_is_compiled_again(compiled, tmp_path):
    first, _ = compiled(Sums)
    entries = sorted((tmp_path / "objects").iterdir(), key=lambda path: path.stat().st_size)
    assert len(entries) == 3
    entries[0].write_bytes(b"junk")
    again, seen = compiled(Sums)
    assert len(seen) == 1
    assert again.object_code == first.object_code
    assert cache.load(entries[0].name) is not None
