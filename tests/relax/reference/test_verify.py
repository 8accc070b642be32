"""``verify=True`` names the first pass, function and binding that change a result."""

import numpy as np
import pytest

import weft
from weft import relax, te
from weft.ir.op import Op
from weft.ir.transform import PassContext, Sequential, module_pass
from weft.relax import transform
from weft.relax.expr import Call
from weft.relax.expr_functor import PyExprMutator, mutator
from weft.relax.reference.verify import VerifyGraphs
from weft.relax.vm.host_calls import HOST_OPERATORS
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import VerifyError
from weft.tir.interp.limited import VerifyWarning


@I.ir_module
class Network:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(
        ("n", 3), "float32"
    ):
        with R.dataflow():
            product = R.matmul(x, w)
            positive = R.nn.relu(product)
            scaled = R.multiply(positive, R.const(2, "float32"))
            total = R.sum(scaled, axis=[1], keepdims=True)
            out = R.subtract(scaled, total)
            R.output(out)
        return out

    @R.function
    def other(x: R.Tensor((3,), "int32")) -> R.Tensor((3,), "int32"):
        y = R.add(x, x)
        return y


def replacing(old, new, name):
    """A pass that writes one operator for another."""

    @mutator
    class Replace(PyExprMutator):
        def visit_call_(self, call):
            if isinstance(call.op, Op) and call.op.name == old:
                return Call(Op.get(new), call.args, call.attrs)
            return super().visit_call_(call)

    def apply(mod, ctx):
        made = weft.IRModule(dict(mod.functions))
        for var, func in mod.functions.items():
            if isinstance(func, relax.Function):
                made[var] = Replace(mod).visit_expr(func)
        return made

    return module_pass(apply, opt_level=0, name=name)


def test_a_wrong_pass_is_named_with_the_function_and_the_binding():
    wrong = replacing("relax.nn.relu", "relax.abs", "ReluToAbs")
    expected = (
        r"pass ReluToAbs changes what main computes: \d+ of 15 elements differ, by up to .*; "
        r"the first binding that differs: positive = R.abs\(product\)"
    )
    steps = Sequential([transform.Normalize(), wrong, transform.LegalizeOps()])
    with PassContext(verify=True), pytest.raises(VerifyError, match=expected):
        steps(Network)


def test_integers_must_be_equal():
    wrong = replacing("relax.add", "relax.multiply", "AddToMultiply")
    with (
        PassContext(verify=True),
        pytest.raises(VerifyError, match="changes what other computes: . of 3 elements differ"),
    ):
        wrong(Network)


def test_the_whole_build_goes_through():
    with PassContext(verify=True):
        machine = relax.VirtualMachine(relax.build(Network, "llvm"), weft.cpu())
    x, w = np.ones((2, 4), "float32"), np.ones((4, 3), "float32")
    assert machine["main"](weft.nd.array(x), weft.nd.array(w)).numpy()[0, 0] == 8 - 24


def test_functions_with_effects_and_foreign_ones_are_left_out_and_said_so():
    @I.ir_module
    class Outside:
        @R.function(pure=False)
        def loud(x: R.Tensor((2,), "float32")):
            _ = R.print(x, format="{}")
            return x

        @R.function
        def foreign(x: R.Tensor((2,), "float32")):
            y = R.call_pure_packed("no.such.function", x, sinfo_args=R.Tensor((2,), "float32"))
            return y

        @R.function
        def faulty(x: R.Tensor((2,), "float32")):
            y = R.take(x, R.const([7], "int64"), axis=0)
            return y

    instrument = VerifyGraphs()
    with PassContext(instruments=[instrument]):
        replacing("relax.add", "relax.multiply", "Nothing")(Outside)
    assert "relax.print" in instrument.left_out["loud"]
    assert "no.such.function" in instrument.left_out["foreign"]
    assert "faults on random arguments: take: index 7" in instrument.left_out["faulty"]


def test_a_pass_that_changes_parameters_is_not_compared():
    instrument = VerifyGraphs()
    with PassContext(instruments=[instrument]):
        transform.BindParams("main", {"w": np.zeros((4, 3), "float32")})(Network)
    assert instrument.left_out == {"main": "a pass changed its parameters"}


@pytest.fixture(autouse=True)
def no_rules_left():
    """An operator with a rule of a user's own would turn the cache of models off for others."""
    yield
    if "my.triple" in Op.list_op_names():
        Op.get("my.triple").attributes.clear()


def tripling(rule):
    """``my.triple``, which LegalizeOps lowers by the rule, and a graph that calls it."""
    Op.register(
        "my.triple", override=True, FLegalize=rule, FPurity=True,
        FInferStructInfo=lambda call, builder: call.args[0].struct_info,
    )  # fmt: skip
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(Call(Op.get("my.triple"), [x])))
    return builder.get()


def times(factor):
    return lambda builder, call: builder.call_te(
        lambda x: te.compute(x.shape, lambda i: x[i] * float(factor)), call.args[0]
    )


NO_REFERENCE = (
    r"verify: no numpy reference of my\.triple: functions that call them are not compared; "
    r"relax\.register_reference\(name, function of arrays\) gives one"
)


def test_an_operator_without_reference_is_warned_of_once_and_listed():
    graph = tripling(times(2))
    instrument = VerifyGraphs()
    passes = (transform.Normalize, transform.LegalizeOps, transform.DeadCodeElimination)
    steps = Sequential([make() for make in passes])
    with (
        PassContext(instruments=[instrument]),
        pytest.warns(VerifyWarning, match=NO_REFERENCE) as said,
    ):
        steps(graph)
    assert len(said) == 1
    assert instrument.no_reference == {"my.triple"}
    assert "my.triple has no numpy reference" in instrument.left_out["main"]


