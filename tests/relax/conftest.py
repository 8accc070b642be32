"""Helpers of the graph tests: build a function from operators, evaluate it by the interpreter."""

import numpy as np
import pytest

from weft import relax
from weft.arith.analyzer import Analyzer
from weft.ir.functor import substitute
from weft.ir.op import Op
from weft.ir.structural import assert_structural_equal
from weft.relax.ir.lattice import match_params, tensor_dims
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.script import from_source
from weft.tir.interp import run


class Evaluator:
    """Runs a graph function whose calls are all call_tir, with the reference interpreter."""

    def __init__(self, mod):
        self.mod = mod

    def __call__(self, name, *arrays):
        func = self.mod[name]
        infos = [TensorStructInfo(a.shape, str(a.dtype)) for a in arrays]
        self.symbols = match_params([p.struct_info for p in func.params], infos)
        self.values = dict(zip(func.params, arrays, strict=True))
        for block in func.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self.value(binding.value)
        return self.value(func.body.body)

    def value(self, expr):
        if isinstance(expr, relax.Var):
            return self.values[expr]
        if isinstance(expr, relax.Constant):
            return expr.data.numpy()
        if isinstance(expr, relax.Tuple):
            return tuple(self.value(field) for field in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            return self.value(expr.tuple_value)[expr.index]
        assert isinstance(expr, relax.Call), type(expr)
        assert expr.op is Op.get("relax.call_tir"), expr.op.name
        info = expr.sinfo_args[0]
        infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        outs = [np.zeros(self.shape(item), item.dtype.numpy) for item in infos]
        inputs = [np.ascontiguousarray(self.value(arg)) for arg in expr.args[1].fields]
        inputs = [
            a.reshape(np.shape(self.value(arg)))
            for a, arg in zip(inputs, expr.args[1].fields, strict=True)
        ]
        scalars = [self.number(v) for v in expr.args[2].values] if len(expr.args) > 2 else []
        run(self.mod[expr.args[0]], *inputs, *outs, *scalars)
        return tuple(outs) if isinstance(info, TupleStructInfo) else outs[0]

    def number(self, dim):
        return int(Analyzer().simplify(substitute(dim, self.symbols)))

    def shape(self, info):
        return tuple(self.number(dim) for dim in tensor_dims(info))


def round_tripped(mod):
    """The module, after a check that its text gives the same module."""
    parsed = from_source(mod.script(show_meta=True))
    assert_structural_equal(parsed, mod)
    return mod


@pytest.fixture
def evaluate():
    """``evaluate(mod, *arrays, name="main")`` on a module of call_tir's."""

    def run_module(mod, *arrays, name="main"):
        return Evaluator(mod)(name, *arrays)

    return run_module


@pytest.fixture
def build():
    """``build(make, *infos)``: a module whose main binds ``make(*params)`` in a dataflow block."""

    def make_module(make, *infos):
        params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
        bb = relax.BlockBuilder()
        with bb.function("main", params):
            with bb.dataflow():
                out = bb.emit_output(make(*params))
            bb.emit_func_output(out)
        return round_tripped(bb.get())

    return make_module


@pytest.fixture
def compute(build, evaluate):
    """``compute(make, *arrays)``: the operator expression, legalised and evaluated."""

    def run_operator(make, *arrays):
        infos = [TensorStructInfo(a.shape, str(a.dtype)) for a in arrays]
        mod = round_tripped(relax.transform.LegalizeOps()(build(make, *infos)))
        assert relax.analysis.well_formed(mod)
        return evaluate(mod, *arrays)

    return run_operator


@pytest.fixture
def infer(build):
    """``infer(make, *infos)``: the struct info of the operator expression."""

    def struct_info(make, *infos):
        return build(make, *infos)["main"].ret_struct_info

    return struct_info
