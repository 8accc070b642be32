"""The passes from call_tir to what the virtual machine interprets, one after the other."""

import textwrap

import numpy as np
import pytest

import weft
from weft import relax
from weft.driver.pipeline import RELAX_BUILD, get_pipeline
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import Sequential
from weft.relax import transform
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError, LegalizeError


@T.prim_func(private=True)
def shift(a: T.handle, m: T.int64, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in T.serial(n):
        with T.block("shift"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] + T.Cast("float32", m)


KERNEL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in T.serial(n):
            with T.block("exp"):
                v = T.axis.spatial(n, i)
                B[v] = T.exp(A[v])

"""


def module(text):
    """A module of the kernel ``exp`` and the function of the text, which calls it ``cls.exp``."""
    body = textwrap.indent(textwrap.dedent(text), "    ").replace("cls.", "Module.")
    return weft.script.from_source(KERNEL + body)


def same_after(passes, before, expected):
    found = Sequential(passes)(before)
    assert_structural_equal(found, expected)
    assert relax.analysis.well_formed(found)


def test_call_tir_gets_a_destination():
    before = module("""
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            R.func_attr({"relax.force_pure": True})
            y = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
            return y
    """)

    expected = module("""
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            R.func_attr({"relax.force_pure": True})
            alloc = R.builtin.alloc_tensor(R.shape([n]), "float32", 0)
            _: R.Tuple() = cls.exp(x, alloc)
            y: R.Tensor((n,), "float32") = alloc
            return y
    """)

    same_after([transform.CallTIRRewrite()], before, expected)


def test_call_tir_inplace_writes_into_its_argument():
    before = module("""
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            z = R.call_tir_inplace(
                cls.exp, (x, y), inplace_indices=1, out_sinfo=R.Tensor((4,), "float32")
            )
            return z
    """)

    found = transform.CallTIRRewrite()(before)["main"]
    bindings = [binding for block in found.body.blocks for binding in block.bindings]
    x, y = found.params
    assert [b.var.name_hint for b in bindings] == ["_", "z"]
    assert list(bindings[0].value.args) == [x, y]
    assert bindings[1].value is y


def test_tir_vars_become_a_dynamic_call():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with bb.function("main", [x], pure=False):
        kernel = bb.add_func(shift, "shift")
        out = bb.emit(
            relax.call_tir(kernel, (x,), relax.TensorStructInfo((4,), "float32"), tir_vars=[3])
        )
        bb.emit_func_output(out)
    text = transform.CallTIRRewrite()(bb.get())["main"].script()
    assert "R.vm.call_tir_dyn(" in text
    assert "(x, alloc, R.shape([3]))" in text


def test_an_output_without_a_shape_is_refused():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4,), "float32"))
    with bb.function("main", [x], pure=False):
        info = relax.TensorStructInfo(None, "float32", ndim=1)
        out = bb.emit(relax.call_dps_packed("f", (x,), info))
        bb.emit_func_output(out)
    with pytest.raises(IRTypeError, match="an output needs a tensor struct info with a shape"):
        transform.CallTIRRewrite()(bb.get())


def test_unplanned_tensors_get_storage():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n",), "float16")):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n, 4]), "float16", 0)
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n",), "float16")):
            n = T.int64()
            storage = R.memory.alloc_storage(R.shape([2 * (n * 4)]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(storage, 0, R.shape([n, 4]), "float16")
            return a

    found = transform.LowerAllocTensor()(Before)
    size = found["main"].body.blocks[0].bindings[0].value.args[0].values[0]
    n = found["main"].params[0].struct_info.shape[0]
    assert weft.arith.Analyzer().can_prove_equal(size, n * 8)


def test_storages_are_reused_where_lives_do_not_meet():
    before = module("""
        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            R.func_attr({"relax.force_pure": True})
            a = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _: R.Tuple() = cls.exp(x, a)
            b = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _1: R.Tuple() = cls.exp(a, b)
            c = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _2: R.Tuple() = cls.exp(b, c)
            d = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _3: R.Tuple() = cls.exp(c, d)
            return d
    """)

    expected = module("""
        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            R.func_attr({"relax.force_pure": True})
            storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
            a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            _: R.Tuple() = cls.exp(x, a)
            storage1 = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
            b = R.memory.alloc_tensor(storage1, 0, R.shape([8]), "float32")
            _1: R.Tuple() = cls.exp(a, b)
            c = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            _2: R.Tuple() = cls.exp(b, c)
            d = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)  # returned: not planned
            _3: R.Tuple() = cls.exp(c, d)
            return d
    """)

    same_after([transform.StaticPlanBlockMemory()], before, expected)


BRANCHES = """
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((8,), "float32")):
        R.func_attr({"relax.force_pure": True})
        if c:
            a = ALLOC1
            _: R.Tuple() = cls.exp(x, a)
            r = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _1: R.Tuple() = cls.exp(a, r)
            y = r
        else:
            b = ALLOC2
            _2: R.Tuple() = cls.exp(x, b)
            s = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _3: R.Tuple() = cls.exp(b, s)
            y = s
        d = ALLOC3
        _4: R.Tuple() = cls.exp(y, d)
        e = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
        _5: R.Tuple() = cls.exp(d, e)
        return e
