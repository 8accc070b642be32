"""BlockDependenceInfo: the edges between blocks, found without a schedule."""

import weft
from weft import tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.schedule import DepKind


@T.prim_func
def program(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("first"):
            v = T.axis.spatial(4, i)
            C[v] = T.float32(0)
        for k in range(4):
            with T.block("sum"):
                v, r = T.axis.remap("SR", [i, k])
                C[v] = C[v] + A[v, r]
    for i in range(4):
        with T.block("reset"):
            v = T.axis.spatial(4, i)
            A[v, 0] = T.float32(0)


def edges(info, name):
    blocks = {block.name_hint: block for block in collect(info.mod, tir.Block)}
    sref = info.get_sref(blocks[name])
    scope = info.get_block_scope(sref.parent)
    targets = {(edge.kind, edge.dst.stmt.name_hint) for edge in scope.get_deps_by_src(sref)}
    sources = {(edge.kind, edge.src.stmt.name_hint) for edge in scope.get_deps_by_dst(sref)}
    return sources, targets


def test_edges_of_every_kind():
    for given in (program, weft.IRModule({"main": program})):
        info = tir.BlockDependenceInfo(given)
        assert edges(info, "first") == (set(), {(DepKind.RAW, "sum"), (DepKind.WAW, "sum")})
        sources, targets = edges(info, "sum")
        assert sources == {(DepKind.RAW, "first"), (DepKind.WAW, "first")}
        assert targets == {(DepKind.WAR, "reset")}


def test_a_block_of_another_program_has_no_reference():
    [block] = [b for b in collect(program.body, tir.Block) if b.name_hint == "sum"]
    other = program.with_attr("global_symbol", "other")
    assert tir.BlockDependenceInfo(other).get_sref(block) is not None
    assert tir.BlockDependenceInfo(tir.stmt_functor.renew_defs(program)).get_sref(block) is None
