"""``relax.ExecBuilder``: programs written instruction by instruction."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.testing.vm import check_saved_func
from weft.runtime.containers import ShapeTuple


def machine(builder):
    return relax.VirtualMachine(builder.get(), weft.cpu())


def arrays(*values):
    return [weft.nd.array(np.array(value, "float32")) for value in values]


def test_functions_call_registered_functions_and_each_other():
    builder = relax.ExecBuilder()
    with builder.function("twice", num_inputs=1, param_names=["x"]):
        builder.emit_call("test.vm.add", args=[builder.r(0), builder.r(0)], dst=builder.r(9))
        builder.emit_ret(builder.r(9))
    with builder.function("main", num_inputs=2):
        builder.emit_call("twice", args=[builder.r(1)], dst=builder.r(7))
        builder.emit_call("test.vm.mul", args=[builder.r(0), builder.r(7)], dst=builder.r(3))
        builder.emit_ret(builder.r(3))
    vm = machine(builder)
    found = check_saved_func(vm, "main", *arrays([1, 2], [3, 4]))
    np.testing.assert_array_equal(found.numpy(), [6, 16])
    np.testing.assert_array_equal(vm["twice"](*arrays([5])).numpy(), [10])


def test_registers_are_numbered_by_their_first_use():
    texts = []
    for first, second in [(2, 3), (100, 50)]:
        builder = relax.ExecBuilder()
        with builder.function("main", num_inputs=2):
            builder.emit_call("test.vm.add", [builder.r(0), builder.r(1)], builder.r(first))
            builder.emit_call("test.vm.mul", [builder.r(1), builder.r(first)], builder.r(second))
            builder.emit_ret(builder.r(second))
        texts.append(builder.get().as_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("condition", "expected"), [(0, [3.0]), (1, [4.0])])
def test_branches_jump_forward(condition, expected):
    builder = relax.ExecBuilder()
    with builder.function("main", num_inputs=3):
        builder.emit_if(builder.r(0), 3)
        builder.emit_call("test.vm.add", [builder.r(1), builder.r(2)], builder.r(3))
        builder.emit_goto(2)
        builder.emit_call("test.vm.mul", [builder.r(1), builder.r(2)], builder.r(3))
        builder.emit_ret(builder.r(3))
    found = machine(builder)["main"](condition, *arrays([1], [3]))
    np.testing.assert_array_equal(found.numpy(), expected)


def test_closures_take_what_they_captured_last():
    builder = relax.ExecBuilder()
    with builder.function("inner", num_inputs=2):
        builder.emit_call("test.vm.add_scalar", [builder.r(0), builder.r(1)], builder.r(2))
        builder.emit_ret(builder.r(2))
    with builder.function("main", num_inputs=1):
        captured = [builder.f("inner"), builder.r(0)]
        builder.emit_call("vm.builtin.make_closure", captured, builder.r(1))
        builder.emit_ret(builder.r(1))
    vm = machine(builder)
    assert vm.invoke_closure(vm["main"](40), 2) == 42


def test_constants_are_kept_once():
    builder = relax.ExecBuilder()
    pairs = [
        ("text", "text"), (ShapeTuple([1, 2]), (1, 2)),
        (weft.nd.array(np.arange(3)), weft.nd.array(np.arange(3))),
    ]  # fmt: skip
    for one, other in pairs:
        assert builder.convert_constant(one) == builder.convert_constant(other)
    different = [builder.convert_constant(x) for x in ("a", (1, 3), 1, 1.0, True)]
    assert len(set(different)) == 5
    assert builder.c(0) == builder.convert_constant("text")
    with pytest.raises(ValueError, match="the index of one of 8 constants, got 8"):
        builder.c(8)


def test_storage_and_shapes_of_constants():
    builder = relax.ExecBuilder()
    with builder.function("main"):
        storage = [builder.vm_state(), (96,), builder.imm(0), weft.DataType("float32")]
        builder.emit_call("vm.builtin.alloc_storage", storage, builder.r(0))
        tensor = [builder.r(0), builder.imm(0), (4, 6), weft.DataType("float32")]
        builder.emit_call("vm.builtin.alloc_tensor", tensor, builder.r(1))
        builder.emit_call("test.vm.move", [builder.imm(-3)], builder.void_arg())
        builder.emit_ret(builder.r(1))
    made = machine(builder)["main"]()
    assert (made.shape, str(made.dtype)) == ((4, 6), "float32")


def test_what_is_wrong_is_refused():
    builder = relax.ExecBuilder()
    with pytest.raises(ValueError, match="an instruction needs a function"):
        builder.emit_ret(builder.r(0))
    with builder.function("early", num_inputs=1):
        builder.emit_call("test.vm.add", [builder.r(0), builder.r(2)], builder.r(2))
        with pytest.raises(ValueError, match="a jump forward"):
            builder.emit_goto(-1)
        with pytest.raises(TypeError, match=r"expected an operand \(r, imm, c, f\)"):
            builder.emit_call("test.vm.add", [3])
        builder.emit_ret(builder.r(2))
    with pytest.raises(ValueError, match="early: register 2 is read before it has a value"):
        builder.get()
    with pytest.raises(ValueError, match="2 inputs, 1 names"):
        builder.function("names", 2, ["x"])
    unfinished = relax.ExecBuilder()
    with unfinished.function("main", num_inputs=1):
        pass
    with pytest.raises(ValueError, match="the last instruction must be a return"):
        unfinished.get()
