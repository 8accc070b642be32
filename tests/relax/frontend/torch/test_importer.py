"""The way from torch to a module: signatures, symbols, parameters, what is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from torch._export import utils

import weft
from tests.lib.aten import as_numpy, assert_same, check_model, check_overload
from weft import relax, tir
from weft.relax.frontend.missing import UnsupportedOperatorsError, nearest_name
from weft.relax.frontend.torch import from_exported_program, from_fx
from weft.relax.frontend.torch.capture import CaptureError, capture

pytestmark = pytest.mark.torch

_SPEC = importlib.util.spec_from_file_location(
    "core_aten", Path(__file__).with_name("core_aten.py")
)
core_aten = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(core_aten)


def perceptron():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def test_one_artefact_serves_all_sizes_of_a_symbolic_dimension():
    n = torch.export.Dim("n")
    check_model(
        perceptron(), torch.randn(5, 3), dynamic_shapes=({0: n},),
        others=[(torch.randn(2, 3),), (torch.randn(17, 3),)],
    )  # fmt: skip


def test_parameters_become_inputs_on_request_and_keep_their_values():
    program = capture(perceptron(), (torch.randn(5, 3),))
    mod = from_exported_program(program, keep_params_as_input=True)
    main = mod["main"]
    assert main.attrs["num_input"] == 1
    assert len(main.params) == 5
    assert [tuple(p.shape) for p in main.attrs["params"]] == [(4, 3), (4,), (2, 4), (2,)]


def test_a_unit_tuple_is_unwrapped_on_request():
    program = capture(torch.nn.ReLU(), (torch.randn(5, 3),))
    wrapped = from_exported_program(program)["main"].ret_struct_info
    assert isinstance(wrapped, relax.TupleStructInfo)
    plain = from_exported_program(program, unwrap_unit_return_tuple=True)["main"].ret_struct_info
    assert isinstance(plain, relax.TensorStructInfo)


def test_from_fx_takes_symbolic_extents():
    n = tir.Var("n", "int64")
    mod = from_fx(torch.fx.symbolic_trace(perceptron()), [((n, 3), "float32")])
    assert mod["main"].params[0].struct_info.shape[0].same_as(n)
    machine = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x = torch.randn(9, 3)
    assert_same(machine["main"](x.numpy()).numpy(), as_numpy(perceptron()(x)), "perceptron")


def test_derived_extents_define_their_symbol():
    class Halves(torch.nn.Module):
        def forward(self, x):
            return x[: x.shape[0] // 2] + 1.0

    half = torch.export.Dim("half", min=2)
    program = capture(Halves(), (torch.randn(8, 3),), None, ({0: 2 * half},))
    found = relax.VirtualMachine(relax.build(from_exported_program(program)), weft.cpu())
    x = torch.randn(12, 3)
    assert_same(found["main"](x.numpy())[0].numpy(), (x[:6] + 1).numpy(), "halves")


class Unknown(torch.nn.Module):
    def forward(self, x):
        twice = torch.special.airy_ai(x) + torch.special.airy_ai(x)
        return twice + torch.special.shifted_chebyshev_polynomial_t(x, 2)


def test_all_missing_operators_are_told_at_once_with_count_and_line():
    program = capture(Unknown(), (torch.randn(5),))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_exported_program(program)
    rows = {item.name: item for item in caught.value.operators}
    assert rows["aten.special_airy_ai.default"].count == 2
    assert rows["aten.special_shifted_chebyshev_polynomial_t.n_scalar"].count == 1
    assert "test_importer.py:" in rows["aten.special_airy_ai.default"].where
    assert "2 times, first at" in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 10


def test_the_fallback_runs_missing_operators_in_torch():
    program = capture(Unknown(), (torch.randn(5),))
    mod = from_exported_program(program, fallback="torch")
    machine = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x = torch.randn(5)
    assert_same(machine["main"](x.numpy())[0].numpy(), Unknown()(x).numpy(), "bessel")


def test_a_converter_of_the_users_own():
    seen = []

    def double(context, self, degree=None):
        seen.append(context.shape)
        return relax.op.multiply(self, relax.const(2.0))

    names = ("airy_ai.default", "shifted_chebyshev_polynomial_t.n_scalar")
    custom = {f"aten.special_{name}": double for name in names}
    mod = from_exported_program(capture(Unknown(), (torch.randn(5),)), custom_converters=custom)
    machine = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x = torch.randn(5)
    assert_same(machine["main"](x.numpy())[0].numpy(), (6 * x).numpy(), "custom")
    assert seen == [[5], [5], [5]]


def test_names_that_are_no_overloads_are_refused():
    program = capture(torch.nn.ReLU(), (torch.randn(5, 3),))
    with pytest.raises(
        weft.TVMError,
        match=r"such as \"aten\.foo\.default\".*got 'aten::relu' .*aten\.relu\.default",
    ):
        from_exported_program(program, custom_converters={"aten::relu": lambda *_: None})


class Factored(torch.nn.Module):
    def forward(self, x):
        return torch.special.airy_ai(torch.linalg.lu_factor(x)[0])


def test_checks_of_linear_algebra_are_no_missing_operators():
    program = capture(Factored(), (torch.eye(3),))
    with pytest.raises(UnsupportedOperatorsError) as caught:
        from_exported_program(program)
    assert [item.name for item in caught.value.operators] == ["aten.special_airy_ai.default"]
    mod = from_exported_program(program, fallback="torch")
    machine = relax.VirtualMachine(relax.build(mod), weft.cpu())
    x = torch.tensor([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert_same(machine["main"](x.numpy())[0].numpy(), Factored()(x).numpy(), "factors")


@pytest.mark.parametrize("mask", [[False, True], [True, True]])
def test_the_fallback_keeps_the_places_of_results_that_are_none(mask):
    class Gradients(torch.nn.Module):
        def forward(self, out, x, grid):
            found = torch.ops.aten.grid_sampler_2d_backward.default(out, x, grid, 0, 0, False, mask)
            return [gradient for gradient in found if gradient is not None]

    args = (torch.randn(1, 2, 3, 3), torch.randn(1, 2, 5, 5), torch.rand(1, 3, 3, 2))
    mod = from_exported_program(capture(Gradients(), args), fallback="torch")
    made = relax.VirtualMachine(relax.build(mod), weft.cpu())["main"](*[x.numpy() for x in args])
    wanted = Gradients()(*args)
    assert len(made) == len(wanted) == sum(mask)
    for mine, its in zip(made, wanted, strict=True):
        assert_same(mine.numpy(), its.numpy(), "gradient")


def test_the_nearest_operator_is_found_by_what_tells_operators_apart():
    known = ["aten.isnan.default", "aten.sin.default", "aten.tanh.default (complex)"]
    assert nearest_name("aten.linalg_inv_ex.default", known) == ""
    assert nearest_name("aten.sinc.default", known) == "aten.sin.default"
    assert nearest_name("aten.tan.default (complex)", known) == "aten.tanh.default (complex)"
    assert nearest_name("Softmux", ["Softmax", "Relu"]) == "Softmax"


def test_a_wrong_converter_is_named_at_import():
    custom = {"aten.relu.default": lambda context, self: relax.op.permute_dims(self)}
    program = capture(torch.nn.ReLU(), (torch.randn(5, 3),))
    told = r"converter of aten\.relu\.default.*: torch deduced"
    with pytest.raises(weft.error.IRTypeError, match=told):
        from_exported_program(program, custom_converters=custom)


class Largest(torch.nn.Module):
    def forward(self, x):
        values, places = torch.max(x, dim=1)
        return values, places


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (lambda x: [x], "expected 2 results, a list or a tuple of expressions, got 1"),
        (lambda x: x, "expected 2 results, a list or a tuple of expressions, got 0"),
        (lambda x: relax.Tuple([relax.op.max(x, 1), relax.op.max(x, 1)]), "torch deduced .*int64"),
        (lambda x: [relax.op.max(x, 0), relax.op.argmax(x, 1)], r"torch deduced .*\(5,\)"),
    ],
)
def test_a_converter_of_several_results_is_checked_as_well(results, told):
    custom = {"aten.max.dim": lambda context, self, dim, keepdim=False: results(self)}
    program = capture(Largest(), (torch.randn(5, 3),))
    with pytest.raises(weft.error.IRTypeError, match=rf"converter of aten\.max\.dim.*: {told}"):
        from_exported_program(program, custom_converters=custom)


def test_control_flow_on_data_is_told_in_few_lines():
    class Branches(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(CaptureError, match="cannot capture Branches") as caught:
        capture(Branches(), (torch.randn(3),))
    assert len(str(caught.value).splitlines()) <= 10


@pytest.mark.parametrize("value", [None, 3, "model.onnx", torch.nn.ReLU()])
def test_what_is_no_exported_program_is_refused(value):
    with pytest.raises(weft.TVMError, match=r"expected a torch\.export\.ExportedProgram"):
        from_exported_program(value)


def test_the_list_of_core_operators_is_that_of_its_version():
    if not torch.__version__.startswith(core_aten.TORCH_VERSION):
        pytest.skip(f"the list is that of torch {core_aten.TORCH_VERSION}")
    found = []
    for qualified in torch._C._dispatch_get_all_op_names():
        space, _, operator = qualified.partition("::")
        name, _, overload = operator.partition(".")
        packet = getattr(torch.ops.aten, name, None) if space == "aten" else None
        entry = getattr(packet, overload or "default", None)
        if entry is not None and torch.Tag.core in entry.tags:
            found.append(f"aten.{name}.{overload or 'default'}")
    assert sorted(core_aten.CORE_ATEN) == sorted(found)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_addition_promotes_as_torch(shape):
    x = torch.arange(max(1, torch.Size(shape).numel()))[: torch.Size(shape).numel()].reshape(shape)
    check_overload("aten.add.Tensor", x, torch.tensor(0.5))
    check_overload("aten.add.Tensor", x.float(), x, alpha=2)
    check_overload("aten.add.Scalar", x, 1.5)


def test_clamp_and_special_functions_are_operators():
    """Layouts and fusion see them; a kernel of the importer's own would be opaque to them."""

    class Bounded(torch.nn.Module):
        def forward(self, x):
            return torch.digamma(x.clamp(0, 6)) + x.clamp_min(1.0).any()

    program = torch.export.export(Bounded(), (torch.rand(2, 3),))
    text = from_exported_program(program).script()
    for name in ("R.clip(", "R.digamma(", "R.maximum(", "R.max("):
        assert name in text
    assert "call_tir" not in text


def test_torch_lists_its_operators_once_in_an_import(monkeypatch):
    distance = torch.nn.CosineSimilarity()  # it is decomposed, for it has no converter
    program, listed = capture(distance, (torch.randn(5, 3), torch.randn(5, 3))), []
    enter = utils._materialize_cpp_cia_ops

    def counted():
        listed.append(None)
        enter()

    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", counted)
    from_exported_program(program)
    assert len(listed) == 1
    assert utils._materialize_cpp_cia_ops is counted


def test_an_operator_that_is_registered_after_an_import_is_decomposed_by_the_next():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return torch.ops.weft_importer_test.twice(x)

    check_model(torch.nn.ReLU(), torch.randn(5, 3))
    with torch.library._scoped_library("weft_importer_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        check_model(Twice(), torch.randn(5, 3))
