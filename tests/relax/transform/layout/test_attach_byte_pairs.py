"""AttachBytePairs: kernels are told along which axes of their weights pairs fit int16."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.transform import Sequential
from weft.relax.transform import LegalizeOps
from weft.relax.transform.layout.attach_byte_pairs import AttachBytePairs
from weft.tir import PrimFunc
from weft.tir.byte_pairs import EXACT_BYTE_PAIRS

HASWELL = "llvm -mcpu=haswell"


def module(*weights):
    """A sum of products of bytes with weights of one shape."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3, weights[0].shape[0]), "uint8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            total = builder.emit(relax.op.matmul(x, relax.const(weights[0]), out_dtype="int32"))
            for each in weights[1:]:
                other = builder.emit(relax.op.matmul(x, relax.const(each), out_dtype="int32"))
                total = builder.emit(relax.op.add(total, other))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    return builder.finalize()


def axes_of(mod, target=HASWELL):
    """What the kernels of a module are told."""
    with weft.target.Target(target):
        made = Sequential([LegalizeOps(), AttachBytePairs()])(mod)
    funcs = [func for func in made.functions.values() if isinstance(func, PrimFunc)]
    lists = [func.attrs[EXACT_BYTE_PAIRS] for func in funcs if EXACT_BYTE_PAIRS in func.attrs]
    return sorted([[list(map(int, axes)) for axes in each] for each in lists])


SMALL = np.full((4, 6), 64, "int8")
DOWN = np.array([[100, 100], [28, 28], [-128, 3]], "int8")


def test_each_axis_is_looked_at():
    assert axes_of(module(SMALL)) == [[[], [0, 1], []]]
    assert axes_of(module(DOWN)) == [[[], [0], []]]
    assert axes_of(module(DOWN + np.int8(1))) == []


def test_a_kernel_for_each_kind_of_weights():
    """Two layers share a kernel until their weights differ in this."""
    wide = np.array([[100, 27], [100, 28], [0, 0]], "int8")
    assert axes_of(module(DOWN, wide, DOWN)) == [[[], [0], []], [[], [1], []]]


@pytest.mark.parametrize("cpu", ["cascadelake", "x86-64-v2"])
def test_only_processors_that_need_it_are_told(cpu):
    """One has an instruction for all bytes; the other one multiplies pairs, too."""
    told = axes_of(module(SMALL), f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}")
    assert told == ([] if cpu == "cascadelake" else [[[], [0, 1], []]])


def test_compiled_models_multiply_in_pairs():
    mod = weft.compile(module(SMALL), target=HASWELL, cache=False)
    assert "vpmaddubsw" in mod.get_source("asm")
