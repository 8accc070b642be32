"""Exported libraries: C programs that run models, the same file loaded from Python, refusals."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import weft
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.export import library
from weft.runtime.export.c_text import c_expression
from weft.runtime.extent import evaluate
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.signature import Parameter, Signature, State
from weft.runtime.vm.bytecode import NativeEntry
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import ArtifactError, UnsupportedError

WEIGHT = np.random.default_rng(0).random((4, 3), "float32")
X = np.random.default_rng(1).random((5, 4), "float32")
needs_cc = pytest.mark.skipif(library.find_compiler() is None, reason="there is no C compiler")


def example():
    weight = weft.relax.const(WEIGHT)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), k: R.Tensor((3,), "int64")):
            with R.dataflow():
                y = R.nn.softmax(R.matmul(x, weight), axis=-1)
                z = R.take(y, k, axis=1)
                R.output(y, z)
            return (y, z, x)

    return Module


K = np.array([2, 0, 1])
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "@P@.h"
/* Reads every input from a file, as the shapes in the arguments say; prints all results. */
int main(int count, char **argument) {
  @P@_model *model = @P@_create();
  @P@_tensor in[8], out[8];
  int64_t shapes[16][8];
  int at = 1;
  if (!model) return 3;
  for (int i = 0; i < @U@_INPUTS; i++) {
    long size = 64;
    FILE *file = fopen(argument[at++], "rb");
    in[i].ndim = atoi(argument[at++]);
    for (int k = 0; k < in[i].ndim; k++) size *= shapes[i][k] = atol(argument[at++]);
    in[i].shape = shapes[i];
    in[i].dtype = at < count ? @P@_input(i)->dtype : -1;
    in[i].data = malloc(size + 1);
    if (!file || (size && !fread(in[i].data, 1, size, file))) return 4;
    fclose(file);
  }
  for (int i = 0; i < @U@_OUTPUTS; i++) {
    long size = 8;
    out[i].ndim = @P@_output(i)->ndim;
    out[i].dtype = @P@_output(i)->dtype;
    out[i].shape = shapes[8 + i];
    if (@P@_output_shape(in, i, shapes[8 + i])) { puts(@P@_error()); return 1; }
    for (int k = 0; k < out[i].ndim; k++) size *= shapes[8 + i][k];
    out[i].data = malloc(size);
  }
  for (int run = 0; run < atoi(argument[at]); run++)
    if (@P@_run(model, in, out)) { puts(@P@_error()); return 1; }
  for (int i = 0; i < @U@_OUTPUTS; i++) {
    long size = 1;
    for (int k = 0; k < out[i].ndim; k++) size *= shapes[8 + i][k];
    printf("%s", @P@_output(i)->name);
    for (long j = 0; j < size; j++)
      if (out[i].dtype == @U@_FLOAT32) printf(" %.9g", ((float *)out[i].data)[j]);
      else printf(" %lld", (long long)((int64_t *)out[i].data)[j]);
    puts("");
  }
  @P@_destroy(model);
  return 0;
}
"""


