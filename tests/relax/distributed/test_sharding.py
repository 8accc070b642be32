"""How a placement goes through operators, and that nothing runs what has one."""

import re

import numpy as np
import pytest

import weft
from weft import relax, script
from weft.ir import Range, load_json, save_json
from weft.ir.structural import assert_structural_equal, structural_equal
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.distributed import DeviceMesh, DTensorStructInfo, Placement
from weft.relax.reference.interpreter import run
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import DiagnosticError, IRTypeError, IRValueError, UnsupportedError
from weft.tir.expr import Var

MESH = DeviceMesh((2, 4), Range(0, 8))
LINE = DeviceMesh((2,), [0, 1])
N = Var("n", "int64")


def dtensor(dims, placement, dtype="float32", mesh=MESH):
    info = TensorStructInfo(dims, dtype)
    return DTensorStructInfo(info, mesh, Placement.from_text(placement))


ROWS = dtensor((8, 16), "S[0], R")
COLUMNS = dtensor((8, 16), "R, S[1]")

RULES = {
    "unary": (op.nn.relu, [ROWS], ROWS),
    "cast": (lambda x: op.astype(x, "float16"), [ROWS], dtensor((8, 16), "S[0], R", "float16")),
    "comparison": (op.less, [ROWS, ROWS], dtensor((8, 16), "S[0], R", "bool")),
    "both sharded": (op.add, [ROWS, COLUMNS], dtensor((8, 16), "S[0], S[1]")),
    "broadcast": (op.add, [ROWS, dtensor((16,), "R, S[0]")], dtensor((8, 16), "S[0], S[1]")),
    "one row": (op.add, [COLUMNS, dtensor((1, 16), "S[0], R")], COLUMNS),
    "number": (lambda x: op.add(x, 1.0), [ROWS], ROWS),
    "symbolic": (op.add, [dtensor((N, 4), "S[0], R"), dtensor((N, 4), "R, R")],
                 dtensor((N, 4), "S[0], R")),
    "rows times columns": (op.matmul, [ROWS, dtensor((16, 12), "R, S[1]")],
                           dtensor((8, 12), "S[0], S[1]")),
    "inner": (op.matmul, [COLUMNS, dtensor((16, 12), "R, S[0]")], dtensor((8, 12), "R, R")),
    "batch": (op.matmul, [dtensor((6, 8, 16), "S[0], S[1]"), dtensor((16, 12), "R, R")],
              dtensor((6, 8, 12), "S[0], S[1]")),
    "vector": (op.matmul, [dtensor((16,), "R, R"), dtensor((16, 12), "S[1], S[0]")],
               dtensor((12,), "S[0], R")),
    "row by column": (op.matmul, [dtensor((16,), "S[0], R"), dtensor((16,), "S[0], R")],
                      dtensor((), "R, R")),
    "transposed": (op.permute_dims, [ROWS], dtensor((16, 8), "S[1], R")),
    "permuted": (lambda x: op.permute_dims(x, [1, -3, 2]), [dtensor((2, 4, 8), "S[0], S[2]")],
                 dtensor((4, 2, 8), "S[1], S[2]")),
    "sum": (lambda x: op.sum(x, 0), [ROWS], dtensor((16,), "R, R")),
    "sum of others": (lambda x: op.sum(x, -1), [ROWS], dtensor((8,), "S[0], R")),
    "sum kept": (lambda x: op.sum(x, 0, keepdims=True), [COLUMNS],
                 dtensor((1, 16), "R, S[1]")),
    "sum of all": (op.sum, [ROWS], dtensor((), "R, R")),
    "sum along a whole axis": (lambda x: op.cumsum(x, 1), [dtensor((8, 16), "S[0], S[1]")], ROWS),
    "sum along all": (lambda x: op.cumsum(x), [ROWS], dtensor((128,), "R, R")),
    "activation": (op.nn.mish, [ROWS], ROWS),
    "softmax": (lambda x: op.nn.softmax(x, 1), [dtensor((8, 16), "S[0], S[1]")], ROWS),
    "split heads": (lambda x: op.reshape(x, (8, 4, 4)), [dtensor((8, 16), "S[0], S[1]")],
                    dtensor((8, 4, 4), "S[0], S[1]")),
    "merged heads": (lambda x: op.reshape(x, (8, 16)), [dtensor((8, 4, 4), "S[0], S[1]")],
                     dtensor((8, 16), "S[0], S[1]")),
    "heads that do not divide": (lambda x: op.reshape(x, (8, 2, 8)),
                                 [dtensor((8, 16), "S[0], S[1]")],
                                 dtensor((8, 2, 8), "S[0], R")),
    "last axis kept": (lambda x: op.reshape(x, (2, 4, 16)), [COLUMNS],
                       dtensor((2, 4, 16), "R, S[2]")),
    "replica": (lambda x: op.cumsum(x, 0), [dtensor((8,), "R, R")], dtensor((8,), "R, R")),
    "replicas": (lambda x, y: op.concat([x, y], 0), [dtensor((8,), "R, R")] * 2,
                 dtensor((16,), "R, R")),
    "parts of a replica": (lambda x: op.split(x, 2), [dtensor((8,), "R, R")],
                           TupleStructInfo([dtensor((4,), "R, R")] * 2)),
    "shape": (op.shape_of, [dtensor((8,), "R, R")], ShapeStructInfo([8])),
    "allreduce": (op.ccl.allreduce, [ROWS], ROWS),
    "annotated": (lambda x: op.distributed.annotate_sharding(x, MESH, "S[1], R"), [ROWS], ROWS),
    "redistributed": (lambda x: op.distributed.redistribute(x, MESH, "R, S[1]"), [ROWS], COLUMNS),
    "scattered": (lambda x: op.distributed.redistribute_replica_to_shard(x, 2, -1),
                  [dtensor((8, 16), "R", mesh=LINE)], dtensor((8, 16), "S[1]", mesh=LINE)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_placement_of_the_result(name, infer):
    make, infos, expected = RULES[name]
    assert infer(make, *infos) == expected


@pytest.mark.parametrize("name", sorted(RULES))
def test_text_and_json_come_back(name, build):
    make, infos, _ = RULES[name]
    mod = build(make, *infos)
    assert well_formed(mod)
    assert_structural_equal(script.from_source(mod.script(show_meta=True)), mod)
    assert_structural_equal(load_json(save_json(mod)), mod)


ERRORS = [
    (op.add, [ROWS, TensorStructInfo((8, 16))], IRTypeError,
     "relax.add: expected distributed tensors (R.DTensor) alone, got R.Tensor((8, 16)"),
    (op.add, [ROWS, dtensor((8, 16), "R", mesh=LINE)], IRValueError,
     "relax.add: the operands lie on two device meshes"),
    (op.add, [ROWS, dtensor((8, 16), "S[1], R")], IRValueError,
     "dimension 0 of the mesh divides two different axes, by 'S[0], R' and 'S[1], R'"),
    (lambda x: op.repeat(x, 2, 0), [ROWS], IRTypeError,
     "relax.repeat: nothing says how it goes on with parts of tensors; redistribute its operands "
     "to 'R, R' first"),
    (op.add, [ROWS, dtensor((8, 15), "R, R")], IRValueError, "cannot broadcast"),
    (lambda x: op.distributed.redistribute(x, MESH, "R, R"), [TensorStructInfo((8,))], IRTypeError,
     "relax.dist.redistribute: input: expected a distributed tensor (R.DTensor), got R.Tensor"),
    (lambda x: op.distributed.redistribute(x, MESH, "S[2], R"), [ROWS], IRValueError,
     "shards axis 2"),
    (lambda x: op.distributed.redistribute(x, "mesh[0]", "R"), [ROWS], IRTypeError,
     "device_mesh: expected a relax.distributed.DeviceMesh, got str: 'mesh[0]'"),
    (lambda x: op.distributed.redistribute(x, MESH, 0), [ROWS], IRTypeError,
     "placement: expected a relax.distributed.Placement or a text"),
    (lambda x: op.distributed.annotate_sharding(x, MESH, "R"), [ROWS], IRValueError,
     "the mesh (2, 4) has 2 dimensions, the placement 'R' has 1"),
    (lambda x: op.distributed.redistribute_replica_to_shard(x, 2, 0), [ROWS], IRValueError,
     "expected a replica ('R') on a mesh of one dimension"),
    (lambda x: op.distributed.redistribute_replica_to_shard(x, 4, 0),
     [dtensor((8,), "R", mesh=LINE)], IRValueError, "num_workers: expected 2, as the mesh has"),
    (lambda x: op.distributed.redistribute_replica_to_shard(x, 2, 0),
     [dtensor((7,), "R", mesh=LINE)], IRValueError,
     "axis 0 of 7 elements does not divide into 2 equal parts"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "infos", "error", "message"), ERRORS)
def test_errors_say_what_to_do(make, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(make, *infos)


@I.ir_module
class Listed:
    I.module_global_infos(
        {"mesh": [R.device_mesh((2, 2), I.Range(0, 4)), R.device_mesh((1,), [4])]}
    )

    @R.function
    def main(x: R.DTensor(("n", 4), "float32", device_mesh="mesh[0]", placement="S[0], R")):
        one = R.dist.const(1, R.DTensor((), "float32", "mesh[0]", "R, R"))
        added = R.add(x, one)
        moved = R.dist.redistribute(added, "mesh[0]", "R, S[1]")
        table = R.dist.const([1, 2, 3, 4], R.DTensor((4,), "float32", "mesh[0]", "R, R"))
        return R.multiply(moved, table)


def test_a_script_names_the_meshes_of_its_module():
    meshes = Listed.global_infos["mesh"]
    info = Listed["main"].params[0].struct_info
    assert info.device_mesh is meshes[0]
    assert Listed["main"].ret_struct_info.placement.to_text() == "R, S[1]"
    text = Listed.script(show_meta=True)
    assert 'x: R.DTensor(("n", 4), "float32", "mesh[0]", "S[0], R")' in text
    assert 'R.dist.const(1.0, R.DTensor((), "float32", "mesh[0]", "R, R"))' in text
    assert "R.device_mesh((2, 2), I.Range(0, 4)), R.device_mesh((1,), [4])" in text
    back = script.from_source(text)
    assert_structural_equal(back, Listed)
    assert back.script(show_meta=True) == text
    again = load_json(save_json(Listed))
    assert again["main"].params[0].struct_info.device_mesh is again.global_infos["mesh"][0]
    assert "R.device_mesh((2, 2), R.Range(0, 4))" in Listed["main"].script()


def test_the_names_below_dist_are_the_same():
    assert R.dist.DTensor((4,), "float32", R.dist.device_mesh((2,), [0, 1]), "R") == dtensor(
        (4,), "R", mesh=LINE
    )


def test_constants_of_two_placements_differ():
    first = R.dist.const(1, R.DTensor((), "float32", LINE, "R"))
    assert structural_equal(first, R.dist.const(1, R.DTensor((), "float32", LINE, "R")))
    assert not structural_equal(first, relax.const(1.0, "float32"))
    assert str(first) == (
        'R.dist.const(1.0, R.DTensor((), "float32", R.device_mesh((2,), [0, 1]), "R"))'
    )


UNKNOWN = [
    ('R.DTensor((4,), "float32", "mesh[2]", "R, R")', "the module has no device mesh 'mesh[2]'"),
    ('R.DTensor((4,), "float32", "mesh", "R, R")', "the module has no device mesh 'mesh'"),
    ('R.DTensor((4,), "float32", "mesh[0]", "Q")', "expected S[axis] and R"),
    ('R.DTensor((4,), "float32", "other[0]", "R")', "'other[0]' is a DummyGlobalInfo"),
]


@pytest.mark.parametrize(("annotation", "message"), UNKNOWN)
def test_wrong_names_of_meshes_are_told_under_the_line(annotation, message):
    source = f"""
@I.ir_module
class Module:
    I.module_global_infos({{"mesh": [R.device_mesh((1,), [0])], "other": [I.dummy_global_info()]}})
    @R.function
    def main(x: {annotation}):
        return x
"""
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        script.from_source(source)


def test_nothing_executes_them(build):
    message = "weft runs programs on one: graphs of distributed tensors can be built, deduced"
    with pytest.raises(UnsupportedError, match=re.escape(message)) as caught:
        relax.build(Listed)
    assert "relax.build: main: R.DTensor((n, 4)" in str(caught.value)
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        weft.compile(Listed)
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        run(Listed, "main", np.ones((2, 4), "float32"))
    marked = build(lambda x: op.distributed.annotate_sharding(x, LINE, "R"), TensorStructInfo((4,)))
    with pytest.raises(UnsupportedError, match=re.escape("main: relax.dist.annotate_sharding is")):
        relax.build(marked)
    reduced = build(op.ccl.allreduce, TensorStructInfo((4,)))
    machine = relax.VirtualMachine(relax.build(reduced), weft.cpu())
    with pytest.raises(IRValueError, match="'runtime.disco.allreduce': weft runs programs on one"):
        machine["main"](np.ones(4, "float32"))


def test_passes_leave_them_as_they_are():
    mod = relax.transform.LegalizeOps()(Listed)
    assert_structural_equal(mod, Listed)
    mod = relax.transform.CanonicalizeBindings()(relax.transform.ConvertToDataflow()(Listed))
    assert mod["main"].ret_struct_info == Listed["main"].ret_struct_info
