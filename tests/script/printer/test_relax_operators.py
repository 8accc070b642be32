"""Every registered graph operator's call, with every attribute set, comes back from its text."""

import inspect

import pytest

from tests.lib.round_trip import assert_round_trip
from weft import relax
from weft.ir.expr import Range
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.struct_info import DTensorStructInfo, Placement
from weft.relax.op.definition import FUNCTIONS
from weft.support.annotations import spelled
from weft.tir.index_map import IndexMap


def T(*shape, dtype="float32"):  # noqa: N802 - stands for a type
    return relax.TensorStructInfo(shape, dtype)


X, V, IDS = T(2, 6, 4), T(6), T(5, dtype="int64")
REDUCE = ([X], {"axis": [0, 2], "keepdims": True})
SCAN = ([X], {"axis": 1, "dtype": "float64", "exclusive": True})
ARG = ([X], {"axis": 1, "keepdims": True})
F = relax.PrimValue
MESH, SHARDED = DeviceMesh((2,), Range(0, 2)), Placement.from_text("S[0]")


def spatial(rank):
    letters = {1: "W", 2: "HW", 3: "DHW"}[rank]
    return f"N{letters}C", f"NC{letters}", letters


def pool(rank):
    last, first, _ = spatial(rank)
    return ([T(2, *[8] * rank, 4)], {
        "pool_size": [3] * rank, "strides": [2] * rank, "padding": [1] * (2 * rank),
        "dilation": [2] * rank, "ceil_mode": True, "count_include_pad": True, "layout": last,
        "out_layout": first,
    })  # fmt: skip


def adaptive(rank):
    last, first, _ = spatial(rank)
    sizes = {"output_size": [2] * rank, "layout": last, "out_layout": first}
    return ([T(2, *[8] * rank, 4)], sizes)


def conv(rank, transposed=False):
    last, first, letters = spatial(rank)
    kernel = f"{letters}{'OI' if transposed else 'IO'}"
    channels = (3, 4) if transposed else (2, 6)
    return ([T(2, *[9] * rank, 4), T(*[3] * rank, *channels)], {
        "strides": [2] * rank, "padding": [1, 2] * rank, "dilation": [2] * rank, "groups": 2,
        **({"output_padding": [1] * rank} if transposed else {}), "data_layout": last,
        "kernel_layout": kernel, "out_layout": first, "out_dtype": "float64",
    })  # fmt: skip


def resize(rank):
    size = relax.ShapeStructInfo([8] * rank)
    return ([T(2, *[4] * rank, 3), size], {
        "roi": [0.0] * rank + [0.25] * rank, "layout": spatial(rank)[0], "method": "cubic",
        "coordinate_transformation_mode": "asymmetric", "rounding_method": "floor",
        "cubic_alpha": -0.75, "cubic_exclude": 1, "extrapolation_value": 0.1,
        "out_dtype": "float64",
    })  # fmt: skip


