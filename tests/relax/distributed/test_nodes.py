"""Device meshes, placements and the struct info of distributed tensors, as nodes."""

import copy
import pickle
import re

import pytest

from weft import relax
from weft.ir import Range, assert_structural_equal, load_json, save_json, structural_hash
from weft.ir.reflection import make_node
from weft.ir.structural import structural_equal
from weft.relax.distributed import DeviceMesh, DTensorStructInfo, Placement, PlacementSpec
from weft.relax.distributed.struct_info import PlacementSpecKind
from weft.relax.ir.lattice import (
    BaseCheckResult,
    erase_to_well_defined,
    get_static_type,
    struct_info_base_check,
    struct_info_lca,
)
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.support.facade import PlannedNameError
from weft.tir.expr import Var

MESH = DeviceMesh((2, 2), Range(0, 4))
N = Var("n", "int64")


def dtensor(*dims, placement="S[0], R", dtype="float32", mesh=MESH):
    info = TensorStructInfo(dims, dtype)
    return DTensorStructInfo(info, mesh, Placement.from_text(placement))


def test_a_mesh_numbers_its_devices():
    assert MESH.shape == (2, 2)
    assert MESH.device_ids == [0, 1, 2, 3]
    assert_structural_equal(MESH.device_range, Range(0, 4))
    listed = DeviceMesh((2, 2), [0, 1, 2, 3])
    assert listed.device_range is None
    assert_structural_equal(MESH, listed)
    assert structural_hash(MESH) == structural_hash(listed)
    assert not structural_equal(MESH, DeviceMesh((4,), Range(0, 4)))
    assert not structural_equal(MESH, DeviceMesh((2, 2), Range(4, 8)))
    assert relax.distributed.device_mesh((1,), [7]).device_ids == [7]


@pytest.mark.parametrize(
    ("text", "axes"), [("S[0], R", [0, -1]), (" R ,S[ 11 ]", [-1, 11]), ("", []), ("R", [-1])]
)
def test_placements_are_read_and_written(text, axes):
    placement = Placement.from_text(text)
    assert [spec.axis for spec in placement.dim_specs] == axes
    kinds = [PlacementSpecKind.kReplica if a == -1 else PlacementSpecKind.kSharding for a in axes]
    assert [spec.kind for spec in placement.dim_specs] == kinds
    assert_structural_equal(Placement.from_text(placement.to_text()), placement)
    specs = [PlacementSpec.replica() if a == -1 else PlacementSpec.sharding(a) for a in axes]
    assert_structural_equal(Placement(specs), placement)


@pytest.mark.parametrize("text", ["S", "S[0] R", "T", "S[-1]", "S[0],", "R R", "S[x]"])
def test_a_text_that_is_no_placement_is_refused(text):
    with pytest.raises(IRValueError, match="expected S\\[axis\\] and R, such as 'S\\[0\\], R'"):
        Placement.from_text(text)


ERRORS = [
    (lambda: DeviceMesh((2, 2), [0, 1]), IRValueError,
     "a mesh of shape (2, 2) has 4 devices, got 2 device_ids"),
    (lambda: DeviceMesh((2,), Range(0, N)), IRTypeError, "expected a Range of constants"),
    (lambda: PlacementSpec.sharding(-1), IRValueError, "expected an axis from 0"),
    (lambda: PlacementSpec.sharding(-2), IRValueError, "expected an axis from 0"),
    (lambda: Placement(["R"]), IRTypeError, "expected PlacementSpec.sharding(axis)"),
    (lambda: dtensor(4, placement="R"), IRValueError,
     "the mesh (2, 2) has 2 dimensions, the placement 'R' has 1"),
    (lambda: dtensor(4, placement="R, S[1]"), IRValueError,
     "the placement 'R, S[1]' shards axis 1 of R.Tensor((4,), dtype=\"float32\")"),
    (lambda: DTensorStructInfo(TensorStructInfo(), MESH, Placement.from_text("S[0], R")),
     IRValueError, "shards axis 0 of"),
    (lambda: DTensorStructInfo(TensorStructInfo(), MESH, "R, R"), IRTypeError,
     "placement: expected a Placement, got str"),
    (lambda: relax.distributed.transform, PlannedNameError, "does not have yet"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), ERRORS)
