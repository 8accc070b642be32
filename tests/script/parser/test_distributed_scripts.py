"""Distributed tensors in scripts: meshes by name, placements by text, calls, and what is wrong."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.struct_info import DTensorStructInfo
from weft.script import from_source
from weft.script import relax as R
from weft.script.ir_builder import relax_distributed
from weft.support.errors import IRTypeError, IRValueError

MODULE = """
@I.ir_module(check_well_formed=False)
class Module:
    I.module_global_infos({
        "mesh": [R.device_mesh((2, 2), I.Range(0, 4)), R.device_mesh((4,), [7, 1, 2, 3])],
        "other": [I.dummy_global_info()],
    })

    @T.prim_func(private=True)
    def f(x: T.handle, y: T.handle):
        T.evaluate(0)

    @R.function
    def main(x: %s, y: R.Tensor((8, 8), "float32")):
        cls = Module
        z = %s
        return z
"""
X = 'R.DTensor((8, 8), "float32", "mesh[0]", "S[0], R")'


def parse(value="x", annotation=X):
    module = from_source(MODULE % (annotation, value))
    assert_round_trip(module)
    return module


def test_a_mesh_is_named_by_its_place_in_the_module():
    module = parse()
    info = module["main"].params[0].struct_info
    assert isinstance(info, DTensorStructInfo)
    assert info.device_mesh is module.global_infos["mesh"][0]
    assert info.placement.to_text() == "S[0], R"
    assert [int(extent) for extent in info.tensor_sinfo.shape.values] == [8, 8]


# An annotation, its shape or number of dimensions, its type and its placement.
ANNOTATIONS = [
    (X, [8, 8], "float32", "S[0], R"),
    ('R.DTensor((8, 8), "float32", "mesh[1]", "S[1]")', [8, 8], "float32", "S[1]"),
    ('R.DTensor((8, 8), "float32", device_mesh="mesh[0]", placement="R, R")', [8, 8], "float32",
     "R, R"),
    ('R.DTensor(dtype="int8", device_mesh="mesh[1]", placement="R", ndim=2)', 2, "int8", "R"),
    ('R.DTensor(("n", 8), "float32", "mesh[1]", "S[0]")', None, "float32", "S[0]"),
    ('R.dist.DTensor((8,), "float32", "mesh[1]", "R")', [8], "float32", "R"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "placement"), ANNOTATIONS, ids=[row[0] for row in ANNOTATIONS]
)
def test_an_annotation(text, shape, dtype, placement):
    info = parse(annotation=text)["main"].params[0].struct_info
    whole = info.tensor_sinfo
    assert (whole.dtype, info.placement.to_text()) == (dtype, placement)
    if isinstance(shape, int):
        assert (whole.shape, whole.ndim) == (None, shape)
    elif shape is None:
        assert whole.shape.values[0].name == "n"
    else:
        assert [int(extent) for extent in whole.shape.values] == shape


OUT = 'R.DTensor((8, 8), "float32", "mesh[0]", "R, R")'
CALLS = [
    (f"R.dist.call_tir(cls.f, (x,), {OUT})", "relax.call_tir"),
    (f"R.dist.call_tir(cls.f, (x,), [{OUT}, {OUT}])", "relax.call_tir"),
    (f"R.dist.call_tir('env.f', (x,), {OUT})", "relax.call_dps_packed"),
    (f"R.dist.call_tir_local_view(cls.f, (x,), {OUT})", "relax.dist.call_tir_local_view"),
    ('R.dist.redistribute(x, "mesh[0]", "R, R")', "relax.dist.redistribute"),
    ('R.dist.annotate_sharding(y, "mesh[0]", "S[1], R")', "relax.dist.annotate_sharding"),
]


@pytest.mark.parametrize(("call", "name"), CALLS, ids=[call for call, _ in CALLS])
def test_a_call(call, name):
    (binding,) = parse(call)["main"].body.blocks[0].bindings
    assert binding.value.op.name == name


def test_a_constant_of_a_mesh():
    module = parse('R.dist.const(1.5, R.DTensor((), "float32", "mesh[1]", "R"))')
    (binding,) = module["main"].body.blocks[0].bindings
    assert isinstance(binding.value.struct_info, DTensorStructInfo)
    assert "R.dist.const(1.5, R.DTensor(" in module.script()


WRONG = [
    ("x", 'R.DTensor((8, 8), "float32", "mesh[2]", "R, R")',
     "the module has no device mesh 'mesh[2]'; write I.module_global_infos({'mesh': "),
    ("x", 'R.DTensor((8, 8), "float32", "mesh", "R, R")', "the module has no device mesh 'mesh'"),
    ("x", 'R.DTensor((8, 8), "float32", "none[0]", "R")',
     "the module has no device mesh 'none[0]'"),
    ("x", 'R.DTensor((8, 8), "float32", "other[0]", "R")',
     "'other[0]' is a DummyGlobalInfo of the module, no device mesh"),
    ("x", 'R.DTensor((8, 8), "float32", 3, "R")',
     "expected a device mesh or a text such as 'mesh[0]', got int"),
    ("R.dist.const(1.5, R.Tensor((), 'float32'))", X,
     "R.dist.const: struct_info: expected an R.DTensor, got R.Tensor"),
    ("R.dist.call_tir(cls.f, (x,), R.Tensor((8, 8), 'float32'))", X,
     "R.dist.call_tir: out_sinfo: expected R.DTensor, got"),
    ("R.dist.call_tir_local_view(cls.f, (x,), R.Tensor((8, 8), 'float32'))", X,
     "R.dist.call_tir_local_view: out_sinfo: expected R.DTensor, got"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "annotation", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_wrong(value, annotation, message):
    text, _ = error_of(MODULE % (annotation, value))
    assert text.startswith(message)


def test_outside_of_a_module_a_mesh_has_no_name():
    with pytest.raises(IRValueError, match="the module has no device mesh 'mesh\\[0\\]'"):
        relax_distributed.find_mesh("mesh[0]")
    with pytest.raises(IRTypeError, match="expected a device mesh or a text"):
        relax_distributed.find_mesh(None)
    mesh = R.device_mesh((2,), [0, 1])
    assert isinstance(mesh, DeviceMesh)
    assert relax_distributed.find_mesh(mesh) is mesh


def test_a_mesh_that_no_module_lists_prints_in_full():
    mesh = R.device_mesh((2,), [5, 3])
    info = DTensorStructInfo(R.Tensor((4,), "float32"), mesh, relax_distributed.find_placement("R"))
    assert repr(mesh) == "R.device_mesh((2,), [5, 3])"
    assert repr(info) == 'R.DTensor((4,), "float32", R.device_mesh((2,), [5, 3]), "R")'
    assert repr(R.device_mesh((2, 2), [0, 1, 2, 3])).startswith("R.device_mesh((2, 2), ")
