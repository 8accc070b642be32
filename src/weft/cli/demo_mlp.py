"""The perceptron of the course, 784-128-10, written in each of the course's ways.

Every function takes the trained parameters and returns an IRModule whose ``main`` classifies one
batch of flat images, (BATCH, 784) float32. Modules whose name ends in ``_explicit`` take the four
parameters as arguments after the images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft import relax, te
from weft.ir import IRModule
from weft.runtime.ndarray import NDArray
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

BATCH = 100
Parameters = dict[str, np.ndarray]
Kernel = Callable[..., None]
Translation = Callable[[relax.BlockBuilder, relax.Expr, Any], relax.Var]


@I.ir_module
class Script:
    """The loops by hand: two linear layers and a ReLU, and the graph that calls them."""

    @T.prim_func
    def linear0(
        X: T.Buffer((BATCH, 784), "float32"),
        W: T.Buffer((128, 784), "float32"),
        B: T.Buffer((128,), "float32"),
        Z: T.Buffer((BATCH, 128), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((BATCH, 128), "float32")
        for i, j, k in T.grid(BATCH, 128, 784):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(BATCH, 128):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @T.prim_func
    def relu0(X: T.Buffer((BATCH, 128), "float32"), Y: T.Buffer((BATCH, 128), "float32")):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(BATCH, 128):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear1(
        X: T.Buffer((BATCH, 128), "float32"),
        W: T.Buffer((10, 128), "float32"),
        B: T.Buffer((10,), "float32"),
        Z: T.Buffer((BATCH, 10), "float32"),
    ):
        T.func_attr({"tir.noalias": True})
        Y = T.alloc_buffer((BATCH, 10), "float32")
        for i, j, k in T.grid(BATCH, 10, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(BATCH, 10):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((BATCH, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        cls = Script
        with R.dataflow():
            lv0 = R.call_tir(cls.linear0, (x, w0, b0), R.Tensor((BATCH, 128), "float32"))
            lv1 = R.call_tir(cls.relu0, (lv0,), R.Tensor((BATCH, 128), "float32"))
            out = R.call_tir(cls.linear1, (lv1, w1, b1), R.Tensor((BATCH, 10), "float32"))
            R.output(out)
        return out


@I.ir_module
class Library:
    """The graph alone: every kernel is a function registered at run time."""

    @R.function
    def main(
        x: R.Tensor((BATCH, 784), "float32"),
        w0: R.Tensor((128, 784), "float32"),
        b0: R.Tensor((128,), "float32"),
        w1: R.Tensor((10, 128), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        with R.dataflow():
            lv0 = R.call_dps_packed("demo.linear", (x, w0, b0), R.Tensor((BATCH, 128), "float32"))
            lv1 = R.call_dps_packed("demo.relu", (lv0,), R.Tensor((BATCH, 128), "float32"))
            out = R.call_dps_packed("demo.linear", (lv1, w1, b1), R.Tensor((BATCH, 10), "float32"))
            R.output(out)
        return out


def script_explicit(parameters: Parameters) -> IRModule:
    """TVMScript, the parameters as arguments."""
    return Script


def script_bound(parameters: Parameters) -> IRModule:
    """TVMScript with the parameters bound as constants."""
    arrays = {name: weft.nd.array(value) for name, value in parameters.items()}
    return relax.transform.BindParams("main", arrays)(Script)


def library_explicit(parameters: Parameters) -> IRModule:
    """Library functions, reached through DLPack; torch's where it is installed, else numpy's."""
    register_library()
    return Library


def te_dense(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """``x @ w.T`` as a tensor expression."""
    k = te.reduce_axis((0, x.shape[1]), name="k")
    shape = (x.shape[0], w.shape[0])
    return te.compute(shape, lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="dense")


def te_add(x: te.Tensor, b: te.Tensor) -> te.Tensor:
    """A row added to every row, as a tensor expression."""
    return te.compute(x.shape, lambda i, j: x[i, j] + b[j], name="add")


def te_relu(x: te.Tensor) -> te.Tensor:
    """``max(x, 0)`` as a tensor expression of any rank."""
    return te.compute(x.shape, lambda *i: te.max(x(*i), 0), name="relu")


def tensor_expressions(parameters: Parameters) -> IRModule:
    """Tensor expressions, put together by a BlockBuilder."""
    p = {name: relax.const(value, "float32") for name, value in parameters.items()}
    x = relax.Var("x", relax.TensorStructInfo((BATCH, 784), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit_te(te_add, builder.emit_te(te_dense, x, p["w0"]), p["b0"])
            rectified = builder.emit_te(te_relu, hidden)
            scores = builder.emit_te(te_add, builder.emit_te(te_dense, rectified, p["w1"]), p["b1"])
            out = builder.emit_output(scores)
        builder.emit_func_output(out)
    return builder.get()


def operators(parameters: Parameters) -> IRModule:
    """High-level operators; dense and add are fused, all is lowered, each group one function."""
    return fuse_and_lower(graph(parameters))


def scheduled_operators(parameters: Parameters) -> IRModule:
    """The same operators, as ``weft.compile`` compiles them."""
    return scheduled(graph(parameters))


def graph(parameters: Parameters) -> IRModule:
    """High-level operators, nothing done to them."""
    p = {name: relax.const(value, "float32") for name, value in parameters.items()}
    x = relax.Var("x", relax.TensorStructInfo((BATCH, 784), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            lv0 = builder.emit(relax.op.nn.dense(x, p["w0"]))
            lv1 = builder.emit(relax.op.add(lv0, p["b0"]))
            lv2 = builder.emit(relax.op.nn.relu(lv1))
            lv3 = builder.emit(relax.op.nn.dense(lv2, p["w1"]))
            lv4 = builder.emit(relax.op.add(lv3, p["b1"]))
            out = builder.emit_output(lv4)
        builder.emit_func_output(out)
    return builder.get()


def from_torch(parameters: Parameters) -> IRModule:
    """A PyTorch module traced by torch.fx, each node translated by an own map."""
    from torch import fx  # noqa: PLC0415 - optional

    from_module = {"Linear": map_linear, "ReLU": map_relu}
    graph = fx.symbolic_trace(torch_model(parameters))
    return from_fx(graph, (BATCH, 784), from_module)


def map_linear(builder: relax.BlockBuilder, x: relax.Expr, layer: Any) -> relax.Var:
    """A torch Linear as topi's dense and add."""
    weight, bias = (relax.const(p.detach().numpy(), "float32") for p in (layer.weight, layer.bias))
    product = builder.emit_te(weft.topi.nn.dense, x, weight)
    return builder.emit_te(weft.topi.add, product, bias)


