"""SplitResizes: which resizes become two, with the same results."""

import numpy as np
import pytest

from weft import relax, tir
from weft.arith import Analyzer
from weft.ir.functor import collect, substitute
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.graph.split_resizes import SplitResizes

H, W, A, B = [tir.SizeVar(name, "int64") for name in "hwab"]
CASES = {
    "a known factor": ((1, 2, H, W), (H * 2, W * 3), {}),
    "another image's size": (
        (1, 2, H, W), (A, B), {"coordinate_transformation_mode": "asymmetric"}
    ),
    "known columns of the image": ((1, 2, 7, 5), (9, B), {}),
    "cubic": ((1, 2, H, W), (A, B), {"method": "cubic", "cubic_alpha": -0.75, "cubic_exclude": 1}),
    "aligned corners": (
        (1, 2, H, W), (A, B), {"coordinate_transformation_mode": "align_corners"}
    ),
    "volumes": ((1, 2, 3, H, W), (5, A, B), {}),
}  # fmt: skip
STAYS = {
    "known columns": ((1, 2, H, 5), (A, 10), {}),
    "columns that keep their number": ((1, 2, H, W), (A, W), {}),
    "rows that keep their number": ((1, 2, H, W), (H, B), {}),
    "nearest pixels": ((1, 2, H, W), (A, B), {"method": "nearest_neighbor"}),
    "channels along vectors": ((1, H, W, 2), (A, B), {"layout": "NHWC"}),
    "integers": ((1, 2, H, W), (A, B), {"dtype": "uint8"}),
    "a result of integers": ((1, 2, H, W), (A, B), {"out_dtype": "int16"}),
    "a part of the image": (
        (1, 2, H, W), (A, B),
        {"coordinate_transformation_mode": "tf_crop_and_resize", "roi": [0.0, 0.0, 1.2, 1.2]},
    ),
}  # fmt: skip
SIZES = {"h": 4, "w": 6, "a": 9, "b": 5}


def module_of(dims, size, options):
    """A resize; a second input has the size as its shape, which tells the symbols."""
    options = dict(options)
    x = relax.Var("x", relax.TensorStructInfo(dims, options.pop("dtype", "float32")))
    like = relax.Var("like", relax.TensorStructInfo(size, "float32"))
    resize = op.image.resize2d if len(size) == 2 else op.image.resize3d
    builder = relax.BlockBuilder()
    with builder.function("main", [x, like]):
        with builder.dataflow():
            y = builder.emit_output(resize(x, relax.ShapeExpr(size), **options))
        builder.emit_func_output(y)
    return builder.get()


def resizes(mod):
    return [call for call in collect(mod["main"].body, Call) if "resize" in call.op.name]


def value_of(extent):
    values = {var: tir.IntImm("int64", SIZES[var.name]) for var in (H, W, A, B)}
    return int(Analyzer().simplify(substitute(extent, values)))


def arrays_of(mod):
    rng = np.random.default_rng(0)
    infos = [param.struct_info for param in mod["main"].params]
    return [rng.uniform(-3, 3, [value_of(extent) for extent in info.shape.values])
            .astype(str(info.dtype)) for info in infos]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_columns_are_resized_after_the_other_axes(case):
    before = module_of(*CASES[case])
    after = SplitResizes()(before)
    assert well_formed(after)
    first, second = resizes(after)
    kept = [call.struct_info.shape.values[-1] for call in (before["main"].params[0], first)]
    assert str(kept[0]) == str(kept[1])
    arrays = arrays_of(before)
    expected = run(before, "main", *arrays)
    np.testing.assert_allclose(run(after, "main", *arrays), expected, rtol=1e-6, atol=1e-6)
    assert second.struct_info.dtype == first.struct_info.dtype == "float32"


@pytest.mark.parametrize("case", STAYS)
def test_others_stay(case):
    before = module_of(*STAYS[case])
    assert SplitResizes()(before) is before or len(resizes(SplitResizes()(before))) == 1


def test_short_floats_are_rounded_once():
    dims, size, options = CASES["a known factor"]
    after = SplitResizes()(module_of(dims, size, {**options, "dtype": "float16"}))
    first, second = resizes(after)
    assert (first.struct_info.dtype, second.struct_info.dtype) == ("float32", "float16")
