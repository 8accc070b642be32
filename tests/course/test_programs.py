"""The course's programs run as their readers type them, and give what the texts show."""

from __future__ import annotations

import re

import numpy as np
import pytest

# The texts open their parameter files without closing them.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*FileIO name='fasionmnist:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.filterwarnings("ignore:unclosed file.*fasionmnist:ResourceWarning"),
]

PROGRAMS = (
    "text1_end_to_end",
    "text2_integration_2022",
    "text3_integration_2024",
    "text4_graph_optimization",
    "text5_assignment",
)
WAYS = ("script", "notebook")


def reference(run) -> np.ndarray:
    """The scores of the perceptron for the run's image, by numpy."""
    image = run.namespace["img"].reshape(1, 784)
    p = run.namespace["mlp_params"]
    return np.maximum(image @ p["w0"].T + p["b0"], 0) @ p["w1"].T + p["b1"]


def assert_close(actual, expected):
    assert np.abs(actual - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program_runs(program, way, run_program):
    run = run_program(program, way)
    assert run.namespace["class_names"][8] == "Bag"


@pytest.mark.parametrize("way", WAYS)
def test_exercise_on_tensorir_runs(way, run_program):
    assert run_program("exercise1_tensorir", way).printed.startswith("conv: ")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("program", "count"),
    [("text1_end_to_end", 7), ("text2_integration_2022", 2), ("text4_graph_optimization", 1)],
)
def test_predictions_are_those_of_numpy(program, count, way, run_program):
    run = run_program(program, way)
    wanted = run.namespace["class_names"][int(reference(run).argmax())]
    assert re.findall(r"Prediction: (.*)", run.printed) == [wanted] * count


@pytest.mark.parametrize(
    ("program", "count"),
    [("text1_end_to_end", 4), ("text2_integration_2022", 1), ("text4_graph_optimization", 1)],
)
def test_scores_are_within_tolerance(program, count, run_program):
    run = run_program(program, "notebook")
    results = [cell.result for cell in run.cells if cell.result is not None]
    assert len(results) == count
    for result in results:
        assert_close(result, reference(run))


def test_printed_array_reads_as_numpys(run_program):
    run = run_program("text1_end_to_end", "notebook")
    cell = next(cell for cell in run.cells if cell.source.endswith("print(nd_res)"))
    assert cell.printed == f"{cell.result}\n"


SHOWN = {
    "text2_integration_2022": [f"text2_{number:02d}" for number in range(1, 10)],
    "text3_integration_2024": [
        "text2_01", "text2_02", "text2_04", "text2_05", "text3_01", "text2_07", "text2_08",
    ],
    "text4_graph_optimization": [f"text4_{number:02d}" for number in range(1, 7)],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("program", "position", "name"),
    [(program, i, name) for program, names in SHOWN.items() for i, name in enumerate(names)],
)
def test_shown_module_equals_the_texts(
    program, position, name, way, run_program, expected_text, comparable, constants_of
):
    import weft

    shown = run_program(program, way).shown
    assert len(shown) == len(SHOWN[program])
    constants = constants_of(shown[position])
    actual = comparable(shown[position].script(), constants)
    expected = comparable(expected_text(name), constants)
    weft.ir.assert_structural_equal(actual, expected, map_free_vars=True)


@pytest.mark.parametrize(
    ("program", "cell", "path"),
    [
        ("text1_end_to_end", "type(ex)", "weft.relax.vm.Executable"),
        ("text2_integration_2022", "type(A)", "weft.te.tensor.Tensor"),
        ("text2_integration_2022", "type(C)", "weft.relax.expr.DataflowVar"),
        ("text3_integration_2024", "type(C)", "weft.relax.expr.DataflowVar"),
        ("text4_graph_optimization", "type(relax_func)", "weft.relax.expr.Function"),
        ("text4_graph_optimization", "type(func_body)", "weft.relax.expr.SeqExpr"),
    ],
)
def test_types_have_the_module_path_shown(program, cell, path, run_program):
    value = run_program(program, "notebook").cell(cell).value
    assert f"{value.__module__}.{value.__qualname__}" == path


def test_shape_prints_as_a_list(run_program):
    assert repr(run_program("text2_integration_2022", "notebook").cell("A.shape").value) == (
        "[128, 128]"
    )


def test_dataflow_var_is_a_var(run_program):
    run = run_program("text2_integration_2022", "notebook")
    assert run.cell("isinstance(C, relax.Var)").value is True


@pytest.mark.parametrize(
    "cell",
    ["relax_func.params", "func_body.blocks", "dataflow_block.bindings", "binding.var",
     "binding.value"],
)  # fmt: skip
def test_parts_of_a_function_print_short(cell, run_program):
    text = repr(run_program("text4_graph_optimization", "notebook").cell(cell).value)
    assert len(text) < 400
    assert text.count("\n") < 10


def test_parameters_of_a_function_print_their_names(run_program):
    text = repr(run_program("text4_graph_optimization", "notebook").cell("relax_func.params").value)
    assert text == "[x, y]"


def test_call_prints_as_its_script(run_program):
    value = run_program("text4_graph_optimization", "notebook").cell("binding.value").value
    assert repr(value) == "R.multiply(x, y)"


@pytest.mark.parametrize("name", ["MyModule", "MyModuleWithExternCall", "MyModuleMixture"])
def test_script_of_a_module_parses_back(name, run_program):
    import weft

    module = run_program("text1_end_to_end", "script").namespace[name]
    parsed = weft.script.from_source(module.script())
    weft.ir.assert_structural_equal(parsed, module)


def test_bound_parameters_come_back_with_the_metadata(run_program):
    import weft

    module = run_program("text1_end_to_end", "script").namespace["MyModuleWithParams"]
    assert 'metadata["relax.expr.Constant"][0]' in module.script()
    parsed = weft.script.from_source(module.script(show_meta=True))
    weft.ir.assert_structural_equal(parsed, module)


def test_accuracy_of_the_assignments_model(run_program):
    printed = run_program("text5_assignment", "script").printed
    right, total = map(int, re.search(r"Accuracy: (\d+)/(\d+)", printed).groups())
    assert right / total > 0.85


def graphs(namespace):
    """(name, module) of the modules whose ``main`` is a graph of static tensors."""
    import weft

    for name, value in namespace.items():
        if isinstance(value, weft.IRModule) and "main" in value:
            if isinstance(value["main"], weft.relax.Function):
                yield name, value


@pytest.mark.parametrize("program", PROGRAMS[:4])
def test_the_interpreter_of_graphs_agrees_with_native_code(program, run_program):
    import weft
    from weft.relax.reference import run as interpreted

    seen, random = 0, np.random.default_rng(1)
    for name, mod in graphs(run_program(program, "script").namespace):
        infos = [param.struct_info for param in mod["main"].params]
        given = [
            random.standard_normal([int(n) for n in info.shape.values]).astype(str(info.dtype))
            for info in infos
        ]
        expected = interpreted(mod, "main", *given)
        machine = weft.relax.VirtualMachine(weft.relax.build(mod, "llvm"), weft.cpu())
        got = machine["main"](*[weft.nd.array(item) for item in given]).numpy()
        assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max(), name
        seen += 1
    assert seen
