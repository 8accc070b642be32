"""Traits are facts: each is held against what the operator's numpy reference computes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.op import Op
from weft.ir.operator_rules import OperatorRules
from weft.ir.traits import Trait, has, has_all
from weft.relax.distributed.sharding import LABELS
from weft.relax.reference import reference_of, run
from weft.relax.transform.graph.movement import MOVEMENTS
from weft.relax.transform.layout.layouts import LAYOUTS
from weft.support.annotations import spelled
from weft.support.errors import IRValueError, TVMError

DTYPES = ("float32", "int32", "bool")
SHAPE = (2, 3, 4)


def operators(trait):
    """The operators with a trait that have a reference."""
    known = [Op.get(name) for name in Op.list_op_names()]
    return [op for op in known if reference_of(op) and has(op, trait)]


def named(trait):
    return [pytest.param(op, id=op.name) for op in operators(trait)]


def values(dtype, seed, shape=SHAPE):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "int32":
        return rng.integers(1, 7, shape).astype("int32")
    return rng.uniform(0.1, 0.9, shape).astype("float32")


NEEDED = {"Dtype": "float32", "str": "float32"}
"""Kind of an attribute without default -> a value; of numbers, 1, 2, 3 and so on."""


def needed_attrs(op):
    """A value for each attribute that has no default."""
    parameters = inspect.signature(op.get_attr("function")).parameters
    needed = [
        name for name in op.get_attr("attrs") if parameters[name].default is parameters[name].empty
    ]
    kinds = [spelled(parameters[name].annotation) for name in needed]
    return {
        name: NEEDED.get(kind, number)
        for number, (name, kind) in enumerate(zip(needed, kinds, strict=True), 1)
    }


def call_of(op):
    """The operator on as many tensors as it takes, of the first dtype it takes, and values."""
    tensors = [name for name in op.get_attr("params") if name not in ("min", "max")]
    more = (relax.PrimValue(0), relax.PrimValue(1)) if op.name == "relax.clip" else ()
    for dtype in DTYPES:
        kinds = ["bool" if name == "condition" else dtype for name in tensors]
        given = [
            relax.Var(name, relax.TensorStructInfo(SHAPE, kind))
            for name, kind in zip(tensors, kinds, strict=True)
        ]
        call = op.get_attr("function")(*given, *more, **needed_attrs(op))
        try:
            relax.BlockBuilder().normalize(call)
        except TVMError:
            continue
        numbers = [arg.value.value for arg in call.args if isinstance(arg, relax.PrimValue)]
        return call, [values(kind, seed) for seed, kind in enumerate(kinds)], numbers
    raise AssertionError(f"{op.name} takes none of {DTYPES}")


def attrs_of(call):
    plain = {name: call.attrs[name] for name in call.op.get_attr("attrs")}
    return {
        name: list(value) if isinstance(value, tuple) else
        str(value) if name == "dtype" else value for name, value in plain.items()
    }  # fmt: skip


@pytest.mark.parametrize("op", named(Trait.ELEMENTWISE))
def test_elementwise(op):
    """On permuted tensors the result is permuted; on one element, that element of the result."""
    call, arrays, numbers = call_of(op)
    function, attrs = reference_of(op), attrs_of(call)
    whole = np.asarray(function(*arrays, *numbers, **attrs))
    assert whole.shape == SHAPE
    moved = np.asarray(function(*[a.transpose(2, 0, 1) for a in arrays], *numbers, **attrs))
    np.testing.assert_array_equal(moved, whole.transpose(2, 0, 1))
    one = np.asarray(function(*[a[1:, 2:, 3:] for a in arrays], *numbers, **attrs))
    np.testing.assert_array_equal(one, whole[1:, 2:, 3:])


def test_what_combines_elements_is_not_elementwise():
    for name in ("nn.softmax", "nn.prelu", "cumsum", "flip", "sum", "reshape", "sort"):
        assert not has(Op.get(f"relax.{name}"), Trait.ELEMENTWISE), name


@pytest.mark.parametrize(
    "op", [op for op in map(Op.get, Op.list_op_names()) if has(op, Trait.NARROW)]
)
def test_narrow_operators_name_the_type_of_their_sums(op):
    assert "out_dtype" in op.get_attr("attrs")


STEP = 2.0**-11
"""Half the distance between neighbouring float16, as a share of the number."""


def following():
    known = operators(Trait.FOLLOWS)
    return [pytest.param(op, id=op.name) for op in known if has(op, Trait.ELEMENTWISE)]


@pytest.mark.parametrize("op", following())
def test_operators_that_follow_keep_digits_and_range(op):
    """Rounded arguments change the result by a few roundings; what is large becomes no larger."""
    call, arrays, numbers = call_of(op)
    function, attrs = reference_of(op), attrs_of(call)
    floats = [array.dtype == "float32" for array in arrays]
    rounded = [
        array.astype("float16").astype("float32") if is_float else array
        for array, is_float in zip(arrays, floats, strict=True)
    ]
    exact, near = [np.asarray(function(*given, *numbers, **attrs)) for given in (arrays, rounded)]
    assert np.abs(near - exact).max() <= 4 * STEP * max(np.abs(exact).max(), 1)
    if op.name not in ("relax.multiply", "relax.divide"):
        large = [
            array * 3e4 if is_float else array
            for array, is_float in zip(arrays, floats, strict=True)
        ]
        assert np.abs(function(*large, *numbers, **attrs)).max() < 65504


@pytest.mark.parametrize("op", named(Trait.COMMUTATIVE))
def test_commutative(op):
    call, (first, second), _ = call_of(op)
    function, attrs = reference_of(op), attrs_of(call)
    np.testing.assert_array_equal(
        function(first, second, **attrs), function(second, first, **attrs)
    )


EXACT_VALUES = {
    "float32": [0.0, -0.0, 1.0, 1 / 3, -1e-40, 3e38, np.inf, -np.inf, np.nan, 1.0000001, 1e-7, 7.5],
    "float16": [0.0, -0.0, 1.0, 1 / 3, -6e-8, 65504.0, np.inf, np.nan, 1.0009765625, 0.1, 7.5, 3.0],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31), 5, 7, 1000003, -46341, 3, 2, 11],
}
"""Zeros with signs, subnormal numbers, ties, overflow; of integers, what wraps."""


@pytest.mark.parametrize("dtype", EXACT_VALUES)
@pytest.mark.parametrize("op", [op for op in named(Trait.EXACT) if "layout" not in op.id])
def test_exact(op, dtype):
    """The reference, rounded to the type, has the bits that compiled code gives."""
    if dtype == "int32" and op.name == "relax.sqrt":
        pytest.skip("of floats")
    pool = np.array(EXACT_VALUES[dtype], dtype)
    divisors = np.where(pool == 0, 9, pool) if dtype == "int32" else pool
    tensors = [pool.repeat(12), np.tile(divisors, 12)][: len(op.get_attr("params"))]
    info = relax.TensorStructInfo((144,), dtype)
    given = [relax.Var(name, info) for name in op.get_attr("params")]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        builder.emit_func_output(builder.emit(op.get_attr("function")(*given)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), weft.cpu())
    compiled = machine["main"](*tensors).numpy()
    with np.errstate(all="ignore"):
        reference = np.asarray(reference_of(op)(*tensors), dtype)
    is_number = ~np.isnan(reference)
    np.testing.assert_array_equal(np.isnan(compiled), ~is_number)
    np.testing.assert_array_equal(
        compiled[is_number].view(f"u{compiled.itemsize}"),
        reference[is_number].view(f"u{reference.itemsize}"),
    )


@pytest.mark.parametrize("op", named(Trait.REDUCTION))
@pytest.mark.parametrize(("axis", "shape"), [(None, ()), ([1], (2, 4)), ([-1, 0], (3,))])
def test_reduction(op, axis, shape):
    """The named axes go, or stay with extent one; the order of elements along them is nothing."""
    data, function = values("float32", 0), reference_of(op)
    np.testing.assert_equal(np.shape(function(data, axis=axis, keepdims=False)), shape)
    kept = np.asarray(function(data, axis=axis, keepdims=True))
    axes = range(3) if axis is None else [a % 3 for a in axis]
    assert kept.shape == tuple([1 if a in axes else n for a, n in enumerate(SHAPE)])
    reversed_ = np.flip(data, tuple(axes))
    np.testing.assert_allclose(function(reversed_, axis=axis, keepdims=True), kept, rtol=1e-6)


@pytest.mark.parametrize("op", named(Trait.ALONG_AXIS))
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_axis(op, axis):
    """Each line along the axis gives the line of the result that it gives alone."""
    data, function = values("float32", 0), reference_of(op)
    whole = np.asarray(function(data, axis=axis))
    assert whole.shape == SHAPE
    ends = [np.moveaxis(item, axis, -1) for item in (data, whole)]
    lines, results = [item.reshape(-1, SHAPE[axis]) for item in ends]
    for line, result in zip(lines, results, strict=True):
        np.testing.assert_allclose(function(line, axis=0), result, rtol=1e-12)


MOVED = {
    "as_strided": lambda x: relax.op.as_strided(x, (3, 5), (4, 2), 1),
    "diagonal": lambda x: relax.op.diagonal(x, 1, 1, 2),
    "diagonal_scatter": lambda x: relax.op.diagonal_scatter(
        x, relax.op.flip(relax.op.diagonal(x, 0, 0, 1), 1), 0, 0, 1
    ),
    "reverse_sequence": lambda x: relax.op.reverse_sequence(
        x, relax.const(np.array([3, 2], "int64")), 1, 0
    ),
    "unfold": lambda x: relax.op.unfold(x, 1, 2, 1),
    "broadcast_to": lambda x: relax.op.broadcast_to(x, (5, 2, 3, 4)),
    "concat": lambda x: relax.op.concat([x, x], 1),
    "dynamic_strided_slice": lambda x: relax.op.dynamic_strided_slice(
        x, *[relax.const(np.array(item, "int64")) for item in ([0, 1, 0], [2, 3, 4], [1, 1, 2])]
    ),
    "expand_dims": lambda x: relax.op.expand_dims(x, [0]),
    "flatten": relax.op.flatten,
    "flip": lambda x: relax.op.flip(x, 1),
    "permute_dims": lambda x: relax.op.permute_dims(x, [1, 0, 2]),
    "repeat": lambda x: relax.op.repeat(x, 2, 1),
    "reshape": lambda x: relax.op.reshape(x, (4, 6)),
    "split": lambda x: relax.op.split(x, 2, 2),
    "squeeze": relax.op.squeeze,
    "stack": lambda x: relax.op.stack([x, x], 1),
    "strided_slice": lambda x: relax.op.strided_slice(x, [1], [0], [2]),
    "take": lambda x: relax.op.take(x, relax.const(np.array([2, 0], "int64")), 1),
    "tile": lambda x: relax.op.tile(x, [2]),
}


def test_every_operator_that_moves_is_in_the_table():
    assert {op.name.removeprefix("relax.") for op in operators(Trait.MOVES)} == set(MOVED)


@pytest.mark.parametrize("name", MOVED)
def test_moves(name):
    """Each element of the result is one of the argument."""
    data = relax.Var("x", relax.TensorStructInfo(SHAPE, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        builder.emit_func_output(builder.emit(MOVED[name](data)))
    given = values("float32", 0)
    made = run(builder.get(), "main", given)
    made = made if isinstance(made, tuple | list) else [made]
    assert all(np.asarray(item).size and np.isin(np.asarray(item), given).all() for item in made)


def test_questions():
    assert has(Op.get("relax.reshape"), Trait.VIEW | Trait.REDUCTION)
    assert not has_all(Op.get("relax.reshape"), Trait.VIEW | Trait.REDUCTION)
    assert has_all(Op.get("relax.reshape"), Trait.VIEW | Trait.MOVES)
    assert has(Op.get("relax.matmul"), Trait.CONTRACTION)
    assert not has(relax.ExternFunc("f"), Trait.VIEW)
    assert not has(None, Trait.VIEW)


def test_rules_by_name_go_before_rules_by_trait():
    rules = OperatorRules("relax.")

    @rules.of("exp")
    def by_name():
        pass

    @rules.of(Trait.ELEMENTWISE)
    def by_trait():
        pass

    assert rules.get(Op.get("relax.exp")) is by_name
    assert rules.get(Op.get("relax.add")) is by_trait
    assert rules.get(Op.get("relax.sum")) is None
    assert rules.get(relax.ExternFunc("exp")) is None
    with pytest.raises(IRValueError, match=r"relax\.exp has a rule: .*by_name"):
        rules.of("exp")(by_trait)
    with pytest.raises(IRValueError, match="ELEMENTWISE has a rule: .*by_trait"):
        rules.of(Trait.ELEMENTWISE)(by_name)


def test_an_operator_of_a_users_own_is_asked_by_its_traits():
    """ConvertLayout, in-place calls and sharding take it as they take weft's own."""
    op = Op.register("test.traits_own", traits=Trait.ELEMENTWISE)
    add = Op.get("relax.add")
    for rules in (LABELS, LAYOUTS, MOVEMENTS):
        assert rules.get(op) is rules.get(add) is not None