def map_relu(builder: relax.BlockBuilder, x: relax.Expr, layer: Any) -> relax.Var:
    """A torch ReLU as topi's."""
    return builder.emit_te(weft.topi.nn.relu, x)


def from_fx(
    graph: Any, input_shape: tuple[int, ...], module_map: dict[str, Translation]
) -> IRModule:
    """Translate a chain of torch modules: ``module_map`` gives the translation of each class."""
    layers = dict(graph.named_modules())
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(input_shape, "float32"))
    values: dict[object, relax.Expr] = {}
    with builder.function("main", [x]):
        with builder.dataflow():
            for node in graph.graph.nodes:
                if node.op == "placeholder":
                    values[node] = x
                elif node.op == "call_module":
                    layer = layers[node.target]
                    translate = module_map[type(layer).__name__]
                    values[node] = translate(builder, values[node.args[0]], layer)
                elif node.op == "output":
                    out = builder.emit_output(values[node.args[0]])
        builder.emit_func_output(out)
    return builder.get()


@relax.expr_functor.mutator
class DenseAddFuser(relax.PyExprMutator):
    """Moves every ``add(dense(x, w), b)`` into a function of its own, marked Primitive."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.count = 0

    def transform(self) -> IRModule:
        """The module with every function rewritten."""
        for variable, function in self.mod.functions.items():
            if isinstance(function, relax.Function):
                updated = relax.analysis.remove_all_unused(self.visit_expr(function))
                self.builder_.update_func(variable, updated)
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """Replace the call if it is the add of a pair."""
        call = self.visit_expr_post_order(call)
        if call.op != weft.ir.Op.get("relax.add"):
            return call
        dense = self.lookup_binding(call.args[0])
        if not isinstance(dense, relax.Call) or dense.op != weft.ir.Op.get("relax.nn.dense"):
            return call
        arguments = [dense.args[0], dense.args[1], call.args[1]]
        names = ("x", "w", "b")
        x, w, b = (relax.Var(name, a.struct_info) for name, a in zip(names, arguments, strict=True))
        name = f"fused_dense_add{self.count}"
        self.count += 1
        builder = relax.BlockBuilder()
        with builder.function(name, [x, w, b]):
            with builder.dataflow():
                product = builder.emit(relax.op.nn.dense(x, w))
                out = builder.emit_output(relax.op.add(product, b))
            builder.emit_func_output(out)
        fused = builder.get()[name].with_attr("Primitive", 1)
        return relax.Call(self.builder_.add_func(fused, name), arguments)


@weft.ir.transform.module_pass(opt_level=2, name="FuseDenseAdd")
class FuseDenseAdd:
    """The pass around DenseAddFuser."""

    def transform_module(self, mod: IRModule, context: object) -> IRModule:
        """Rewrite the whole module."""
        return DenseAddFuser(mod).transform()


def fuse_and_lower(mod: IRModule) -> IRModule:
    """Group dense with add, lower operators to TensorIR, make each group one TensorIR function."""
    passes = [FuseDenseAdd(), relax.transform.LegalizeOps(), relax.transform.FuseTIR()]
    return weft.ir.transform.Sequential(passes)(mod)


def scheduled(mod: IRModule) -> IRModule:
    """weft's own passes, and its default schedules for this processor."""
    with weft.target.Target("llvm"):
        return relax.get_pipeline("weft")(mod)


