"""Graph functions of any number of bindings, of several forms, to see how a pass grows with them.

``FORMS`` names them. Each form has another thing of which there are many: operators, blocks,
outputs, functions, symbols or branches; a pass that is linear in one may be quadratic in another.
``passes`` are those that can run on them, ``stages`` what each runs on.
Used by benchmarks/relax_passes.py and by the tests that count a pass's work.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final

import numpy as np

from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.relax import op, transform
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    BindingBlock,
    Call,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import TVMError
from weft.tir.expr import Var as TirVar

SQUARE: Final = TensorStructInfo((8, 8), "float32")
UNKNOWN: Final = TensorStructInfo(None, "float32", ndim=2)


def mixed(size: int) -> IRModule:
    """Many operators: element-wise, products, convolutions, reshapes, splits, reductions."""
    bb = BlockBuilder()
    image = Var("image", TensorStructInfo((1, 8, 8, 8), "float32"))
    rows = Var("rows", TensorStructInfo((64, 8), "float32"))
    weight = Var("weight", SQUARE)
    filters = Var("filters", TensorStructInfo((8, 8, 3, 3), "float32"))
    scale = const(np.linspace(0, 1, 8, dtype="float32"))
    count = 0

    def emit(value: Any) -> Any:
        nonlocal count
        count += 1
        return bb.emit(value)

    with bb.function("main", [image, rows, weight, filters]):
        with bb.dataflow():
            x: Any = image
            y: Any = rows
            while count < size:
                x = emit(op.nn.relu(emit(op.nn.conv2d(x, filters, padding=(1, 1)))))
                x = emit(op.add(x, image))
                flat = emit(op.permute_dims(emit(op.reshape(x, (8, 64)))))
                y = emit(op.add(emit(op.matmul(emit(op.add(y, flat)), weight)), scale))
                halves = emit(op.split(y, 2, 1))
                low, high = (emit(TupleGetItem(halves, i)) for i in range(2))
                y = emit(op.concat([emit(op.sigmoid(high)), emit(op.exp(low))], 1))
                total = emit(op.max(y, 1, keepdims=True))
                y = emit(op.subtract(y, total))
                x = emit(op.reshape(emit(op.permute_dims(y)), (1, 8, 8, 8)))
            out = bb.emit_output(op.add(x, image))
        bb.emit_func_output(out)
    return bb.get()


def blocks(size: int) -> IRModule:
    """Many dataflow blocks with a binding between each two."""
    bb, x = BlockBuilder(), Var("x", SQUARE)
    with bb.function("main", [x]):
        value = x
        for _ in range(max(size // 3, 1)):
            with bb.dataflow():
                value = bb.emit_output(op.exp(bb.emit(op.add(value, x))))
            value = bb.emit(op.nn.relu(value))
        bb.emit_func_output(value)
    return bb.get()


def outputs(size: int) -> IRModule:
    """Many parameters and results, and one value that everything needs."""
    bb, x = BlockBuilder(), Var("x", SQUARE)
    params = [Var(f"p{i}", SQUARE) for i in range(size // 2)]
    with bb.function("main", [x, *params]):
        with bb.dataflow():
            shared = bb.emit(op.nn.relu(x))
            made = [bb.emit_output(op.exp(bb.emit(op.add(shared, param)))) for param in params]
        bb.emit_func_output(Tuple(made))
    return bb.get()


def functions(size: int) -> IRModule:
    """Many private functions that differ in a constant."""
    bb, made = BlockBuilder(), []
    for number in range(max(size // 5, 1)):
        x = Var("x", SQUARE)
        with bb.function(f"part{number}", [x], private=True):
            with bb.dataflow():
                value = bb.emit(op.nn.relu(bb.emit(op.add(x, const(float(number), "float32")))))
                value = bb.emit_output(op.exp(bb.emit(op.negative(value))))
            made.append(bb.emit_func_output(value))
    x = value = Var("x", SQUARE)
    with bb.function("main", [x]):
        with bb.dataflow():
            for part in made:
                value = bb.emit(Call(part, [value]))
            value = bb.emit_output(op.exp(value))
        bb.emit_func_output(value)
    return bb.get()


def symbols(size: int) -> IRModule:
    """Many symbols, each pair from a match_cast."""
    bb, x = BlockBuilder(), Var("x", UNKNOWN)
    with bb.function("main", [x]):
        value: Any = x
        for number in range(max(size // 5, 1)):
            n, m = TirVar(f"n{number}", "int64"), TirVar(f"m{number}", "int64")
            value = bb.match_cast(value, TensorStructInfo((n, m), "float32"))
            with bb.dataflow():
                value = bb.emit(op.nn.relu(bb.emit(op.exp(value))))
                value = bb.emit_output(op.permute_dims(value))
            value = bb.emit(op.call_pure_packed("opaque", value, sinfo_args=UNKNOWN))
        bb.emit_func_output(value)
    return bb.get()


def branches(size: int) -> IRModule:
    """Many conditionals, one after the other."""
    bb, x = BlockBuilder(), Var("x", SQUARE)
    flag = Var("flag", TensorStructInfo((), "bool"))

    def branch(operator: Callable[[Any], Any], value: Var) -> SeqExpr:
        first, second = Var("first", SQUARE), Var("second", SQUARE)
        calls = (first, operator(value)), (second, op.add(first, x))
        bindings = [VarBinding(var, bb.normalize(call)) for var, call in calls]
        return SeqExpr([BindingBlock(bindings)], second)

    with bb.function("main", [x, flag]):
        value = x
        for _ in range(max(size // 6, 1)):
            value = bb.emit(If(flag, branch(op.exp, value), branch(op.nn.relu, value)))
            value = bb.emit(op.nn.relu(value))
        bb.emit_func_output(value)
    return bb.get()


FORMS: Final[dict[str, Callable[[int], IRModule]]] = {
    "mixed": mixed,
    "blocks": blocks,
    "outputs": outputs,
    "functions": functions,
    "symbols": symbols,
    "branches": branches,
}
"""Name -> a module of about so many bindings."""

LOWERING: Final = (
    "RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite",
    "StaticPlanBlockMemory", "LowerAllocTensor", "KillAfterLastUse", "LowerRuntimeBuiltin",
    "ComputePrimValue", "VMShapeLower", "AttachGlobalSymbol",
)  # fmt: skip
"""The passes behind LegalizeOps in ``default_build``: each runs on what those before it leave."""
_NO_PASSES: Final = frozenset(
    {"PassContext", "Sequential", "register_legalize", "dataflowblock_pass", "function_pass"}
)


def passes(only: Container[str] = ()) -> dict[str, Pass]:
    """The passes of ``relax.transform`` that need no arguments, by name."""
    found = {}
    for name in transform.__all__:
        if name in _NO_PASSES or (only and name not in only):
            continue
        maker: Callable[[], Any] = getattr(transform, name)
        try:
            made = maker()
        except (TypeError, TVMError):  # it needs arguments, as BindParams does
            continue
        if isinstance(made, Pass):
            found[name] = made
    return found


def stages(mod: IRModule) -> dict[str, list[IRModule]]:
    """The modules that a pass runs on, by its name; under "" those for all others."""
    kernels = transform.AnnotateTIROpPattern()(transform.LegalizeOps()(mod))
    found = {"": [mod, kernels], "LegalizeOps": [mod], "FuseTIR": [transform.FuseOps()(kernels)]}
    lowered = kernels
    for name in LOWERING:
        found[name] = [lowered]
        lowered = getattr(transform, name)()(lowered)
    return found
