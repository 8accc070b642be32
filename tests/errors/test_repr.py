"""What users print is short and says what it is."""

from __future__ import annotations

import weft
from weft import relax, transform


def test_machine_and_executable(built, vm):
    assert repr(built) == "Executable(functions=[main])"
    assert repr(vm) == "VirtualMachine(functions=[main])"


def test_block_builder():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with bb.function("main", [x]):
        assert repr(bb) == "BlockBuilder(functions=[], building=main)"
        bb.emit_func_output(x)
    assert repr(bb) == "BlockBuilder(functions=[main])"


def test_pass_context():
    context = transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True})
    assert repr(context) == "PassContext(opt_level=3, config={'tir.disable_vectorize': True})"


def test_kernels(module):
    kernels = weft.build(module["add1"])
    assert repr(kernels) == "Executable(type_key='llvm', functions=[add1])"
    assert repr(kernels["add1"]) == "NativeFunction('add1')"