def register_library() -> None:
    """Register ``demo.linear`` and ``demo.relu``: torch's where it is installed, else numpy's."""
    try:
        linear, relu = torch_library()
    except ImportError:
        linear, relu = numpy_library()
    weft.register_func("demo.linear", linear, override=True)
    weft.register_func("demo.relu", relu, override=True)


def numpy_library() -> tuple[Kernel, Kernel]:
    """A linear layer and a ReLU that write through numpy's views of the arrays."""

    def linear(x: NDArray, w: NDArray, b: NDArray, out: NDArray) -> None:
        x_, w_, b_, out_ = (np.from_dlpack(array) for array in (x, w, b, out))
        np.add(x_ @ w_.T, b_, out=out_)

    def relu(x: NDArray, out: NDArray) -> None:
        np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))

    return linear, relu


def torch_library() -> tuple[Kernel, Kernel]:
    """The same by PyTorch, on tensors that share the arrays' memory."""
    import torch  # noqa: PLC0415 - optional

    def linear(x: NDArray, w: NDArray, b: NDArray, out: NDArray) -> None:
        x_, w_, b_, out_ = (torch.from_dlpack(array) for array in (x, w, b, out))
        torch.addmm(b_, x_, w_.T, out=out_)

    def relu(x: NDArray, out: NDArray) -> None:
        torch.clamp(torch.from_dlpack(x), min=0, out=torch.from_dlpack(out))

    return linear, relu


def numpy_model(parameters: Parameters, images: np.ndarray) -> np.ndarray:
    """The same scores by numpy."""
    hidden = np.maximum(images @ parameters["w0"].T + parameters["b0"], 0)
    scores: np.ndarray = hidden @ parameters["w1"].T + parameters["b1"]
    return scores


def torch_model(parameters: Parameters) -> Any:
    """The same model in PyTorch."""
    import torch  # noqa: PLC0415 - optional

    model = torch.nn.Sequential(
        torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    )
    names = {"0.weight": "w0", "0.bias": "b0", "2.weight": "w1", "2.bias": "b1"}
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(parameters[names[name]])
    return model.eval()
