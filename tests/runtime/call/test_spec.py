import json

import pytest

from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.extent import names_in


def test_json_round_trip():
    spec = FunctionSpec(
        "f",
        (
            ParamSpec("buffer", "x", "float32", ("n", 4), ("s", 1), "o", False, True),
            ParamSpec("scalar", "k", "int32"),
            ParamSpec("handle", "h"),
            ParamSpec("buffer", "y", "int8", ("n*4",), is_output=True),
        ),
        implicit=("n", "s", "o"), ret="int32", symbol="f_impl", calls_packed=True,
    )  # fmt: skip
    assert FunctionSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert spec.bound_names() == {"n", "s", "o", "k"}
    assert spec.native_symbol == "f_impl"


def test_every_symbol_needs_a_binding():
    with pytest.raises(ValueError, match=r"f: expected every symbol .* no binding for m"):
        FunctionSpec("f", (ParamSpec("buffer", "x", "float32", ("n", "m*2")),))
    with pytest.raises(ValueError, match=r"no binding for k"):
        FunctionSpec("f", implicit=("k",))


def test_expressions_are_integer_arithmetic():
    assert names_in("(n + m*4 - 1)//4 % 3") == {"n", "m"}
    assert names_in("min(n, 8)") == {"n"}
    for bad in ("n.x", "f(n)", "[n]", "lambda: n", "n +", "__import__('os')"):
        with pytest.raises(TypeError, match=r"expected"):
            names_in(bad)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"expected kind buffer, scalar or handle, got 'tensor'"):
        ParamSpec("tensor", "x")
    with pytest.raises(ValueError, match=r"parameter x: expected 2 strides for shape \(2, 3\)"):
        ParamSpec("buffer", "x", "float32", (2, 3), (1,))
