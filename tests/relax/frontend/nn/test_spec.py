"""Specs: short forms, texts, what is refused."""

import numpy as np
import pytest

from weft.relax.frontend import nn
from weft.relax.frontend.nn import spec
from weft.support.errors import IRTypeError


class Model(nn.Module):
    def forward(self, x, n):
        return x

    def prefill(self, x, *rest, **more):
        return x


def test_short_forms_and_texts():
    made = spec.ModuleSpec.from_raw(
        {"forward": {"x": (spec.Tensor([1, "n"], "int8"), [int, spec.Int]), "n": "int"},
         "prefill": {"x": spec.Object(nn.Object)}}, Model(),
    )  # fmt: skip
    assert repr(made) == (
        "ModuleSpec:\n  forward(x: (Tensor([1, n], 'int8'), [int, int]), n: int)\n"
        "  prefill(x: object)"
    )
    assert spec.ModuleSpec.from_raw(made, Model()) is made
    method = made.method_specs[0]
    assert spec.MethodSpec.from_raw(method, Model().forward) is method
    assert (method.param_mode, method.effect_mode) == ("plain", "plain")
    again = spec.ModuleSpec.from_raw({"forward": method}, Model())
    assert again.method_specs == [method]


def test_a_tuple_is_a_spec_too():
    found = spec.as_spec(spec.Tuple("x", [int]), "y")
    assert found.name == "y"
    assert isinstance(found.elements, list)


def test_from_examples():
    made = spec.MethodSpec.from_torch([(np.zeros((2, 3), "int8"), [4]), 5], Model().forward)
    assert repr(made) == "MethodSpec(x: (Tensor([2, 3], 'int8'), [int]), n: int)"


def test_from_torch_tensors():
    torch = pytest.importorskip("torch")
    made = spec.MethodSpec.from_torch([torch.zeros(2, dtype=torch.bfloat16), 1], Model().forward)
    assert repr(made.arg_specs[0]) == "Tensor([2], 'bfloat16')"


FORWARD = {"x": spec.Tensor([1], "int8"), "n": int}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, TypeError, "spec: expected a dict from names of methods to specs"),
        ([1], TypeError, r"spec: expected a dict from names of methods .* got \[1\]"),
        ({"backward": {}}, TypeError, "spec: Model has no method 'backward'"),
        ({"forward": 1}, TypeError, "forward: expected a dict from argument names to specs, got i"),
        ({"forward": {"n": int}}, TypeError, "forward: the spec lacks the argument x; its argumen"),
        ({"forward": {}}, TypeError, "the spec lacks the arguments x, n"),
        ({"forward": {**FORWARD, "y": int}}, TypeError, "forward: has no argument 'y'; its argume"),
        ({"forward": {**FORWARD, "n": 3}}, TypeError, "Invalid spec for argument n: 3; expected s"),
        ({"forward": {**FORWARD, "$": {"param_mode": "all"}}}, ValueError,
         "Invalid param_mode: expected 'plain', 'packed', 'none', got 'all'"),
        ({"forward": {**FORWARD, "$": {"effect_mode": "all"}}}, ValueError, "Invalid effect_mode"),
    ],
)  # fmt: skip
def test_wrong_specs(given, error, message):
    with pytest.raises(error, match=message):
        Model().export_tvm(given)


def test_wrong_examples():
    with pytest.raises(TypeError, match="Expected 2 arguments, but got 1 arguments"):
        spec.MethodSpec.from_torch([1], Model().forward)
    with pytest.raises(TypeError, match="Unsupported argument type: n is of str"):
        spec.MethodSpec.from_torch([1, "2"], Model().forward)
    with pytest.raises(TypeError, match="spec.Tuple x: Unsupported container type: dict"):
        spec.Tuple("x", {})


def test_a_spec_that_is_none_at_export():
    method = spec.MethodSpec(lambda x: x, ["x"], [3], "plain", "plain")
    with pytest.raises(TypeError, match="Invalid spec for argument x: 3"):
        Model().export_tvm(spec.ModuleSpec(Model(), ["main"], [method]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spec.Tensor(5, "float32"), "expected a list of extents, got int"),
        (lambda: spec.Tensor("nm", "float32"), "expected a list of extents, got str"),
        (lambda: spec.Tensor([1.5], "float32"), "names of symbols or tir expressions .* got 1.5"),
        (lambda: spec.Tensor([-1], "float32"), "numbers of at least 0, .* got -1"),
        (lambda: spec.Tensor([True], "float32"), "got True"),
        (lambda: spec.Tensor([1], "foo"), "expected a data type"),
        (lambda: spec.ModuleSpec.from_raw({5: {}}, nn.Linear(2, 2)), "has no method 5"),
        (lambda: nn.KVCache(None, (4, 8)), "expected a number of rows .* got None"),
        (lambda: nn.KVCache(16, None), r"expected a number of rows .* got 16 and None"),
        (lambda: nn.ModuleList(5), "ModuleList: expected modules, got int"),
        (lambda: nn.Linear(2, 2).load_state_dict(5), "expected a dict .* got int"),
    ],
)
def test_what_no_spec_or_module_is_made_of(make, message):
    with pytest.raises(IRTypeError, match=message):
        make()
