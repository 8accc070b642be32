"""Small programs that several analyses are asked about."""

from __future__ import annotations

import pytest

from weft.ir.expr import IntImm, Range
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind


class Programs:
    """Builders of loops and blocks."""

    @staticmethod
    def loop(var: Var, extent, body):
        return For(var, op.const(0, var.dtype), extent, ForKind.SERIAL, body)

    @staticmethod
    def axis(name: str, extent, kind: int = IterVar.DataPar) -> IterVar:
        return IterVar(Range(0, extent), Var(name, "int32"), kind)

    def matmul_block(self, size: int = 16):
        a, b, c = (decl_buffer((size, size), "float32", name) for name in "ABC")
        axes = [
            self.axis("vi", size),
            self.axis("vj", size),
            self.axis("vk", size, IterVar.CommReduce),
        ]
        vi, vj, vk = (axis.var for axis in axes)
        block = Block(
            axes, [], [], "C",
            BufferStore(c, c[vi, vj] + a[vi, vk] * b[vk, vj], [vi, vj]),
            init=BufferStore(c, op.const(0.0, "float32"), [vi, vj]),
        )  # fmt: skip
        return block, (a, b, c)

    def matmul(self, size: int = 16) -> PrimFunc:
        block, buffers = self.matmul_block(size)
        loops = [Var(name, "int32") for name in "ijk"]
        body = BlockRealize(loops, IntImm("bool", 1), block)
        for var in reversed(loops):
            body = self.loop(var, size, body)
        root = BlockRealize([], IntImm("bool", 1), Block([], [], [], "root", body))
        return PrimFunc(list(buffers), root)


@pytest.fixture
def programs() -> Programs:
    return Programs()
