"""Registered functions that return tensors, called natively; the bytecode gives the same."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime.module import Module
from weft.runtime.registry import remove_global_func
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


@I.ir_module
class Pure:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        y = R.call_pure_packed(
            "test.native_packed.scaled", x, R.prim_value(n), R.str("up"),
            sinfo_args=R.Tensor((n, 2), "float32"),
        )  # fmt: skip
        if c:
            z = R.call_pure_packed(
                "test.native_packed.pair", y,
                sinfo_args=R.Tuple(R.Tensor((n * 2,), "float32"), R.Tensor((), "int64")),
            )  # fmt: skip
        else:
            z = (R.reshape(x, R.shape([n * 2])), R.const(7, "int64"))
        w = R.add(y, y)
        return (w, z)

    @R.function(pure=False)
    def impure(x: R.Tensor((3,), "float32")):
        y = R.call_packed("test.native_packed.same", x, sinfo_args=R.Tensor((3,), "float32"))
        z = R.add(y, x)
        return z

    @R.function
    def closure(x: R.Tensor((3,), "float32")):
        @R.function
        def twice(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            z: R.Tensor((3,), "float32") = R.add(y, x)
            return z

        z = R.invoke_pure_closure(twice, (x,), sinfo_args=R.Tensor((3,), "float32"))
        return z

    @R.function
    def unknown(x: R.Tensor((3,), "float32")):
        k = T.int64()
        y = R.call_pure_packed(
            "test.native_packed.same", x, sinfo_args=R.Tensor("float32", ndim=1)
        )  # fmt: skip
        z = R.match_cast(y, R.Tensor((k,), "float32"))
        return R.add(z, z)


def scaled(x, n, text):
    assert (type(n), text) == (int, "up")
    return weft.nd.array(x.numpy() * n)


def pair(y):
    return y.numpy().ravel(), weft.nd.array(np.array(y.size, "int64"))


weft.register_func("test.native_packed.scaled", scaled, override=True)
weft.register_func("test.native_packed.pair", pair, override=True)
weft.register_func("test.native_packed.same", lambda x: x, override=True)


@pytest.fixture(scope="module")
def machines():
    executable = relax.build(Pure, "llvm")
    functions = executable.program.functions
    reasons = {name: f.why_not_native for name, f in functions.items() if not f.native}
    assert reasons.pop("closure.twice") == ""  # a part of closure in bytecode
    assert reasons == {"unknown": "the shape or the dtype of y is not known"}
    return [relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode) for mode in MODES]


@pytest.mark.parametrize("taken", [True, False])
def test_results_are_copied_to_their_places(machines, taken):
    x = np.arange(6, dtype="float32").reshape(3, 2)
    for machine in machines:
        w, (flat, count) = machine["main"](x, np.array(taken))
        np.testing.assert_array_equal(w.numpy(), x * 6)
        np.testing.assert_array_equal(flat.numpy(), (x * 3 if taken else x).ravel())
        assert count.item() == (6 if taken else 7)


def test_impure_calls_and_closures(machines):
    x = np.arange(3, dtype="float32")
    for machine in machines:
        for name in ("impure", "closure", "unknown"):
            np.testing.assert_array_equal(machine[name](x).numpy(), 2 * x)


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        (np.zeros(4, "float32"), ValueError, r"expected shape \(n, 2\), n=3, got \(4,\)"),
        (np.zeros((3, 2), "int8"), TypeError, "expected dtype float32, got int8"),
        (None, TypeError, "expected a tensor"),
    ],
)
def test_what_is_returned_is_checked(machines, returned, kind, message):
    weft.register_func("test.native_packed.scaled", lambda *_: returned, override=True)
    found = []
    for machine in machines:
        with pytest.raises(kind, match=message) as caught:
            machine["main"](np.ones((3, 2), "float32"), np.array(False))
        found.append(str(caught.value))
    weft.register_func("test.native_packed.scaled", scaled, override=True)
    assert found[0] == found[1]
    assert found[0].startswith("main: the result of test.native_packed.scaled: ")


def test_a_function_that_nobody_registered(machines):
    weft.register_func("test.native_packed.scaled", scaled, override=True)
    remove_global_func("test.native_packed.same")
    found = []
    for machine in machines:
        with pytest.raises(weft.TVMError, match="test.native_packed.same") as caught:
            machine["impure"](np.ones(3, "float32"))
        found.append(str(caught.value))
    weft.register_func("test.native_packed.same", lambda x: x, override=True)
    assert found[0] == found[1]


@I.ir_module
class Library:
    @R.function(private=True)
    def inner(x: R.Tensor((3,), "float32")):
        y = R.call_dps_packed("test.native_packed.only_there", (x,), R.Tensor((3,), "float32"))
        return y

    @R.function
    def main(x: R.Tensor((3,), "float32")):
        y = Library.inner(x)
        z = R.add(y, y)
        return z

    @R.function
    def other(x: R.Tensor((3,), "float32")):
        z = R.add(x, x)
        return z


def test_functions_of_libraries_are_found_by_callers_of_callers():
    def negate(x, out):
        out.copyfrom(-x.numpy())

    library = Module({"test.native_packed.only_there": negate})
    executable = relax.build(Library.with_attr("external_mods", [library]), "llvm")
    reasons = {name: f.why_not_native for name, f in executable.program.functions.items()}
    why = "it calls a function of a library: test.native_packed.only_there"
    assert reasons == {"inner": why, "main": why, "other": ""}
    machine = relax.VirtualMachine(executable, weft.cpu())
    assert machine["main"](np.ones(3, "float32")).numpy().tolist() == [-2, -2, -2]
