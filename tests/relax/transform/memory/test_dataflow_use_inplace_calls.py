"""In-place calls: only over what nothing needs later, and never over inputs or constants."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.analysis.inplace import aliases, inplace_opportunities, liveness
from weft.relax.transform import DataflowUseInplaceCalls
from weft.relax.transform.memory import dataflow_use_inplace_calls
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Mixed:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)  # over neither: both are parameters
            b = R.exp(a)  # not over a: c needs it
            c = R.multiply(a, b)  # over a or b
            d = c
            e = R.nn.relu(c)  # not over c: d is the same memory
            f = R.subtract(e, d)  # over e or d
            k = R.const([1.0, 2.0, 3.0, 4.0], "float32")
            g = R.add(k, y)  # not over the constant
            t = (f, g)
            h = R.maximum(f, g)  # not over f: t is an output
            i = R.add(h, h)  # over h, which it reads twice
            R.output(i, t)
        return i, t


def block_of(mod):
    return mod["main"].body.blocks[0]


def test_opportunities():
    block = block_of(Mixed)
    names = [binding.var.name_hint for binding in block.bindings]
    _, exact = inplace_opportunities(block, ())
    found = {names[item.binding_idx]: set(item.arg_idxs) for item in exact}
    assert found == {"c": {0, 1}, "f": {0, 1}, "i": {0, 1}}


def test_live_ranges_and_aliases():
    block = block_of(Mixed)
    ranges = {var.name_hint: found for var, found in liveness(block).items()}
    assert ranges["a"] == (0, 2)
    assert ranges["x"] == (-1, 11)
    assert ranges["i"] == (10, 11)
    sets, tuples = aliases(block, Mixed["main"].params)
    named = {var.name_hint: found for var, found in sets.items()}
    assert named["c"] == named["d"] != named["e"]
    (number,) = named["t"]
    assert tuples[number] == [named["f"], named["g"]]


def test_any_field_of_what_a_function_returns_may_be_its_tuple():
    @I.ir_module
    class Calls:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Calls
            with R.dataflow():
                pair = cls.both(x)
                a = pair[0]
                b = R.exp(a)
                R.output(b)
            return b

        @R.function(private=True)
        def both(x: R.Tensor((4,), "float32")) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
        ):
            return (x, x)

    assert inplace_opportunities(block_of(Calls), Calls["main"].params) == ([], [])
    assert DataflowUseInplaceCalls()(Calls) is Calls


def test_a_shape_beside_a_tensor_hides_no_memory():
    @I.ir_module
    class Calls:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Calls
            with R.dataflow():
                a = R.exp(x)
                pair = cls.both(R.shape([2]), a)
                b = pair[0]
                c = R.negative(a)
                R.output(b, c)
            return b, c

        @R.function(private=True)
        def both(size: R.Shape(["n"]), x: R.Tensor((4,), "float32")) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
        ):
            return (x, x)

    assert inplace_opportunities(block_of(Calls), Calls["main"].params) == ([], [])


@I.ir_module
class Viewed:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, (2, 2))
            c = R.negative(a)  # not over a, of which b may be a view
            d = R.add(R.reshape(c, (2, 2)), b)
            R.output(d)
        return d


@I.ir_module
class Captured:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)

            @R.function
            def more(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                s = R.add(a, y)
                return s

            c = R.negative(a)  # not over a, which the function reads
            d = more(c)
            R.output(d)
        return d


@pytest.mark.parametrize("mod", [Viewed, Captured])
def test_memory_by_another_name_is_not_written(mod):
    changed = DataflowUseInplaceCalls()(mod)
    machine = relax.VirtualMachine(relax.build(changed, "llvm"), weft.cpu())
    assert not np.any(machine["main"](np.arange(4, dtype="float32")).numpy())


def test_a_constant_that_a_function_returns_is_not_written():
    @I.ir_module
    class Returned:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Returned
            with R.dataflow():
                a = cls.stored(x)
                b = R.exp(a)
                R.output(b)
            return b

        @R.function(private=True)
        def stored(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.const([1.0, 2.0], "float32")

    assert DataflowUseInplaceCalls()(Returned) is Returned


def results(mod, mode, *args):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu(), exec_mode=mode)
    first, (second, third) = machine["main"](*args)
    return first.numpy(), second.numpy(), third.numpy()


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_results_stay_and_inputs_are_not_written(mode, n):
    changed = DataflowUseInplaceCalls()(Mixed)
    text = changed["main"].script()
    assert text.count("R.call_tir_inplace(") == 3
    assert relax.analysis.well_formed(changed)
    x = np.linspace(-1, 1, 4 * n, dtype="float32").reshape(n, 4)
    y = np.arange(4, dtype="float32")
    before = x.copy(), y.copy()
    expected = results(Mixed, mode, x, y)
    for _ in range(2):  # twice: a constant that was written would show
        for mine, its in zip(results(changed, mode, x, y), expected, strict=True):
            np.testing.assert_array_equal(mine, its)
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


def test_the_changed_function_is_native():
    executable = relax.build(DataflowUseInplaceCalls()(Mixed), "llvm")
    assert executable.program.functions["main"].native is not None


def test_a_kernel_in_place_makes_no_promise():
    """Another argument may be the same tensor, also after a later pass joins two of them."""
    changed = DataflowUseInplaceCalls()(Mixed)
    kernels = {g.name_hint: f for g, f in changed.functions.items() if g.name_hint != "main"}
    for name in ("add_inplace", "multiply_inplace"):
        assert "tir.noalias" not in kernels[name].attrs


def test_nothing_to_do_is_the_same_module():
    @I.ir_module
    class Plain:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                R.output(a)
            return a

    assert DataflowUseInplaceCalls()(Plain) is Plain


def test_a_kernel_is_made_once(monkeypatch):
    """Legalisation and the replacement of buffers run once for equal calls, not for each."""
    made = []
    original = dataflow_use_inplace_calls.over_argument
    monkeypatch.setattr(
        dataflow_use_inplace_calls,
        "over_argument",
        lambda kernel, index: made.append(index) or original(kernel, index),
    )
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(20):
                y = bb.emit(relax.op.exp(bb.emit(relax.op.add(y, x))))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    found = DataflowUseInplaceCalls()(bb.get())
    assert len(made) == 2
    assert {gvar.name_hint for gvar in found.functions} == {"main", "add_inplace", "exp_inplace"}