CASES = {
    "argmax": ARG, "argmin": ARG, "cumprod": SCAN, "cumsum": SCAN,
    "max": REDUCE, "min": REDUCE, "mean": REDUCE, "prod": REDUCE, "std": REDUCE, "sum": REDUCE,
    "variance": REDUCE, "median": REDUCE,
    "bitcast": ([X], {"dtype": "int32"}),
    "unfold": ([X], {"axis": 1, "size": 3, "step": 2}),
    "diagonal": ([X], {"offset": -1, "axis1": 1, "axis2": 2}),
    "diagonal_scatter": ([X, T(2, 4)], {"offset": -1, "axis1": 1, "axis2": 2}),
    "histogram": ([V, T(), T()], {"bins": 5}),
    "cummax": ([X], {"axis": 1}), "cummin": ([X], {"axis": 1}), "logcumsumexp": ([X], {"axis": 1}),
    "searchsorted": ([V, T(3)], {"out_int32": True, "right": True}),
    "image.weighted_taps": ([X, T(5, 3, dtype="int64"), T(5, 3)], {"axis": 1, "skip_zeros": True}),
    "reverse_sequence": ([X, T(4, dtype="int64")], {"seq_axis": 0, "batch_axis": 2}),
    "nn.lrn": ([T(2, 6, 4)], {"size": 3, "axis": 2, "alpha": 0.25, "beta": 0.5, "bias": 1.0}),
    "nn.im2col": ([T(2, 3, 8, 9)], {"kernel_size": [2, 3], "strides": [2, 1], "padding": [1, 2],
                                    "dilation": [2, 1]}),
    "nn.deform_im2col": ([T(2, 4, 8, 9), T(2, 24, 4, 11)], {
        "kernel_size": [2, 3], "strides": [2, 1], "padding": [1, 2], "dilation": [2, 1],
        "offset_groups": 2}),
    "nn.col2im": ([T(2, 3, 2, 3, 4, 11), relax.ShapeStructInfo([8, 9])],
                  {"strides": [2, 1], "padding": [1, 2], "dilation": [2, 1]}),
    "linspace": ([], {"start": F(1), "end": F(9), "steps": F(5), "dtype": "float64"}),
    "nn.max_pool_indices": ([T(2, 3, 8, 9)], {"pool_size": [2, 3], "strides": [2, 1],
                                              "padding": [1, 1], "dilation": [2, 1]}),
    "arange": ([], {"start": F(1), "end": F(9), "step": F(2), "dtype": "int32"}),
    "argsort": ([X], {"axis": 1, "descending": True, "dtype": "int64"}),
    "astype": ([X], {"dtype": "int8"}),
    "bucketize": ([X, V], {"out_int32": True, "right": True}),
    "concat": ([], {"tensors": [V, V], "axis": None}),
    "dequantize": ([T(2, 6, dtype="int8"), V, T(6, dtype="int8")],
                   {"axis": 1, "out_dtype": "float16"}),
    "quantize": ([T(2, 6), V, T(6, dtype="int8")], {"axis": 1, "out_dtype": "uint8"}),
    "einsum": ([], {"operands": [X, X], "subscripts": "abc,abd->cd"}),
    "expand_dims": ([X], {"axis": [0, -1]}),
    "eye": ([], {"n": F(3), "m": F(4), "k": F(1), "dtype": "int32"}),
    "eye_like": ([T(3, 4)], {"k": F(-1), "dtype": "int32"}),
    "flip": ([X], {"axis": 1}),
    "full": ([], {"shape": [2, 3], "fill_value": T(), "dtype": "float16"}),
    "full_like": ([X], {"fill_value": T(), "dtype": "float16"}),
    "gather_elements": ([V, IDS], {"axis": -1}),
    "gather_nd": ([X, T(2, 5, 1, dtype="int64")], {"batch_dims": 1}),
    "hamming_window": ([], {"window_size": F(9), "periodic": F(False), "alpha": F(0.5),
                            "beta": F(0.5), "dtype": "float64"}),
    "index_put": ([X], {"indices": [IDS, T(5, dtype="int32")], "values": T(5, 4),
                        "accumulate": True}),
    **{f"image.resize{rank}d": resize(rank) for rank in (1, 2, 3)},
    "image.grid_sample": ([T(2, 4, 5, 3), T(2, 2, 8, 9)], {
        "method": "bicubic", "layout": "NHWC", "padding_mode": "border", "align_corners": True}),
    "image.affine_grid": ([T(2, 2, 3), relax.ShapeStructInfo([8, 9])], {"align_corners": False}),
    "ccl.allreduce": ([X], {"op_type": "max", "in_group": False}),
    "ccl.allgather": ([X], {"num_workers": 2, "in_group": False}),
    "ccl.scatter_from_worker0": ([X], {"num_workers": 3, "axis": 1}),
    "dist.annotate_sharding": ([X], {"device_mesh": MESH, "placement": SHARDED}),
    "dist.redistribute": ([DTensorStructInfo(X, MESH, SHARDED)],
                          {"device_mesh": MESH, "placement": Placement.from_text("R")}),
    "dist.redistribute_replica_to_shard": ([X], {"num_workers": 3, "axis": 1}),
    "vision.roi_align": ([T(2, 6, 7, 3), T(4, 5)], {
        "pooled_size": [2, 3], "spatial_scale": 0.25, "sample_ratio": 2, "aligned": True,
        "layout": "NHWC", "mode": "max"}),
    "vision.roi_pool": ([T(2, 3, 6, 7), T(4, 5)], {"pooled_size": [2, 3],
                                                   "spatial_scale": 0.25}),
    "vision.all_class_non_max_suppression": (
        [T(2, 7, 4), T(2, 3, 7), T(dtype="int64"), T(), T()], {"output_format": "onnx"}),
    "nn.lstm": ([T(7, 2, 4), T(12, 4), T(12, 3), T(12), T(12), T(2, 3), T(2, 3)],
                {"reverse": True, "weight_layout": "OGIF"}),
    "nn.recurrent_layer": (
        [T(7, 2, 12), T(12, 0), T(12, 3), T(12), T(12), [T(2, 3), T(2, 3), T(9)],
         T(2, dtype="int64")],
        {"kind": "lstm", "reverse": True, "activations": ["hardsigmoid", "relu", "elu"],
         "alphas": [0.25, 0.0, 0.5], "betas": [0.5, 0.0, 0.0], "clip": 0.5, "reset_after": True,
         "input_forget": True, "quantize_state": True, "projected": True}),
    "nn.gru": ([T(7, 2, 4), T(9, 4), T(9, 3), T(9), T(9), T(2, 3)], {"reverse": True}),
    "nn.rnn": ([T(7, 2, 4), T(3, 4), T(3, 3), T(3), T(3), T(2, 3)],
               {"activation": "relu", "reverse": True}),
    **{
        f"linalg.{name}": ([T(2, 3, 3)], {"upper": True})
        for name in ("cholesky", "eigh", "eigvalsh")
    },
    "linalg.qr": ([X], {"complete": True}), "linalg.svd": ([X], {"full_matrices": False}),
    "linalg.solve_triangular": ([T(3, 3), T(3, 2)], {"upper": True, "unitriangular": True}),
    "linalg.lstsq": ([T(4, 3), T(4, 2)], {"rcond": 0.25}),
    "linalg.lu_factor": ([X], {"check": True}), "linalg.ldl_factor": ([T(3, 3)], {"check": True}),
    "linalg.lu_solve": ([T(3, 3), T(3, dtype="int32"), T(3, 2)], {"adjoint": True}),
    "linalg.ormqr": ([T(4, 3), T(3), T(4, 2)], {"transpose": True}),
    "matmul": ([X, T(4, 3)], {"out_dtype": "float64"}),
    "nn.attention": ([T(2, 3, 4, 5), T(2, 7, 4, 5), T(2, 7, 4, 6)],
                     {"scale": 0.1, "causal_mask": "BottomRight", "window_size": 3}),
    "nn.attention_var_len": (
        [T(1, 3, 4, 5), T(1, 7, 4, 5), T(1, 7, 4, 6), T(3, dtype="int32"), T(dtype="int32"),
         T(3, dtype="int32"), T(dtype="int32")],
        {"scale": 0.1, "causal_mask": "BottomRight", "window_size": 3}),
    "nn.attention_bias": ([T(2, 3, 4, 5), T(2, 7, 4, 5), T(2, 7, 4, 6), T(2, 4, 3, 7)],
                          {"scale": 0.1, "causal_mask": "BottomRight", "window_size": 3}),
    "nn.batch_norm": ([X, V, V, V, V], {"axis": 1, "epsilon": 0.1, "center": False,
                      "scale": False, "momentum": 0.3, "training": False}),
    "nn.dense": ([X, T(3, 4)], {"out_dtype": "float64"}),
    "nn.dropout": ([X], {"rate": 0.1}),
    "nn.group_norm": ([X, V, V], {"num_groups": 3, "channel_axis": 1, "axes": [2],
                                  "epsilon": 1e-7, "center": False, "scale": False}),
    "nn.instance_norm": ([X, V, V], {"channel_axis": 1, "axes": [2], "epsilon": 1e-7,
                                     "center": False, "scale": False}),
    "nn.elu": ([X], {"alpha": 0.3}), "nn.celu": ([X], {"alpha": 0.3}),
    "nn.hardtanh": ([X], {"min_val": -0.3, "max_val": 0.3}),
    "nn.hardshrink": ([X], {"lambd": 0.3}), "nn.softshrink": ([X], {"lambd": 0.3}),
    "nn.pixel_shuffle": ([T(8, 3, 4)], {"upscale_factor": 2}),
    "nn.layer_norm": ([X, V, V], {"axes": [1], "epsilon": 1e-7, "center": False, "scale": False}),
    "nn.leakyrelu": ([X], {"alpha": 0.3}),
    "nn.log_softmax": ([X], {"axis": 1}), "nn.softmax": ([X], {"axis": 1}),
    "nn.nll_loss": ([T(3, 4), T(3, dtype="int64"), T(4)],
                    {"reduction": "none", "ignore_index": 2}),
    "nn.pad": ([X], {"pad_width": [0, 0, 1, 2, 3, 2], "pad_mode": "reflect", "pad_value": 0.1}),
    "nn.prelu": ([X, T(4)], {"axis": 2}),
    "nn.rms_norm": ([X, V], {"axes": [1], "epsilon": 1e-7}),
    "nn.softplus": ([X], {"beta": 2.5, "threshold": 10.0}),
    "layout_transform": ([T(14, 6)], {
        "index_map": IndexMap.from_func(lambda i, j: [i // 4, j, i % 4]),
        "pad_value": F(2.5), "axis_separators": [1], "input_axis_separators": [1],
    }),
    "meshgrid": ([], {"tensors": [V, T(4)], "indexing": "xy"}),
    "multinomial_from_uniform": ([T(3, 4), T(5, 1), T(5, 1, dtype="int64")], {"dtype": "int32"}),
    "one_hot": ([IDS], {"on_value": F(2), "off_value": F(-1), "depth": 7, "axis": 0}),
    "ones": ([], {"shape": [2, 3], "dtype": "int8"}),
    "ones_like": ([X], {"dtype": "int8"}),
    "permute_dims": ([X], {"axes": [2, 0, 1]}),
    "repeat": ([X], {"repeats": 2, "axis": 1}),
    "scatter_elements": ([V, IDS, T(5)], {"axis": -1, "reduction": "mul"}),
    "scatter_nd": ([V, T(5, 1, dtype="int64"), T(5)], {"reduction": "add"}),
    "slice_scatter": ([X, T(2, 2, 4)], {"start": F(1), "end": F(5), "step": F(2), "axis": 1}),
    "sort": ([X], {"axis": 1, "descending": True}),
    "tree_ensemble": (
        [T(6, 4), T(1, dtype="int32"), T(3, 5, dtype="int32"), T(3), T(2, dtype="int32"), T(2)],
        {"count": 2, "modes": "LEQ GT", "has_missing": True, "aggregate": "MAX"},
    ),
    "split": ([X], {"indices_or_sections": [1, 4], "axis": 1}),
    "squeeze": ([T(1, 3, 1)], {"axis": [0, 2]}),
    "stack": ([], {"tensors": [X, X], "axis": 2}),
    "strided_slice": ([X], {"axes": [1], "begin": [0], "end": [5], "strides": [2],
                            "assume_inbound": True}),
    "take": ([X, IDS], {"axis": 1, "mode": "wrap"}),
    "tile": ([X], {"repeats": [2, 1, 3]}),
    "topk": ([X], {"k": 2, "axis": 1, "ret_type": "values", "largest": False, "dtype": "int64"}),
    "wrap_param": ([T(3, dtype="float16")], {"dtype": "float64"}),
    "zeros": ([], {"shape": [2, 3], "dtype": "int8"}),
    "zeros_like": ([X], {"dtype": "int8"}),
    **{f"nn.{kind}_pool{rank}d": pool(rank) for kind in ("max", "avg") for rank in (1, 2, 3)},
    **{
        f"nn.adaptive_{kind}_pool{rank}d": adaptive(rank)
        for kind in ("max", "avg") for rank in (1, 2, 3)
    },
    **{f"nn.conv{rank}d": conv(rank) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": conv(rank, True) for rank in (1, 2, 3)},
}  # fmt: skip
"""Operator -> (struct infos of the leading arguments, all other parameters); none a default."""


def other_number(index, parameter):
    """A value of a float, an int or a bool that is no default."""
    kind, default = spelled(parameter.annotation), parameter.default
    if kind == "bool":
        return default is not True
    start = default if isinstance(default, int | float) else 0
    return start + (0.25 if kind == "float" else 1) * (index + 1)


def derived_case(name):
    """The case of an element-wise operator of floats whose attributes are numbers, else None."""
    op = Op.get(f"relax.{name}")
    if not has(op, Trait.ELEMENTWISE):
        return None
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    numbers = [parameters[key] for key in op.get_attr("attrs")]
    tensors = [parameters[key] for key in op.get_attr("params")]
    kinds = {spelled(item.annotation) for item in numbers}
    if not kinds or kinds - {"float", "int", "bool"}:
        return None
    if any(spelled(item.annotation) != "Expr" for item in tensors):
        return None
    return [T(3)] * len(tensors), {p.name: other_number(i, p) for i, p in enumerate(numbers)}


OPERATORS = [name for name in FUNCTIONS if f"relax.{name}" in Op.list_op_names()]
CASES |= {
    name: case
    for name in OPERATORS
    if name not in CASES and (case := derived_case(name)) is not None
}
ELSEWHERE = {
    "hint_on_device": "tests/script/printer/test_relax_nodes.py: devices need a module",
    "to_vdevice": "as hint_on_device",
}


def function(name, infos, given):
    """A function of one call; what is a struct info among the parameters becomes a variable."""
    params = []

    def variable(value):
        if isinstance(value, list):
            return [variable(item) for item in value]
        if not isinstance(value, relax.StructInfo):
            return value
        params.append(relax.Var(f"x{len(params)}", value))
        return params[-1]

    call = FUNCTIONS[name](
        *[variable(info) for info in infos],
        **{key: variable(value) for key, value in given.items()},
    )
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call))
    return bb.get()


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_call_with_every_attribute_comes_back(name):
    mod = function(name, *CASES[name])
    assert_round_trip(mod)
    for line in mod.script(show_meta=True).splitlines():
        assert "None" not in line or name == "concat"


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_attribute_in_the_table_is_a_default(name):
    infos, given = CASES[name]
    call = function(name, infos, given)["main"].body.blocks[0].bindings[-1].value
    known = {*given, *call.op.get_attr("params")}
    assert [key for key in call.attrs if key not in known] == []


def test_the_table_has_every_operator_with_attributes():
    registered = {
        name.removeprefix("relax.")
        for name in Op.list_op_names()
        if name.startswith("relax.") and Op.get(name).get_attr("attrs")
    }
    assert registered - set(CASES) - set(ELSEWHERE) == set()


PLAIN = sorted(
    name
    for name in FUNCTIONS
    if f"relax.{name}" in Op.list_op_names()
    and Op.get(f"relax.{name}").get_attr("params")
    and not Op.get(f"relax.{name}").get_attr("attrs")
    and not name.startswith(("call_", "dist.call_", "builtin.", "memory.", "vm."))
)
INFOS = {
    "bitwise_and": T(3, dtype="int32"), "bitwise_or": T(3, dtype="int32"),
    "bitwise_xor": T(3, dtype="int32"), "bitwise_not": T(3, dtype="int32"),
    "left_shift": T(3, dtype="int32"), "right_shift": T(3, dtype="int32"),
    "gcd": T(3, dtype="int32"),
    "logical_and": T(3, dtype="bool"), "logical_or": T(3, dtype="bool"),
    "logical_xor": T(3, dtype="bool"), "logical_not": T(3, dtype="bool"),
    "tensor_to_shape": T(3, dtype="int64"), "shape_to_tensor": relax.ShapeStructInfo([2, 3]),
}  # fmt: skip
SPECIAL = {
    "where": [T(3, dtype="bool"), T(3), T(3)],
    "masked_scatter": [T(3), T(3, dtype="bool"), T(3)],
    "outer": [T(3), T(4)],
    "grouped_matmul": [T(7, 3), T(2, 3, 4), T(2, dtype="int32")],
    "block_scaled_matmul": [T(7, 6), T(2, 3, 4, dtype="int8"), T(2, 4)],
    "couple_pairs": [T(5, 3, 3)],
    "linalg.solve": [T(3, 3), T(3, 2)],
    **{f"linalg.{name}": [T(2, 3, 3)] for name in ("inv", "det", "slogdet", "matrix_exp")},
    "linalg.svdvals": [T(2, 3)],
    "linalg.geqrf": [T(2, 3)],
    "linalg.lu_unpack": [T(2, 3), T(2, dtype="int32")],
    "linalg.ldl_solve": [T(3, 3), T(3, dtype="int32"), T(3, 2)],
    **{f"linalg.{name}": [T(2, 3, 3)] for name in ("eig", "eigvals")},
    "as_strided": [T(6), relax.ShapeExpr([2, 3]), relax.ShapeExpr([1, 2]), F(1)],
    "nn.adaptive_max_pool_indices": [T(2, 3, 8, 9), relax.ShapeExpr([4, 5])],
    "clip": [T(3), F(0), F(6)],
    "broadcast_to": [T(3), relax.ShapeExpr([2, 3])],
    "reshape": [T(6), relax.ShapeExpr([2, 3])],
    "collapse_sum_to": [T(2, 3), relax.ShapeExpr([3])],
    "tril": [T(3, 3), F(1)],
    "triu": [T(3, 3), F(-1)],
    "nn.cross_entropy_with_logits": [T(3, 4), T(3, 4)],
    "dynamic_strided_slice": [T(3), *[T(1, dtype="int64")] * 3],
    "unique": [T(3), F(True), F(True), F(False), F(True), F(0)],
    "assert_op": [T(dtype="bool"), T(3), relax.StringImm("at {}")],
    "index_tensor": [T(3, 4), [T(2, dtype="int64"), T(2, dtype="int64")]],
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_call_without_attributes_comes_back(name):
    count = len(Op.get(f"relax.{name}").get_attr("params"))
    infos = SPECIAL.get(name) or [INFOS.get(name, T(3))] * count
    assert_round_trip(function(name, infos, {}))