def test_a_registered_reference_convicts_a_wrong_legalisation(monkeypatch):
    wrong, right = tripling(times(2)), times(3)
    # what is registered goes away again
    monkeypatch.setitem(Op.get("my.triple").attributes, "numpy", None)
    relax.register_reference("my.triple", lambda x: 3 * x, override=True)
    with (
        PassContext(verify=True),
        pytest.raises(VerifyError, match="pass LegalizeOps changes what main computes: 4 of 4"),
    ):
        transform.LegalizeOps()(wrong)
    with PassContext(verify=True):
        transform.LegalizeOps()(tripling(right))


def test_a_pass_that_introduces_an_operator_without_reference_is_not_accused():
    tripling(times(3))
    introduces = replacing("relax.nn.relu", "my.triple", "Introduce")
    instrument = VerifyGraphs()
    with PassContext(instruments=[instrument]), pytest.warns(VerifyWarning, match="my.triple"):
        introduces(Network)
    assert set(instrument.left_out) == {"main"}


def test_the_model_says_what_was_not_compared():
    with pytest.warns(VerifyWarning, match=NO_REFERENCE):
        model = weft.compile(tripling(times(3)), verify=True)
    assert model.verification.no_reference == ("my.triple",)
    assert "my.triple has no numpy reference" in model.verification.left_out["main"]
    kernel, host = model.verification.code.values()
    assert kernel == "as a whole"
    assert host.startswith("not: it hands buffers to kernels")
    assert weft.compile(Network).verification is None


def test_references_are_registered_once_and_for_operators():
    tripling(times(3))
    with pytest.raises(weft.TVMError, match="operator 'my.tripel' is not registered; did you mean"):
        relax.register_reference("my.tripel", lambda x: 3 * x)
    with pytest.raises(weft.TVMError, match="my.triple: expected a function of arrays, got int"):
        relax.register_reference("my.triple")(3)
    with pytest.raises(weft.TVMError, match="'relax.add' is already registered; pass override"):
        relax.register_reference("relax.add", lambda x, y: x - y)


def test_a_pass_after_which_a_function_faults_is_named(monkeypatch):
    def fails(x):
        raise weft.TVMError("it fails")

    Op.register(
        "my.failing", override=True,
        FInferStructInfo=lambda call, builder: call.args[0].struct_info,
    )  # fmt: skip
    monkeypatch.setitem(Op.get("my.failing").attributes, "numpy", fails)
    wrong = replacing("relax.nn.relu", "my.failing", "Unknown")
    with (
        PassContext(verify=True),
        pytest.raises(VerifyError, match="Unknown changes what main computes: it faults now: it"),
    ):
        wrong(Network)


def test_what_the_virtual_machine_gives_is_compared_as_well(monkeypatch):
    lower = HOST_OPERATORS["relax.call_tir"]

    def swapped(host, call, name):
        arguments = call.args[1].fields
        given = relax.Tuple(arguments[::-1] if len(arguments) == 2 else arguments)
        made = Call(call.op, [call.args[0], given, *call.args[2:]], call.attrs, call.sinfo_args)
        made.struct_info = call.struct_info
        return lower(host, made, name)

    monkeypatch.setitem(HOST_OPERATORS, "relax.call_tir", swapped)

    @I.ir_module
    class Difference:
        @R.function
        def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
            z = R.subtract(x, y)
            return z

    expected = "the virtual machine computes main otherwise than .*: 3 of 3 elements differ"
    with PassContext(verify=True), pytest.raises(VerifyError, match=expected):
        relax.build(Difference)


def test_symbols_keep_to_their_upper_bounds_and_tuples_are_drawn():
    seen = []

    @R.function
    def main(
        pair: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n * 2",), "bool")), s: R.Shape(["n"])
    ):
        R.func_attr({"tir_var_upper_bound": {"n": 2}})
        return pair[0]

    module_of = weft.IRModule({"main": main})
    instrument = VerifyGraphs(size=4)
    watch = module_pass(
        lambda mod, ctx: seen.extend(instrument._arguments("main", mod["main"])) or mod,
        opt_level=0, name="Watch",
    )  # fmt: skip
    with PassContext(instruments=[instrument]):
        watch(module_of)
    (floats, bools), shape = seen
    assert floats.shape == (2,)
    assert bools.shape == (4,)
    assert bools.dtype == bool
    assert shape == (2,)
    assert not instrument.left_out


def test_prim_funcs_are_compared_as_well():
    @T.prim_func
    def grow(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] + T.float32(1)

    @T.prim_func
    def shrink(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] - T.float32(1)

    swap = module_pass(lambda mod, ctx: weft.IRModule({"f": shrink}), opt_level=0, name="Swap")
    with PassContext(verify=True), pytest.raises(VerifyError, match="Swap changes what f computes"):
        swap(weft.IRModule({"f": grow}))


def test_deep_tuples_infinities_and_bad_bounds_do_not_disturb():
    x = relax.Var("x", relax.TensorStructInfo([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        value = builder.emit(relax.op.divide(x, relax.const(0.0, "float32")))
        for _ in range(600):
            value = relax.Tuple([value])
        builder.emit_func_output(value)
    mod = builder.get()
    with PassContext(verify=True):
        transform.LegalizeOps()(mod)
    lying = mod["main"].with_attr("tir_var_upper_bound", ["four"])
    instrument = VerifyGraphs()
    with PassContext(instruments=[instrument]):
        replacing("relax.divide", "relax.add", "Nothing")(weft.IRModule({"main": lying}))
    assert "tir_var_upper_bound" in instrument.left_out["main"]