def test_what_cannot_be_is_refused(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_struct_info_is_compared_hashed_kept_and_copied():
    info = dtensor(1, N + 1, 3)
    same = dtensor(1, N + 1, 3, mesh=DeviceMesh((2, 2), [0, 1, 2, 3]))
    assert info == same
    assert hash(info) == hash(same)
    assert info != dtensor(1, N + 1, 3, placement="R, S[0]")
    assert info != TensorStructInfo((1, N + 1, 3))
    back = load_json(save_json(info))
    assert_structural_equal(back, info, map_free_vars=True)
    assert structural_hash(back, True) == structural_hash(info, True)
    assert back.device_mesh.device_range is not None
    assert_structural_equal(pickle.loads(pickle.dumps(info)), info, map_free_vars=True)
    assert copy.deepcopy(info) is info


def test_nodes_are_made_by_the_names_of_their_classes():
    made = make_node(
        "relax.DTensorStructInfo", tensor_sinfo=TensorStructInfo((4,)), device_mesh=MESH,
        placement=Placement.from_text("R, R"),
    )  # fmt: skip
    assert made == dtensor(4, placement="R, R")
    assert_structural_equal(
        make_node("relax.distributed.DeviceMesh", shape=(1,), device_ids=[0]), DeviceMesh((1,), [0])
    )


BASE_CHECKS = [
    (dtensor(4, 6), dtensor(4, 6), "PASS"),
    (dtensor(4, N), dtensor(4, 6), "FAIL_L2"),
    (dtensor(4, 6), dtensor(4, 5), "FAIL_L0"),
    (dtensor(4, 6, dtype=""), dtensor(4, 6), "PASS"),
    (dtensor(4, 6), dtensor(4, 6, placement="R, S[0]"), "FAIL_L1"),
    (dtensor(4, 6), dtensor(4, 6, mesh=DeviceMesh((2, 2), Range(4, 8))), "FAIL_L1"),
    (dtensor(4, 6), TensorStructInfo((4, 6)), "FAIL_L0"),
    (TensorStructInfo((4, 6)), dtensor(4, 6), "FAIL_L0"),
    (dtensor(4, 6), ObjectStructInfo(), "FAIL_L1"),
    (ObjectStructInfo(), dtensor(4, 6), "PASS"),
]


@pytest.mark.parametrize(("base", "derived", "expected"), BASE_CHECKS)
def test_one_info_as_a_special_case_of_another(base, derived, expected):
    assert struct_info_base_check(base, derived) == BaseCheckResult[expected]
    assert base.is_base_of(derived) == (expected == "PASS")


def test_what_two_infos_have_in_common():
    assert struct_info_lca(dtensor(4, 6), dtensor(4, 6)) == dtensor(4, 6)
    both = struct_info_lca(dtensor(4, 6), dtensor(4, 5, dtype="float16"))
    assert both == DTensorStructInfo(
        TensorStructInfo(None, "", ndim=2), MESH, Placement.from_text("S[0], R")
    )
    assert struct_info_lca(dtensor(4), dtensor(4, 6)) == ObjectStructInfo()
    assert struct_info_lca(dtensor(4), dtensor(4, placement="R, R")) == ObjectStructInfo()
    assert struct_info_lca(dtensor(4), TensorStructInfo((4,))) == ObjectStructInfo()
    whole = struct_info_lca(dtensor(4, placement="R, R"), dtensor(4, 6, placement="R, R"))
    assert whole == DTensorStructInfo(TensorStructInfo(), MESH, Placement.from_text("R, R"))


def test_dimensions_are_erased_and_symbols_found():
    info = dtensor(N, 6)
    general = DTensorStructInfo(TensorStructInfo(ndim=2), MESH, info.placement)
    assert erase_to_well_defined(info) == general
    assert erase_to_well_defined(info, {N: N}) is info
    assert get_static_type(info) == general
    assert relax.analysis.tir_vars_in_struct_info(info) == [N]
    assert relax.analysis.definable_tir_vars_in_struct_info(info) == [N]