def program(model, folder, name="net"):
    model.export_library(folder / f"{name}.so")
    source = folder / "main.c"
    source.write_text(MAIN.replace("@P@", name).replace("@U@", name.upper()), encoding="utf-8")
    command = ["cc", "-Wall", "-Werror", "main.c", f"./{name}.so", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True, timeout=600)

    def run(*arrays, runs=1, shapes=None):
        arguments = []
        for number, array in enumerate(arrays):
            (folder / f"{number}.bin").write_bytes(array.tobytes())
            shape = array.shape if shapes is None else shapes[number]
            arguments += [f"{number}.bin", str(len(shape)), *map(str, shape)]
        done = subprocess.run(
            ["./main", *arguments, str(runs)], cwd=folder, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.returncode, done.stdout.strip()
        return [np.array(line.split()[1:], "float64") for line in done.stdout.splitlines()]

    return run


@needs_cc
def test_a_c_program_computes_the_same(tmp_path):
    model = weft.compile(example())
    run = program(model, tmp_path)
    for x in (X, X[:1], X[:0]):
        found = run(x, K)
        for expected, given in zip(model(x, K), found, strict=True):
            np.testing.assert_allclose(given, expected.ravel(), rtol=1e-6)


@needs_cc
@pytest.mark.parametrize(
    ("arrays", "shapes", "message"),
    [
        ((X, K), [(4, 5), (3,)], "input 0 (x): expected an extent of 4 at axis 1, got 5"),
        ((X, K), [(20,), (3,)], "input 0 (x): expected 2 dimensions, got 1"),
        ((X, K), [(5, 4), (2,)], "input 1 (k): expected an extent of 3 at axis 0, got 2"),
        ((X, K + 7), None, "index"),
    ],
)
def test_wrong_input_is_an_error_in_c(tmp_path, arrays, shapes, message):
    code, text = program(weft.compile(example()), tmp_path)(*arrays, shapes=shapes)
    assert code == 1
    assert message in text


@needs_cc
def test_the_library_is_loaded_from_python(tmp_path):
    model = weft.compile(example())
    model.export_library(str(tmp_path / "net.so"))
    expected = model(X, K)
    for loaded in (weft.load(tmp_path / "net.so"), weft.runtime.load_module(tmp_path / "net.so")):
        for a, b in zip(loaded(X, K), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    machine = weft.relax.VirtualMachine(loaded, weft.cpu())
    np.testing.assert_array_equal(machine["main"](X, K)[0].numpy(), expected[0])


@needs_cc
def test_an_executable_is_exported_too(tmp_path):
    built = weft.relax.build(example())
    built.export_library(tmp_path / "built.so")
    expected = weft.relax.VirtualMachine(built, weft.cpu())["main"](X, K)[0].numpy()
    np.testing.assert_array_equal(weft.load(tmp_path / "built.so")(X, K)[0], expected)


@needs_cc
def test_the_same_model_gives_the_same_library(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        weft.compile(example()).export_library(tmp_path / name / "net.so")
    assert (tmp_path / "a/net.so").read_bytes() == (tmp_path / "b/net.so").read_bytes()
    assert (tmp_path / "a/net.h").read_text() == (tmp_path / "b/net.h").read_text()


@needs_cc
def test_only_the_models_own_names_are_seen(tmp_path):
    weft.compile(example()).export_library(tmp_path / "libsome-net.so")
    assert "some_net_model *some_net_create(void);" in (tmp_path / "libsome-net.h").read_text()
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(tmp_path / "libsome-net.so")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = {line.split()[2] for line in listed.splitlines()}
    assert names == {
        f"some_net_{name}" for name in
        ("create", "destroy", "error", "input", "output", "output_shape", "run", "set_threads")
    }  # fmt: skip


@needs_cc
def test_states_live_in_the_model(tmp_path):
    @I.ir_module
    class Sum:
        @R.function
        def main(x: R.Tensor((3,), "float32"), s: R.Tensor((3,), "float32")):
            with R.dataflow():
                t = R.add(x, s)
                y = R.multiply(t, R.const(10.0, "float32"))
                R.output(t, y)
            return (t, y)

    signature = Signature(
        "Sum", (Parameter("x", ("leaf", 0)),), ("x", "sum"), ("leaf", 1),
        states=(State("sum", 1, 0),), unpacked=True,
    )  # fmt: skip
    start = weft.nd.array(np.ones(3, "float32"))
    model = CompiledModel(weft.compile(Sum), signature, states=[start], text=lambda: "")
    run = program(model, tmp_path)
    np.testing.assert_array_equal(run(np.ones(3, "float32"), runs=3)[0], [40, 40, 40])


@needs_cc
@pytest.mark.parametrize("state_first", [True, False])
def test_a_state_is_as_large_as_the_inputs_say(tmp_path, state_first):
    """Compiled code reads as much of a state as the symbols say: other inputs are refused."""

    @I.ir_module
    class Sum:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
            with R.dataflow():
                t = R.add(x, y)
                R.output(t)
            return t

    names, state = (("sum", "x"), 0) if state_first else (("x", "sum"), 1)
    signature = Signature(
        "Sum", (Parameter("x", ("leaf", 1 - state)),), names, ("leaf", 0),
        states=(State("sum", state, 0),),
    )  # fmt: skip
    start = weft.nd.array(np.ones(3, "float32"))
    model = CompiledModel(weft.compile(Sum), signature, states=[start], text=lambda: "")
    run = program(model, tmp_path)
    np.testing.assert_array_equal(run(np.ones(3, "float32"), runs=2)[0], [3, 3, 3])
    expected = (
        "input 0 (x): expected an extent of 3 (n) at axis 0, got 5" if state_first
        else "state 0 (sum): expected an extent of 5 (n) at axis 0, got 3"
    )  # fmt: skip
    assert run(np.ones(5, "float32")) == (1, expected)


def test_without_a_compiler_the_model_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        ArtifactError, match=r"there is no C compiler for .* here .* was saved as '.*net\.weft'"
    ):
        weft.compile(example()).export_library(tmp_path / "net.so")
    assert weft.load(tmp_path / "net.weft")(X, K)[0].shape == (5, 3)


@needs_cc
def test_what_the_compiler_says(tmp_path):
    with pytest.raises(ArtifactError, match="cannot link the model:\n.*nonsense"):
        weft.compile(example()).export_library(tmp_path / "n.so", options=["-fnonsense"])
    with pytest.raises(UnsupportedError, match="fcompile and addons are not available; use cc="):
        weft.compile(example()).export_library(tmp_path / "n.so", fcompile=print)


def test_models_that_need_python_say_why(tmp_path):
    weft.register_func("test.library.f", lambda x, y: None, override=True)

    @I.ir_module
    class Calls:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.call_dps_packed("test.library.f", x, out_sinfo=R.Tensor((2,), "float32"))
            return y

    @I.ir_module
    class Objects:
        @R.function
        def main(x: R.Object) -> R.Object:
            return x

    registered = "it calls functions that are registered in Python"
    for module, reason in ((Calls, registered), (Objects, "")):
        with pytest.raises(UnsupportedError, match=f"main needs Python to run: {reason}"):
            weft.compile(module).export_library(tmp_path / "m.so")


def test_arguments_that_may_share_no_memory_need_python():
    """C compares the memory of outputs with that of inputs, not inputs with each other."""
    x, y = [
        ParamSpec("buffer", name, "float32", (2,), is_output=name == "y", noalias=True)
        for name in "xy"
    ]
    entry = NativeEntry(FunctionSpec("main", (x, y)), (), ("input", 0))
    reason = library.obstacle_of_entry("", entry)
    assert reason == "its argument y may share no memory with the others"
    assert library.obstacle_of_entry("", replace(entry, spec=FunctionSpec("main", (x,)))) == ""


@pytest.mark.parametrize(
    "text",
    ["n", "7", "-n + 2", "n // 3 * m", "n % 4 - m", "min(n, m, 3)", "max(n, 1)", "abs(-n)",
     "n if n < m else m", "-7 // 2 + n % -3", "0 - (n == m)"],
)  # fmt: skip
def test_extents_in_c(text, tmp_path):
    symbols = {"n": 5, "m": 9}
    values = " ".join([f"int64_t v_{name} = {value};" for name, value in symbols.items()])
    support = (library.Path(library.__file__).with_name("library_support.c")).read_text()
    start, end = support.index("/* Arithmetic of"), support.index("static int fail_misfit")
    functions = support[start:end]
    (tmp_path / "e.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n"
        + functions.replace("static inline", "static")
        + f'int main(void) {{ {values} printf("%lld", (long long){c_expression(text)}); '
        "(void)v_n, (void)v_m; return 0; }",
        encoding="utf-8",
    )
    compiler = library.find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    subprocess.run([compiler, "e.c", "-o", "e"], cwd=tmp_path, check=True, timeout=600)
    found = subprocess.run([str(tmp_path / "e")], capture_output=True, text=True, check=True)
    assert int(found.stdout) == evaluate(text, symbols)


@needs_cc
def test_working_memory_that_depends_on_the_input(tmp_path):
    weights = [
        weft.relax.const(np.random.default_rng(i).standard_normal((16, 16)).astype("float32"))
        for i in range(4)
    ]
    builder = weft.relax.BlockBuilder()
    rows = weft.tir.Var("rows", "int64")
    x = weft.relax.Var("x", weft.relax.TensorStructInfo((rows, 16), "float32"))
    op = weft.relax.op
    with builder.function("main", [x]):
        with builder.dataflow():
            y, kept = x, []
            for weight in weights:
                y = builder.emit(op.nn.softmax(op.matmul(y, weight), axis=-1))
                kept.append(builder.emit(op.matmul(y, weights[0])))
            z = builder.emit_output(op.add(op.add(kept[0], kept[1]), op.add(kept[2], kept[3])))
        builder.emit_func_output(z)
    model = weft.compile(builder.get())
    planned = model.program.functions["main"].native.planned
    assert planned is not None
    assert len(planned.sizes) > 3
    run = program(model, tmp_path)
    for count in (1, 7, 300):
        given = np.random.default_rng(count).random((count, 16), "float32")
        found = run(given, runs=3)[0]
        np.testing.assert_allclose(found, model(given).ravel(), rtol=1e-5)
