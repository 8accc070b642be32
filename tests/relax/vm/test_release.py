"""The bytecode machine forgets a value after its last use."""

import weakref

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime import registry
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import last_uses, registers_read
from weft.script import ir as I
from weft.script import relax as R

STEPS = 12


@pytest.fixture
def alive(monkeypatch):
    """Registers ``test.step``, which adds 1; how many of its results were alive at each call."""
    monkeypatch.setattr(registry, "_TABLE", dict(registry._TABLE))
    made, counts = [], []

    def step(x):
        counts.append(sum(1 for item in made if item() is not None))
        result = NDArray(x.numpy() + 1)
        made.append(weakref.ref(result))
        return result

    weft.register_func("test.step", step)
    return counts


INFO = relax.TensorStructInfo((3,), "float32")


def run(builder, *args):
    executable = relax.build(builder.get(), "llvm")
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode="bytecode")
    return machine["main"](*[weft.nd.array(arg) for arg in args])


def step(builder, x):
    return builder.emit(relax.op.call_pure_packed("test.step", x, sinfo_args=INFO))


def test_a_chain_holds_one_intermediate_at_a_time(alive):
    x = relax.Var("x", INFO)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        made = x
        for _ in range(STEPS):
            made = step(builder, made)
        builder.emit_func_output(made)
    found = run(builder, np.zeros(3, "float32"))
    np.testing.assert_array_equal(found.numpy(), np.full(3, STEPS))
    assert alive == [0] + [1] * (STEPS - 1)


def test_a_value_that_is_used_later_stays(alive):
    x = relax.Var("x", INFO)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        first = made = step(builder, x)
        for _ in range(4):
            made = step(builder, made)
        builder.emit_func_output(builder.emit(relax.op.add(first, made)))
    found = run(builder, np.zeros(3, "float32"))
    np.testing.assert_array_equal(found.numpy(), np.full(3, 6))
    assert alive == [0, 1, 2, 2, 2]


def test_fields_of_a_tuple_go_with_the_tuple(alive):
    x = relax.Var("x", INFO)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        pair = builder.emit(relax.Tuple([step(builder, x), step(builder, x)]))
        made = builder.emit(relax.TupleGetItem(pair, 1))
        for _ in range(3):
            made = step(builder, made)
        builder.emit_func_output(made)
    run(builder, np.zeros(3, "float32"))
    assert alive == [0, 1, 1, 1, 1]


@I.ir_module
class Branches:
    @R.function
    def main(x: R.Tensor((3,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((3,), "float32"):
        a = R.call_pure_packed("test.step", x, sinfo_args=R.Tensor((3,), "float32"))
        b = R.call_pure_packed("test.step", x, sinfo_args=R.Tensor((3,), "float32"))
        if c:
            p = R.call_pure_packed("test.step", a, sinfo_args=R.Tensor((3,), "float32"))
            r = R.call_pure_packed("test.step", p, sinfo_args=R.Tensor((3,), "float32"))
        else:
            q = R.call_pure_packed("test.step", b, sinfo_args=R.Tensor((3,), "float32"))
            r = R.call_pure_packed("test.step", q, sinfo_args=R.Tensor((3,), "float32"))
        s = R.call_pure_packed("test.step", r, sinfo_args=R.Tensor((3,), "float32"))
        return s


@pytest.mark.parametrize(
    ("condition", "counts"), [(True, [0, 1, 2, 2, 1]), (False, [0, 1, 1, 1, 1])]
)
def test_what_the_other_branch_uses_goes_as_well(alive, condition, counts):
    executable = relax.build(Branches, "llvm")
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode="bytecode")
    x, c = weft.nd.array(np.zeros(3, "float32")), weft.nd.array(np.array(condition))
    np.testing.assert_array_equal(machine["main"](x, c).numpy(), np.full(3, 4))
    assert alive == counts


@I.ir_module
class Called:
    @R.function(private=True)
    def inner(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        a = R.call_pure_packed("test.step", x, sinfo_args=R.Tensor((3,), "float32"))
        b = R.call_pure_packed("test.step", a, sinfo_args=R.Tensor((3,), "float32"))
        return b

    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        cls = Called
        a = cls.inner(x)
        b = cls.inner(a)
        c = cls.inner(b)
        return c


def test_functions_that_are_called_forget_too(alive):
    machine = relax.VirtualMachine(relax.build(Called, "llvm"), weft.cpu(), exec_mode="bytecode")
    found = machine["main"](weft.nd.array(np.zeros(3, "float32")))
    np.testing.assert_array_equal(found.numpy(), np.full(3, 6))
    assert max(alive) <= 2


def test_last_uses_of_every_instruction():
    code = (
        ("call", 2, ("builtin", "identity"), (("tuple", (("reg", 0), ("tuple", (("reg", 1),)))),)),
        ("call", 3, ("register", 2), (("reg", 1), ("expr", "n"))),
        ("if", ("reg", 3), 2),
        ("call", 4, ("builtin", "identity"), (("reg", 1),)),
        ("goto", 1),
        ("call", 4, ("builtin", "identity"), (("const", 0),)),
        ("match", 4, ("object",), "x"),
        ("ret", ("reg", 4)),
    )
    assert [sorted(registers_read(item)) for item in code] == [
        [0, 1], [1, 2], [3], [1], [], [], [4], [4],
    ]  # fmt: skip
    assert last_uses(code) == [(0,), (2,), (3,), (1,), (), (), (), (4,)]