"""


def test_branches_share_no_storage():
    """What one of them allocates is not there in the other, nor behind both."""
    before, expected = BRANCHES, BRANCHES
    for index in (1, 2, 3):
        indent = " " * (8 if index == 3 else 12)
        before = before.replace(
            f"ALLOC{index}", 'R.builtin.alloc_tensor(R.shape([8]), "float32", 0)'
        )
        expected = expected.replace(
            f"{'abd'[index - 1]} = ALLOC{index}",
            f'storage{index} = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")\n'
            f"{indent}{'abd'[index - 1]} = "
            f'R.memory.alloc_tensor(storage{index}, 0, R.shape([8]), "float32")',
        )
    same_after([transform.StaticPlanBlockMemory()], module(before), module(expected))


def storages_of(func):
    return [
        binding.value
        for block in func.body.blocks
        for binding in block.bindings
        if "memory.alloc_storage" in str(getattr(binding.value, "op", ""))
    ]


def test_a_storage_grows_for_a_larger_tensor_of_its_dtype():
    before = module("""
        @R.function(pure=False)
        def main(x: R.Tensor((8,), "float32")):
            a = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _: R.Tuple() = cls.exp(x, a)
            b = R.builtin.alloc_tensor(R.shape([16]), "float32", 0)
            _1: R.Tuple() = cls.exp(b, b)
            c = R.builtin.alloc_tensor(R.shape([16 * 8]), "int32", 0)
            return R.tuple()
    """)

    main = transform.StaticPlanBlockMemory()(before)["main"]
    sizes = [(int(s.args[0].values[0]), str(s.args[3].value)) for s in storages_of(main)]
    assert sizes == [(64, "float32"), (512, "int32")]


def test_what_a_foreign_function_returns_keeps_its_arguments_alive():
    before = module("""
        @R.function(pure=False)
        def main(x: R.Tensor((8,), "float32")):
            a = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _: R.Tuple() = cls.exp(x, a)
            alias = R.call_packed("test.same", a, sinfo_args=R.Tensor((8,), "float32"))
            b = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _1: R.Tuple() = cls.exp(alias, b)
            c = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _2: R.Tuple() = cls.exp(b, c)
            return R.tuple()
    """)

    assert len(storages_of(transform.StaticPlanBlockMemory()(before)["main"])) == 2


def test_upper_bounds_make_sizes_static():
    before = module("""
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n * 2",), "float32"):
            n = T.int64()
            R.func_attr({"relax.force_pure": True, "tir_var_upper_bound": {"n": 10}})
            a = R.builtin.alloc_tensor(R.shape([n * 2]), "float32", 0)
            _: R.Tuple() = cls.exp(x, a)
            b = R.builtin.alloc_tensor(R.shape([n * 2]), "float32", 0)
            _1: R.Tuple() = cls.exp(a, b)
            return b
    """)

    main = transform.StaticPlanBlockMemory()(before)["main"]
    assert [int(s.args[0].values[0]) for s in storages_of(main)] == [80]
    wide = before.with_(functions={
        "main": before["main"].with_attr("relax.memory_plan_dynamic_func_output", True)
    })  # fmt: skip
    main = transform.StaticPlanBlockMemory()(wide)["main"]
    assert [int(s.args[0].values[0]) for s in storages_of(main)] == [80, 80]


@pytest.mark.parametrize("bound", [{"n": [4]}, {"n": "four"}, [("n", 4)]])
def test_a_bound_that_is_no_number_is_refused(bound):
    before = module("""
        @R.function(pure=False)
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            a = R.builtin.alloc_tensor(R.shape([n]), "float32", 0)
            _: R.Tuple() = cls.exp(x, a)
            return x
    """)

    func = before["main"].with_attr("tir_var_upper_bound", bound)
    mod = weft.IRModule({"main": func})
    with pytest.raises(IRTypeError, match="tir_var_upper_bound: expected"):
        transform.StaticPlanBlockMemory()(mod)


def test_values_are_killed_after_their_last_use():
    before = module("""
        @R.function(pure=False)
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
            a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            _: R.Tuple() = cls.exp(x, a)
            renamed = a
            b = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _1: R.Tuple() = cls.exp(renamed, b)
            return b
    """)

    expected = module("""
        @R.function(pure=False)
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            storage = R.memory.alloc_storage(R.shape([32]), 0, "global", "float32")
            a = R.memory.alloc_tensor(storage, 0, R.shape([8]), "float32")
            _k: R.Tuple() = R.memory.kill_storage(storage)
            _: R.Tuple() = cls.exp(x, a)
            b = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            _1: R.Tuple() = cls.exp(a, b)
            _k1: R.Tuple() = R.memory.kill_tensor(a)
            return b
    """)

    same_after([transform.KillAfterLastUse()], before, expected)


def test_allocations_must_be_lowered_before_builtins():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((8,), "float32")):
            a = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
            return a

    with pytest.raises(LegalizeError, match=r"run relax\.transform\.LowerAllocTensor first"):
        transform.VMBuiltinLower()(Before)


def test_scalar_expressions_become_kernels():
    @I.ir_module
    class Before:
        @R.function
        def main(s: R.Shape(["n"])) -> R.Prim("int64"):
            n = T.int64()
            y = R.prim_value(n * 4 + 1)
            return y

    found = transform.ComputePrimValue()(Before)
    kernel = found["compute_symbolic_expr"]
    assert kernel.attrs["tir.is_host_func"]
    executable = relax.build(found, "llvm", pipeline=None)
    assert relax.VirtualMachine(executable, weft.cpu())["main"]((5,)) == 21


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.exp(R.matmul(a, w))
            c = R.reshape(b, (n * m,))
            d = R.concat([c, c], 0)
            e = R.sum(b, axis=1)
            R.output(d, e)
        return d, (e, x)


def test_default_build_computes_what_the_host_function_does():
    generator = np.random.default_rng(5)
    machines = [
        relax.VirtualMachine(relax.build(Model, "llvm", pipeline=name), weft.cpu())
        for name in ("default", "default_build")
    ]
    for n, m in [(3, 5), (1, 1), (0, 2), (7, 3)]:
        x = generator.standard_normal((n, 4)).astype("float32")
        w = generator.standard_normal((4, m)).astype("float32")
        native, lowered = (machine["main"](x, w) for machine in machines)
        assert np.array_equal(native[0].numpy(), lowered[0].numpy())
        assert np.array_equal(native[1][0].numpy(), lowered[1][0].numpy())
        assert np.array_equal(lowered[1][1].numpy(), x)
        expected = np.exp(np.maximum(x, 0) @ w)
        assert np.allclose(lowered[1][0].numpy(), expected.sum(1), rtol=1e-4)


def test_every_step_of_default_build_is_well_formed_text():
    mod = Model
    for step in RELAX_BUILD:
        mod = step(mod)
        assert relax.analysis.well_formed(mod), step.info.name
        again = weft.script.from_source(mod.script(show_meta=True))
        assert_structural_equal(again, mod)


def test_a_tensor_does_not_reach_past_its_storage():
    library = {n: weft.get_global_func(f"vm.builtin.alloc_{n}") for n in ("storage", "tensor")}
    storage = library["storage"]((32,))
    inside = library["tensor"](storage, 8, (2, 3), "float32")
    inside.copyfrom(np.ones((2, 3), "float32"))
    assert inside.shape == (2, 3)
    with pytest.raises(IRValueError, match=r"takes 36 bytes at offset 0, but the storage has 32"):
        library["tensor"](storage, 0, (9,), "float32")
    with pytest.raises(IRValueError, match=r"extents of 0 or more, got \(-1,\)"):
        library["tensor"](storage, 0, (-1,), "float32")


def test_pipelines_by_name():
    assert get_pipeline("default_build").passes == RELAX_BUILD
