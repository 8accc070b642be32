"""Phases of the compiler's work are told in pairs to whoever watches; nothing else differs."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import weft
from weft import relax
from weft.support.errors import PassError
from weft.support.progress import Phase, phase, watching


def module(weights):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, len(weights)), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.matmul(x, relax.const(weights)))
        builder.emit_func_output(y)
    return builder.get()


def test_phases_nest_and_end_where_an_error_leaves_them():
    told = []
    with watching(lambda name, begins: told.append((name, begins))):
        with pytest.raises(ValueError, match="lost"), phase("graph"), phase("lowering"):
            raise ValueError("lost")
    assert told == [("graph", True), ("lowering", True), ("lowering", False), ("graph", False)]
    with phase("graph"):
        pass
    assert len(told) == 4, "nobody watches any more"


def test_a_compilation_tells_its_phases_in_pairs(monkeypatch):
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    weights = np.ones((8, 3), "float32")
    names, running = set(), []

    def watch(name, begins):
        names.add(name)
        if begins:
            running.append(name)
        else:
            assert running.pop() == name

    with watching(watch):
        compiled = weft.compile(module(weights))
    assert not running
    assert names >= {"import", "graph", "schedules", "lowering", "emission", "LLVM", "loading"}
    assert names <= set(get_args(Phase))
    x = np.arange(32, dtype="float32").reshape(4, 8)
    np.testing.assert_array_equal(compiled(x), x @ weights)


def test_a_compilation_that_fails_ends_its_phases():
    told = []

    @weft.transform.module_pass(opt_level=0)
    def failing(mod, _context):
        raise PassError("no such luck")

    with watching(lambda name, begins: told.append(begins)):
        with pytest.raises(PassError, match="no such luck"):
            weft.compile(module(np.ones((8, 3), "float32")), relax_pipeline=failing)
    assert told.count(True) == told.count(False) > 0
