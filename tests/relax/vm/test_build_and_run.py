"""Graph functions built and run, natively and as bytecode, give the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


def both(mod, *args, function="main"):
    """The results of both ways of running; asserts that they agree."""
    ex = relax.build(mod, pipeline=None)
    results = []
    for mode in MODES:
        vm = relax.VirtualMachine(ex, weft.cpu(), exec_mode=mode)
        results.append(vm[function](*args))
    assert_same(*results)
    return results[0]


def assert_same(a, b):
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif hasattr(a, "numpy"):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    else:
        assert a == b


def is_native(mod, function="main"):
    return relax.build(mod, pipeline=None).program.functions[function].native is not None


@I.ir_module
class Symbolic:
    @T.prim_func
    def double(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.block("y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Symbolic
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((n,), "float32"))
            c = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((n,), "float32"))
            R.output(c)
        return c


@pytest.mark.parametrize("size", [0, 1, 5, 1000])
def test_symbolic_function_runs_at_every_size(size):
    x = np.arange(size, dtype="float32")
    np.testing.assert_array_equal(both(Symbolic, x).numpy(), x * 8)


def test_symbolic_function_is_one_native_call():
    assert is_native(Symbolic)


def test_intermediates_share_memory_when_their_lives_allow_it():
    entry = relax.build(Symbolic, pipeline=None).program.functions["main"].native
    assert entry.outputs == (("float32", ("n",)),)
    assert entry.planned.symbols == ("n",)
    assert entry.planned.lives == ((0, 1), (1, 2))


@I.ir_module
class Branch:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        if c:
            y = R.call_dps_packed("test.twice", (x,), out_sinfo=R.Tensor((2,), "float32"))
        else:
            y = x
        return y


@pytest.fixture
def twice():
    @weft.register_func("test.twice", override=True)
    def run(x, out):
        out.copyfrom(x.numpy() * 2)


@pytest.mark.parametrize(("condition", "factor"), [(True, 2), (False, 1)])
def test_if_chooses_a_branch(condition, factor, twice):
    x = np.array([1, 2], "float32")
    result = both(Branch, np.array(condition), x)
    np.testing.assert_array_equal(result.numpy(), x * factor)


def test_a_branch_is_part_of_the_native_call():
    assert is_native(Branch)


@I.ir_module
class Tuples:
    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((3,), "float32")):
        t = (x, (y, x))
        u = t[1]
        z = u[0]
        return (z, t)


def test_tuples_nest():
    x, y = np.ones(2, "float32"), np.zeros(3, "float32")
    z, (first, (second, third)) = both(Tuples, x, y)
    assert z.shape == second.shape == (3,)
    assert first.shape == third.shape == (2,)


@I.ir_module
class Recursive:
    @R.function(pure=False)
    def main(n: R.Prim("int64")) -> R.Object:
        cls = Recursive
        result = cls.helper(n)
        return result

    @R.function(pure=False)
    def helper(n: R.Prim("int64")) -> R.Object:
        r = R.call_packed("test.minus_one", n, sinfo_args=R.Object)
        return r


def test_functions_call_each_other(twice):
    weft.register_func("test.minus_one", lambda n: n - 1, override=True)
    assert both(Recursive, 7) == 6


@I.ir_module
class Match:
    @R.function
    def main(x: R.Tensor("float32", ndim=2)):
        n, m = T.int64(), T.int64()
        y = R.match_cast(x, R.Tensor((n, m), "float32"))
        s = R.shape([n + 1, m * 2])
        return (y, s)


def test_match_cast_defines_symbols():
    y, shape = both(Match, np.zeros((3, 4), "float32"))
    assert y.shape == (3, 4)
    assert tuple(shape) == (4, 8)


def test_constants_are_shared_and_never_returned():
    data = np.arange(3, dtype="float32")
    constant = relax.const(data)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(relax.Tuple([constant, x]))
    ex = relax.build(builder.get(), pipeline=None)
    vm = relax.VirtualMachine(ex, weft.cpu())
    first = vm["main"](data)[0]
    first.copyfrom(np.zeros(3, "float32"))
    np.testing.assert_array_equal(vm["main"](data)[0].numpy(), [0, 1, 2])


def test_a_callback_sees_the_memory_of_the_graph(twice):
    kept = []

    @weft.register_func("test.keep", override=True)
    def keep(x, out):
        kept.append(x)
        out.copyfrom(x.numpy() + 1)

    @I.ir_module
    class Keeping:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.call_dps_packed("test.keep", (x,), out_sinfo=R.Tensor((4,), "float32"))
                b = R.call_dps_packed("test.keep", (a,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(b)
            return b

    vm = relax.VirtualMachine(relax.build(Keeping, pipeline=None), weft.cpu())
    for start in range(5):
        result = vm["main"](np.full(4, start, "float32"))
        np.testing.assert_array_equal(result.numpy(), np.full(4, start + 2))
    kept_values = [float(array.numpy()[0]) for array in kept]
    assert kept_values == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]


def test_stateful_inputs(twice):
    x = np.arange(4, dtype="float32")
    vm = relax.VirtualMachine(relax.build(Symbolic, pipeline=None), weft.cpu())
    vm.set_input("main", x)
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), x * 8)


def test_saved_function_takes_no_arguments():
    vm = relax.VirtualMachine(relax.build(Symbolic, pipeline=None), weft.cpu())
    vm.save_function("main", "saved", np.ones(2, "float32"))
    np.testing.assert_array_equal(vm["saved"]().numpy(), [8, 8])


@I.ir_module
class Echo:
    @T.prim_func
    def double(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        for i in range(2):
            y[i] = x[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Echo
        y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((2,), "float32"))
        return (x, y)


def test_read_only_arrays_and_torch_tensors_are_inputs():
    torch = pytest.importorskip("torch")
    frozen = np.ones(2, "float32")
    frozen.flags.writeable = False
    for argument in (frozen, torch.ones(2)):
        given, doubled = both(Echo, argument)
        assert isinstance(given, weft.nd.NDArray)
        given.copyfrom(np.zeros(2, "float32"))
        np.testing.assert_array_equal(doubled.numpy(), [2, 2])
    np.testing.assert_array_equal(frozen, [1, 1])


def test_kernels_and_callbacks_that_may_write_need_writable_memory(twice):
    @I.ir_module
    class Writes:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            y = R.call_dps_packed("test.twice", x, out_sinfo=R.Tensor((2,), "float32"))
            return y

    frozen = np.ones(2, "float32")
    frozen.flags.writeable = False
    vm = relax.VirtualMachine(relax.build(Writes, pipeline=None), weft.cpu())
    with pytest.raises(ValueError, match="expected writable memory"):
        vm["main"](frozen)


def test_calls_in_place_do_not_write_the_constants_of_the_model():
    @I.ir_module
    class InPlace:
        @T.prim_func
        def increment(x: T.Buffer((2,), "float32")):
            for i in range(2):
                x[i] = x[i] + T.float32(1)

        @R.function(pure=False)
        def main(y: R.Tensor((2,), "float32")):
            cls = InPlace
            info = R.Tensor((2,), "float32")
            k = R.const(np.zeros(2, "float32"))
            a = R.call_tir_inplace(cls.increment, (k,), inplace_indices=[0], out_sinfo=info)
            b = R.call_tir_inplace(cls.increment, (y,), inplace_indices=[0], out_sinfo=info)
            return (a, b)

    vm = relax.VirtualMachine(relax.build(InPlace, pipeline=None), weft.cpu())
    y = weft.nd.array(np.zeros(2, "float32"))
    for count in (1, 2):
        a, b = vm["main"](y)
        np.testing.assert_array_equal(a.numpy(), [1, 1])
        np.testing.assert_array_equal(b.numpy(), [count, count])
        np.testing.assert_array_equal(y.numpy(), [count, count])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((), TypeError, r"main: expected 1 argument \(x\), got 0"),
        ((np.zeros(3, "float64"),), TypeError, r"argument 0 \(x\): .*float32, got .*float64"),
        (
            (np.zeros((3, 1), "float32"),),
            ValueError,
            r"main: argument 0 \(x\): expected shape \(n,\).*got \(3, 1\)",
        ),
        ((3.0,), TypeError, r"main: argument 0 \(x\): expected a tensor.*got"),
    ],
)  # fmt: skip
def test_wrong_arguments_say_what_is_wrong(mode, args, error, message):
    vm = relax.VirtualMachine(relax.build(Symbolic, pipeline=None), weft.cpu(), exec_mode=mode)
    with pytest.raises(error, match=message) as caught:
        vm["main"](*args)
    assert isinstance(caught.value, weft.TVMError)


def test_a_missing_function_is_named():
    vm = relax.VirtualMachine(relax.build(Symbolic, pipeline=None), weft.cpu())
    with pytest.raises(weft.TVMError, match="no function 'mian'; did you mean 'main'"):
        vm["mian"]


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_registered_function_is_named(mode):
    weft.register_func("test.twice", lambda x, out: None, override=True)

    @I.ir_module
    class Missing:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                a = R.call_dps_packed("test.twiec", (x,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(a)
            return a

    vm = relax.VirtualMachine(relax.build(Missing, pipeline=None), weft.cpu(), exec_mode=mode)
    with pytest.raises(weft.TVMError, match="test.twiec.*test.twice"):
        vm["main"](np.zeros(4, "float32"))


def test_an_instrument_sees_every_kernel():
    seen = []
    vm = relax.VirtualMachine(relax.build(Symbolic, pipeline=None), weft.cpu())
    vm.set_instrument(lambda func, name, before, ret, *args: seen.append((name, before)) and None)
    vm["main"](np.zeros(2, "float32"))
    assert [entry for entry in seen if entry == ("double", True)] == [("double", True)] * 3
