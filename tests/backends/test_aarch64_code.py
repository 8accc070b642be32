"""The assembly of a matrix product for AArch64: what its inner loops do."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import relax

_BRANCH = re.compile(r"\t(?:b\.\w+|cbn?z|tbn?z)\t.*?(\.LBB\w+)")
_VECTOR_SUM = re.compile(r"\tfmla\tv(\d+)\.(?:4s|2d), v\d+\.(?:4s|2d), v\d+\.(?:[sd]\[\d\]|4s|2d)")
_STACK = re.compile(r"\[sp\b|\[x29\b")
_STORE = re.compile(r"\tst[rpu]\w*\t")


def inner_loops(assembly: str) -> list[list[str]]:
    """The lines of each loop that has no other in it."""
    lines = assembly.splitlines()
    labels = {line[:-1]: at for at, line in enumerate(lines) if re.match(r"\.LBB\w+:", line)}
    loops = []
    for end, line in enumerate(lines):
        target = _BRANCH.match(line)
        begin = labels.get(target[1], end + 1) if target else end + 1
        body = lines[begin + 1 : end + 1]
        if begin <= end and not any(label.endswith(":") for label in body):
            loops.append(body)
    return loops


def product(rows: int, dtype: str, cpu: str) -> str:
    """The assembly of ``relu(x @ weight)``."""
    weight = np.random.default_rng(0).random((256, 256)).astype(dtype)
    x = relax.Var("x", relax.TensorStructInfo((rows, 256), dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        value = relax.op.nn.relu(relax.op.matmul(x, relax.const(weight)))
        builder.emit_func_output(builder.emit(value))
    target = f"llvm -mtriple=aarch64-linux-gnu {cpu} -num-cores=1"
    return weft.compile(builder.get(), target=target).get_source("asm")


@pytest.mark.parametrize("cpu", ["-mattr=+neon", "-mcpu=cortex-a72", "-mcpu=neoverse-n1"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accumulators_stay_in_registers(dtype, cpu):
    loops = [body for body in inner_loops(product(128, dtype, cpu)) if "fmla" in "".join(body)]
    assert loops
    for body in loops:
        sums = [match for line in body if (match := _VECTOR_SUM.match(line))]
        # each product is of whole vectors, or by one lane; nearly all else loads operands
        assert len(sums) == sum("\tfmla\t" in line or "\tfmul\t" in line for line in body)
        assert len(sums) / len(body) > 0.6
        assert not [line for line in body if _STACK.search(line) or _STORE.match(line)]
    widest = max({len({match[1] for line in body if (match := _VECTOR_SUM.match(line))})
                  for body in loops})  # fmt: skip
    assert 16 <= widest <= 28  # of 32 registers; the rest holds operands


def test_a_single_row_streams_the_weights():
    loops = [b for b in inner_loops(product(1, "float32", "-mattr=+neon")) if "fmla" in "".join(b)]
    assert loops
    for body in loops:
        assert not [line for line in body if _STACK.search(line) or _STORE.match(line)]


def test_loops_are_found():
    text = ".LBB0_1:\n.LBB0_2:\n\tfmla\tv0.4s, v1.4s, v2.s[1]\n\tb.ne\t.LBB0_2\n\tcbnz\tx0, .LBB0_1"
    (body,) = inner_loops(text)
    assert _VECTOR_SUM.match(body[0])
    assert not _VECTOR_SUM.match("\tfmadd\ts0, s1, s2, s3")
