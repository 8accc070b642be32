"""``if`` in functions that run as one native call; the bytecode gives the same results."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


def both(mod, *args):
    """The results of both ways, which must agree, as nested tuples of arrays."""
    executable = relax.build(mod, "llvm")
    main = executable.program.functions["main"]
    assert main.native is not None, main.why_not_native
    found = [
        plain(relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)["main"](*args))
        for mode in MODES
    ]
    np.testing.assert_equal(found[0], found[1])
    return found[0]


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value


@I.ir_module
class Nested:
    @R.function
    def main(c: R.Tensor((), "bool"), d: R.Tensor((), "bool"), x: R.Tensor(("n", 3), "float32")):
        a = R.exp(x)
        b = R.add(a, a)
        if c:
            e = R.multiply(b, b)
            if d:
                f = R.add(e, x)
            else:
                f = R.nn.relu(x)
            y = R.add(f, e)
        else:
            y = R.subtract(a, b)
        z = R.add(y, b)
        return z


@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize("d", [True, False])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_branches_nest_at_every_size(c, d, n):
    x = np.linspace(-1, 1, 3 * n, dtype="float32").reshape(n, 3)
    a = np.exp(x)
    b = a + a
    y = ((b * b + x if d else np.maximum(x, 0)) + b * b) if c else a - b
    np.testing.assert_allclose(both(Nested, np.array(c), np.array(d), x), y + b, rtol=1e-5)


@I.ir_module
class Pair:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32"), y: R.Tensor((4,), "int32")):
        if c:
            p = (x, y)
        else:
            q = R.add(x, x)
            p = (q, y)
        a = p[0]
        return (a, p)


@pytest.mark.parametrize("c", [True, False])
def test_a_branch_may_give_a_tuple(c):
    x, y = np.ones((2, 3), "float32"), np.arange(4, dtype="int32")
    a, (first, second) = both(Pair, np.array(c), x, y)
    assert np.array_equal(a, x if c else 2 * x)
    assert np.array_equal(first, a)
    assert np.array_equal(second, y)


@I.ir_module
class Scalar:
    @R.function
    def main(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        c = R.greater(x, R.const(0, "float32"))
        if c:
            y = x
        else:
            y = R.negative(x)
        return y


@pytest.mark.parametrize("value", [-2.5, 0.0, 3.0])
def test_a_scalar_condition_is_computed(value):
    assert both(Scalar, np.array(value, "float32")) == abs(value)


def test_what_a_branch_returns_is_not_the_input_itself():
    executable = relax.build(Scalar, "llvm")
    x = weft.nd.array(np.array(3.0, "float32"))
    machine = relax.VirtualMachine(executable, weft.cpu())
    y = machine["main"](x)
    y.copyfrom(np.array(9.0, "float32"))
    assert x.item() == 3.0


@I.ir_module
class MayFail:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")):
        if c:
            a = R.match_cast(x, R.Tensor((4,), "float32"))
            y = R.sum(a)
        else:
            y = R.max(x)
        return y


def machines(mod):
    executable = relax.build(mod, "llvm")
    main = executable.program.functions["main"]
    assert main.native is not None, main.why_not_native
    return [relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode) for mode in MODES]


def test_a_cast_in_a_branch_fails_only_where_it_is_taken():
    for machine in machines(MayFail):
        assert machine["main"](np.array(False), np.arange(3, dtype="float32")).item() == 2
        assert machine["main"](np.array(True), np.arange(4, dtype="float32")).item() == 6
        with pytest.raises(ValueError, match="main: match_cast a") as caught:
            machine["main"](np.array(True), np.arange(3, dtype="float32"))
        assert str(caught.value) == "main: match_cast a: expected shape (4,), got (3,)"


@I.ir_module
class Symbols:
    @R.function(private=True)
    def halves(x: R.Tensor(("h", 2), "float32")):
        return R.exp(x)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", "m"), "float32"), s: R.Shape(["p"])):
        n, m, p = T.int64(), T.int64(), T.int64()
        if c:
            k = T.int64()
            a = R.match_cast(x, R.Tensor((k, k), "float32"))
            b = R.match_cast(R.shape([n + p]), R.Shape([k * 2]))
            t = R.shape_to_tensor(b)
            u = R.sum(R.matmul(a, R.ones((k, k + 1), "float32")))
            y = (u, t)
        else:
            v = Symbols.halves(x)
            y = (R.sum(v), R.shape_to_tensor(R.shape([m])))
        return y


def test_symbols_of_a_cast_in_a_branch():
    x, yes, no = np.ones((3, 3), "float32"), np.array(True), np.array(False)
    total, shape = both(Symbols, yes, x, (3,))
    assert (total, shape.tolist()) == (36, [6])
    assert both(Symbols, no, np.ones((3, 2), "float32"), (1,))[1].tolist() == [2]
    wrong = [
        (yes, x[:2], (3,), "main: match_cast a: expected shape (k, k), k=2, got (2, 3)"),
        (yes, x, (4,), "main: match_cast b: expected shape ((k * 2),), k=3, got (7,)"),
        (no, x, (1,), "halves: argument 0 (x): expected shape (h, 2), h=3, got (3, 3)"),
    ]
    for *args, message in wrong:
        for machine in machines(Symbols):
            with pytest.raises(ValueError, match="expected shape") as caught:
                machine["main"](*args)
            assert str(caught.value) == message


@I.ir_module
class Numbers:
    @R.function
    def main(s: R.Shape(["n", "m"]), k: R.Prim("int64")) -> R.Shape(ndim=2):
        n, m, j = T.int64(), T.int64(), T.int64()
        _a = R.match_cast(k, R.Prim(value=j))
        _b = R.match_cast(R.prim_value(n + m), R.Prim(value=j * 2))
        return R.shape([j, n])


def test_numbers_are_matched_natively():
    assert both(Numbers, (3, 5), 4) == (4, 3)
    executable = relax.build(Numbers, "llvm")
    messages = []
    for mode in MODES:
        machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        with pytest.raises(ValueError, match=r"match_cast _b: expected 10 .*, got 8") as caught:
            machine["main"]((3, 5), 5)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
