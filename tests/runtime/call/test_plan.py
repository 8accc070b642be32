"""The calling contract as data: what a plan holds for a spec, and what is true of every plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.runtime.call.plan import (
    Arena,
    Bind,
    CallPlan,
    Cast,
    Compare,
    Count,
    Limit,
    Open,
    Output,
    Overlap,
    Pass,
    Rank,
    Same,
    Take,
    plan_of,
    plan_of_entry,
)
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.extent import names_in
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes
from weft.support.errors import IRValueError, UnsupportedError

X = ParamSpec("buffer", "x", "float32", ("n", 2), is_output=False, noalias=True)
K = ParamSpec("scalar", "k", "int64")
Y = ParamSpec("buffer", "y", "float32", ("n", "k + 1"), is_output=True, noalias=True)


def test_a_function_of_a_library():
    plan = plan_of(FunctionSpec("f", (X, K, Y), ("n",), "int32", "weft__f", True))
    assert plan == CallPlan(
        "f",
        "weft__f",
        (
            Count(3),
            Take(0, X, "argument 0"),
            Take(1, K, "argument 1"),
            Bind("k", 1, "value"),
            Take(2, Y, "argument 2"),
            Rank(0, 2),
            Bind("n", 0, "shape", 0),
            Rank(2, 2),
            Compare(0, ("n", 2)),
            Compare(2, ("n", "k + 1")),
            Overlap(2, 0),
        ),
        (
            Pass("argument", 0),
            Pass("argument", 1),
            Pass("argument", 2),
            Pass("symbol", symbol="n"),
            Pass("result"),
        ),
        ("number", "int32"),
        calls_packed=True,
    )
    assert plan.symbols == ("k", "n")
    assert plan.place(2) == "f: argument 2 (y)"


def test_strides_and_offsets_bind_after_shapes():
    strided = ParamSpec("buffer", "a", "int8", (2, "m"), ("s", "m"), "o")
    handle = ParamSpec("handle", "h")
    plan = plan_of(FunctionSpec("f", (strided, handle)))
    assert plan.checks == (
        Count(2),
        Take(0, strided, "argument 0"),
        Take(1, handle, "argument 1"),
        Rank(0, 2),
        Bind("m", 0, "shape", 1),
        Bind("s", 0, "strides", 0),
        Bind("o", 0, "offset"),
        Compare(0, (2, "m"), ("s", "m")),
    )
    assert plan.result == ("nothing", None)


def test_only_what_is_written_is_kept_apart():
    def buffer(name, written, noalias=True):
        return ParamSpec("buffer", name, "int8", (2,), is_output=written, noalias=noalias)

    params = (buffer("a", False), buffer("b", True), buffer("c", None), buffer("d", True, False))
    pairs = [step for step in plan_of(FunctionSpec("f", params)).checks if type(step) is Overlap]
    assert pairs == [
        Overlap(1, 0), Overlap(1, 2), Overlap(1, 3), Overlap(2, 0), Overlap(2, 3),
    ]  # fmt: skip


def params_of_a_model(*handles):
    return (
        ParamSpec("buffer", "x", "float32", ("n", 4)),
        ParamSpec("scalar", "k", "int64"),
        ParamSpec("buffer", "y", "float32", ("n + k",)),
        *[ParamSpec("handle", name) for name in handles],
    )


def test_a_model_of_varying_sizes():
    sizes = PlannedSizes(("n",), ("n * 16",), ((0, 1),))
    params = params_of_a_model("arena", "offsets", "table", "floor")
    plan = plan_of_entry(
        NativeEntry(
            FunctionSpec("main", params, ("n",), symbol="main__host"),
            (("float32", ("n + k",)),),
            ("tuple", (("output", 0), ("input", 0), ("shape", ("n", 4)), ("expr", "k"))),
            planned=sizes,
            constants=(7, 5),
            checks=(("shape", "y", ("a",), ("n",), ("k",), (("a", "n"),)),),
            limits=(("n", 64),),
            recursive=True,
        )
    )
    assert plan.checks[-4:] == (
        Bind("n", 0, "shape", 0),
        Compare(0, ("n", 4)),
        Cast("shape", "y", ("a",), ("n",), ("k",), (("a", "n"),)),
        Limit("n", 64),
    )
    assert plan.passed == (
        Pass("argument", 0),
        Pass("argument", 1),
        Pass("output", 0),
        Pass("arena"),
        Pass("offsets"),
        Pass("constants"),
        Pass("stack"),
        Pass("symbol", symbol="n"),
    )
    assert plan.outputs == (Output("float32", ("n + k",)),)
    assert plan.arena == Arena(0, sizes)
    assert plan.constants == (7, 5)
    assert plan.result[0] == "tuple"


@pytest.mark.parametrize(
    ("fields", "handles"),
    [
        ({}, ()),
        ({"arena": 64}, ("arena",)),
        ({"constants": (0,)}, ("constants",)),
        ({"arena": 64, "constants": (0,)}, ("arena", "constants")),
        ({"planned": PlannedSizes((), (), ())}, ("arena", "offsets")),
        ({"recursive": True}, ("constants", "stack")),
    ],
)
def test_the_handles_that_there_are(fields, handles):
    spec = FunctionSpec("main", params_of_a_model(*handles))
    plan = plan_of_entry(NativeEntry(spec, (("float32", (3,)),), ("output", 0), **fields))
    kinds = [item.kind for item in plan.passed]
    assert kinds == ["argument", "argument", "output", *handles]
    assert [take.param.name for take in plan.takes] == ["x", "k"]


def test_nested_arguments():
    """``main(shape (n, 4), (k, (x,)))``, where the first is a shape of x."""
    layout = (
        ("tuple", (("same", "n"), ("same", 4))),
        ("tuple", (("leaf", 1), ("tuple", (("leaf", 0),)))),
    )
    params = params_of_a_model()
    plan = plan_of_entry(
        NativeEntry(
            FunctionSpec("main", params), (("float32", (1,)),), ("output", 0), layout=layout
        )
    )
    assert plan.checks == (
        Open((), (None, None)),
        Open((0,), (None, None)),
        Open((1,), (1, None)),
        Open((1, 1), (0,)),
        Take(0, params[0], "argument 1[1][0]"),
        Take(1, params[1], "argument 1[0]"),
        Bind("k", 1, "value"),
        Rank(0, 2),
        Bind("n", 0, "shape", 0),
        Compare(0, ("n", 4)),
        Same((0, 0), "n"),
        Same((0, 1), 4),
    )
    assert plan.place(0) == "main: argument 1[1][0] (x)"


def test_a_symbol_that_only_outputs_have_is_refused():
    spec = FunctionSpec("main", (X, ParamSpec("buffer", "y", "float32", ("m",))))
    entry = NativeEntry(spec, (("float32", ("m",)),), ("output", 0))
    with pytest.raises(IRValueError, match=r"main: expected the arguments to give every symbol its"
                       r" value, found none that has m as an extent or as a number"):  # fmt: skip
        plan_of_entry(entry)


def test_an_element_offset_is_nothing_or_a_symbol():
    spec = FunctionSpec("f", (ParamSpec("buffer", "a", "int8", (2,), elem_offset=4),))
    with pytest.raises(UnsupportedError, match=r"f: parameter a: expected element offset 0 or a "):
        plan_of(spec)


EXTENTS = st.one_of(
    st.integers(0, 9), st.sampled_from(["n", "m", "k", "n * 2", "max(n, m)", "k // 2 + m"])
)


@st.composite
def specs(draw):
    """Specs of every kind of parameter, all of whose symbols are bound by some parameter."""
    params = []
    for index in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["buffer", "buffer", "scalar", "handle"]))
        shape = tuple(draw(st.lists(EXTENTS, max_size=3))) if kind == "buffer" else ()
        strides = tuple(draw(EXTENTS) for _ in shape) if draw(st.booleans()) else None
        name = "k" if kind == "scalar" and all(p.name != "k" for p in params) else f"p{index}"
        params.append(
            ParamSpec(
                kind, name, "handle" if kind == "handle" else "int64", shape,
                strides if kind == "buffer" else None,
                draw(st.sampled_from([0, "o"])) if kind == "buffer" else 0,
                draw(st.sampled_from([None, True, False])), draw(st.booleans()),
            )
        )  # fmt: skip
    params.append(ParamSpec("buffer", "last", "int8", ("n", "m", "k")))
    return FunctionSpec("f", tuple(draw(st.permutations(params))), ("n", "m"))


def symbols_used(step):
    """The symbols whose values a step needs."""
    if not isinstance(step, Compare):
        return set()
    return set().union(*[names_in(extent) for extent in (*step.shape, *(step.strides or ()))])


@settings(max_examples=200, deadline=None)
@given(specs())
def test_what_is_true_of_every_plan(spec):
    plan, bound, taken, ranked = plan_of(spec), set(), set(), set()
    for step in plan.checks:
        if isinstance(step, Take):
            taken.add(step.argument)
        elif isinstance(step, Rank):
            ranked.add(step.argument)
        elif isinstance(step, Bind):
            assert step.symbol not in bound, "a symbol is bound once"
            assert step.argument in taken, "an argument is taken before it is read"
            assert step.of in ("value", "offset") or step.argument in ranked, "the axis is there"
            bound.add(step.symbol)
        assert symbols_used(step) <= bound, "a symbol is bound before it is used"
    assert bound >= spec.bound_names()
    assert [take.param for take in plan.takes] == list(spec.params)
    given_arguments = [item.index for item in plan.passed if item.kind == "argument"]
    assert given_arguments == list(range(len(spec.params))), "each is passed once, in order"
    assert [item.symbol for item in plan.passed if item.kind == "symbol"] == list(spec.implicit)
    compared = [step.argument for step in plan.checks if isinstance(step, Compare)]
    assert compared == [i for i, param in enumerate(spec.params) if param.kind == "buffer"]
