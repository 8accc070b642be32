"""The entry of a module, and its anchor: the reduction with the most arithmetic.

Two modules whose anchors are equal can share a schedule (what follows the anchor is fused into it).
"""

from __future__ import annotations

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.support.errors import IRValueError
from weft.tir.analysis.resources import estimate_tir_flops
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, For, SeqStmt, Stmt


def find_entry_func(mod: IRModule) -> PrimFunc | None:
    """The function marked ``tir.is_entry_func``, else ``main``, else the only PrimFunc, else None.

    >>> import weft
    >>> find_entry_func(weft.IRModule({})) is None
    True
    """
    functions = {v.name_hint: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)}
    for function in functions.values():
        if function.attrs.get("tir.is_entry_func"):
            return function
    if "main" in functions:
        return functions["main"]
    return next(iter(functions.values())) if len(functions) == 1 else None


def entry_func(mod: IRModule) -> PrimFunc:
    """As ``find_entry_func``; raises IRValueError where a module has no entry."""
    entry = find_entry_func(mod)
    if entry is None:
        names = [v.name_hint for v, f in mod.functions.items() if isinstance(f, PrimFunc)]
        raise IRValueError(
            "expected a module with one PrimFunc, one named main or one with the attribute "
            f"tir.is_entry_func, found PrimFuncs {names}"
        )
    return entry


def find_anchor_block(mod: IRModule) -> Block | None:
    """The reduction block of the entry with the most arithmetic; None if there is no reduction.

    >>> from weft import te, topi, IRModule
    >>> x, w = te.placeholder((4, 16), name="x"), te.placeholder((8, 16), name="w")
    >>> product = topi.nn.dense(x, w)
    >>> mod = IRModule({"main": te.create_prim_func([x, w, topi.nn.relu(product)])})
    >>> find_anchor_block(mod).name_hint
    'T_matmul_NT'
    """
    entry = find_entry_func(mod)
    if entry is None:
        return None
    candidates = [block for block in collect(entry.body, Block) if block.init is not None]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    nests = _nests(entry.body)

    def arithmetic(candidate: Block) -> float:
        within = (nest for nest in nests if any(b is candidate for b in collect(nest, Block)))
        return estimate_tir_flops(next(within, candidate))

    return max(candidates, key=arithmetic)


def _nests(body: Stmt) -> list[Stmt]:
    """The loop nests that follow one another in the outermost sequence of statements."""
    sequences = collect(body, SeqStmt)
    outermost = sequences[-1].seq if sequences else (body,)  # post order: the outermost is last
    return [statement for statement in outermost if isinstance(statement, For)]
