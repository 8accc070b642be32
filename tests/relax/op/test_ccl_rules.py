"""Collective communication and distribution: rules, text, and what they are lowered to."""

import re

import pytest

from tests.lib.rule_cases import check_rule
from weft import relax, script
from weft.ir.structural import assert_structural_equal
from weft.relax import op
from weft.relax.distributed import DeviceMesh
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRIndexError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


X = tensor(4, 6)
MESH = DeviceMesh((2,), [0, 1])

RULES = {
    "allreduce": (op.ccl.allreduce, [X], X),
    "allgather": (lambda x: op.ccl.allgather(x, 3), [X], tensor(12, 6)),
    "broadcast": (op.ccl.broadcast_from_worker0, [X], X),
    "scatter": (lambda x: op.ccl.scatter_from_worker0(x, 3, 1), [X], tensor(4, 2)),
    "annotate": (lambda x: op.distributed.annotate_sharding(x, MESH, "R"), [X], X),
    "shard": (lambda x: op.distributed.redistribute_replica_to_shard(x, 2, -1), [X],
              tensor(4, 3)),
}  # fmt: skip

SYMBOLIC = [
    (lambda x: op.ccl.allgather(x, 2), [tensor(N, M)], tensor(N * 2, M)),
    (lambda x: op.ccl.scatter_from_worker0(x, 2), [tensor(N, M)], tensor(N // 2, M)),
]

ERRORS = [
    (lambda x: op.ccl.allreduce(x, "median"), [X], IRValueError,
     "relax.ccl.allreduce: op_type: expected sum, prod, min, max, avg, got 'median'"),
    (lambda x: op.ccl.scatter_from_worker0(x, 4, 1), [X], IRValueError,
     "axis 1 of 6 elements does not divide into 4 equal parts"),
    (lambda x: op.ccl.scatter_from_worker0(x, 2, 2), [X], IRIndexError, "axis 2 is out of range"),
    (lambda x: op.ccl.allgather(x, 0), [X], IRValueError, "num_workers: expected 1 or more, got 0"),
    (lambda x: op.ccl.allgather(x, 2), [tensor()], IRValueError,
     "x: expected at least 1 dimension, got 0"),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule(name, infer):
    make, infos, expected = RULES[name]
    check_rule(infer, make, infos, expected)


@pytest.mark.parametrize(("make", "infos", "expected"), SYMBOLIC)
def test_symbolic_results(make, infos, expected, infer):
    assert infer(make, *infos) == expected


@pytest.mark.parametrize(("make", "infos", "error", "message"), ERRORS)
def test_errors_name_the_operator_and_the_numbers(make, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(make, *infos)


@pytest.mark.parametrize("name", sorted(RULES))
def test_text_comes_back(name, build):
    make, infos, _ = RULES[name]
    mod = build(make, *infos)
    assert_structural_equal(script.from_source(mod.script(show_meta=True)), mod)


LOWERED = {
    "allreduce": ("runtime.disco.allreduce", 3),
    "allgather": ("runtime.disco.allgather", 2),
    "broadcast": ("runtime.disco.broadcast_from_worker0", 2),
    "scatter": ("runtime.disco.scatter_from_worker0", 2),
}


@pytest.mark.parametrize("name", sorted(LOWERED))
def test_collectives_become_calls_of_registered_functions(name, build):
    make, infos, expected = RULES[name]
    mod = relax.transform.LegalizeOps()(build(make, *infos))
    last = mod["main"].body.blocks[0].bindings[-1].value
    symbol, count = LOWERED[name]
    assert last.op.name == "relax.call_dps_packed"
    assert last.args[0].global_symbol == symbol
    assert len(last.args[1].fields) == count
    assert last.struct_info == expected


def test_scattered_parts_are_compact(build):
    """Worker i's part lies at i of the first axis of what the runtime is given."""
    mod = relax.transform.LegalizeOps()(build(RULES["scatter"][0], X))
    parts = mod["main"].body.blocks[0].bindings[-1].value.args[1].fields[0]
    assert parts.struct_info == tensor(3, 4, 2)
