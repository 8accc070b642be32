"""Reads and writes of one memory keep their order, whoever reorders bindings."""
# ruff: noqa: F841 - scripts are no plain Python

import itertools
import random

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax.analysis.dependencies import binding_dependencies
from weft.relax.analysis.written import targets
from weft.relax.transform import CombineParallelMatmul, TopologicalSort
from weft.script import ir as I
from weft.script import relax as R

ORDERS = [*itertools.product(("depth-first", "breadth-first"), ("from-inputs", "from-outputs"))]
TENSOR = relax.TensorStructInfo((4,), "float32")


@weft.register_func("test_dependencies.set1000", override=True)
def set_1000(tensor):
    tensor.copyfrom(np.full(tensor.shape, 1000, tensor.dtype))
    return tensor


@I.ir_module
class Direct:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            e = R.negative(a)
            c = R.call_inplace_packed(
                "test_dependencies.set1000",
                a,
                inplace_indices=[0],
                sinfo_args=R.Tensor((4,), "float32"),
            )
            g = R.add(e, c)
            R.output(g)
        return g


@I.ir_module
class ThroughView:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            v = R.reshape(a, (2, 2))
            e = R.negative(v)
            f = R.reshape(e, (4,))
            c = R.call_inplace_packed(
                "test_dependencies.set1000",
                a,
                inplace_indices=[0],
                sinfo_args=R.Tensor((4,), "float32"),
            )
            g = R.add(f, c)
            R.output(g)
        return g


@pytest.mark.parametrize("pipeline", ["default", "zero", "weft", "unscheduled"])
@pytest.mark.parametrize("mod", [Direct, ThroughView], ids=["direct", "view"])
def test_pipelines_read_before_the_write(mod, pipeline):
    machine = relax.VirtualMachine(relax.build(mod, "llvm", relax_pipeline=pipeline), weft.cpu())
    found = machine["main"](weft.nd.array(np.arange(4, dtype="float32"))).numpy()
    np.testing.assert_array_equal(found, [1000, 998, 996, 994])


def random_block(rng):
    """A block of sums, views, tuples and calls in place over one another's results."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", TENSOR)
    with builder.function("main", [x]):
        with builder.dataflow():
            known = [builder.emit(relax.op.add(x, x))]
            for _ in range(rng.randrange(3, 12)):
                source = rng.choice(known)
                match rng.randrange(4):
                    case 0:
                        value = relax.op.call_inplace_packed(
                            "test_dependencies.set1000",
                            source,
                            inplace_indices=[0],
                            sinfo_args=TENSOR,
                        )
                    case 1:
                        value = relax.op.reshape(source, (4,))
                    case 2:
                        whole = builder.emit(relax.Tuple([source, rng.choice(known)]))
                        value = relax.TupleGetItem(whole, rng.randrange(2))
                    case _:
                        value = relax.op.add(source, rng.choice(known))
                known.append(builder.emit(value))
            whole = builder.emit_output(relax.Tuple(known))
        builder.emit_func_output(whole)
    return builder.get()


def simulated(bindings):
    """The values of a block, run in the order of the text; views share memory."""
    values, step = {}, 1
    for binding in bindings:
        value = binding.value
        if isinstance(value, relax.Tuple):
            result = [values[item] for item in value.fields]
        elif isinstance(value, relax.TupleGetItem):
            result = values[value.tuple_value][value.index]
        elif value.op.name == "relax.call_inplace_packed":
            result = values[value.args[1]]
            result += 1000 + result % 7  # not what a second write would leave
        elif value.op.name == "relax.reshape":
            result = values[value.args[0]]
        else:
            lhs, rhs = (values.get(arg, np.arange(4.0)) for arg in value.args)
            result = lhs + 3 * rhs
        values[binding.var] = result
    return {var.name_hint: np.copy(value) for var, value in values.items()}


@pytest.mark.parametrize("seed", range(40))
def test_sorted_blocks_compute_what_the_text_says(seed):
    mod = random_block(random.Random(seed))
    wanted = simulated(mod["main"].body.blocks[0].bindings)
    for order, direction in ORDERS:
        made = TopologicalSort(order, direction)(mod)
        found = simulated(made["main"].body.blocks[0].bindings)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"{order} {direction}")


def test_a_block_without_writes_has_edges_of_uses_only():
    bindings = [
        binding
        for binding in random_block(random.Random(3))["main"].body.blocks[0].bindings
        if not targets(binding.value)
    ]
    place = {binding.var: index for index, binding in enumerate(bindings)}
    for binding, needed in zip(bindings, binding_dependencies(bindings), strict=True):
        used = collect(binding.value, relax.Var)
        assert set(needed) == {place[var] for var in used if var in place}


def test_a_write_comes_before_later_readers_and_after_earlier_ones_from_outside():
    cache, other = relax.Var("cache", TENSOR), relax.Var("other", TENSOR)
    names = [relax.DataflowVar(name, TENSOR) for name in "abc"]
    values = [
        relax.op.negative(other),
        relax.op.call_inplace_packed(
            "test_dependencies.set1000", cache, inplace_indices=[0], sinfo_args=TENSOR
        ),
        relax.op.negative(other),
    ]
    bindings = [relax.VarBinding(v, e) for v, e in zip(names, values, strict=True)]
    assert binding_dependencies(bindings) == [[], [0], [1]]


def test_products_around_a_call_in_place_are_not_combined():
    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor((4, 4), "float32"),
            w: R.Tensor((4, 4), "float32"),
            u: R.Tensor((4, 4), "float32"),
        ):
            with R.dataflow():
                a = R.add(x, x)
                q = R.matmul(a, w)
                c = R.call_inplace_packed(
                    "test_dependencies.set1000",
                    a,
                    inplace_indices=[0],
                    sinfo_args=R.Tensor((4, 4), "float32"),
                )
                k = R.matmul(a, u)
                r = (q, k, c)
                R.output(r)
            return r

    assert weft.ir.structural_equal(CombineParallelMatmul()(Module), Module)
