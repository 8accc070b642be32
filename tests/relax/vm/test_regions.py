"""Runs of kernels in functions that are bytecode: functions of their own, which are native."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.vm.regions import outline_regions
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Choices:
    """The result has another rank in each branch, so ``main`` is bytecode."""

    @T.prim_func
    def double(p_x: T.handle, p_y: T.handle):
        n = T.int64()
        x = T.match_buffer(p_x, (n, 2))
        y = T.match_buffer(p_y, (n, 2))
        for i, j in T.grid(n, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)

    @T.prim_func
    def flat(p_x: T.handle, p_y: T.handle):
        n = T.int64()
        x = T.match_buffer(p_x, (n, 2))
        y = T.match_buffer(p_y, (n * 2,))
        for i, j in T.grid(n, 2):
            with T.block("flat"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi * 2 + vj] = x[vi, vj]

    @T.prim_func
    def add_to(p_x: T.handle, p_y: T.handle):
        n = T.int64()
        x = T.match_buffer(p_x, (n, 2))
        y = T.match_buffer(p_y, (n, 2))
        for i, j in T.grid(n, 2):
            with T.block("add_to"):
                vi, vj = T.axis.remap("SS", [i, j])
                x[vi, vj] = x[vi, vj] + y[vi, vj]

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 2), "float32")) -> R.Tensor("float32"):
        n = T.int64()
        cls = Choices
        two = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n, 2), "float32"))
        four = R.call_tir(cls.double, (two,), out_sinfo=R.Tensor((n, 2), "float32"))
        six = R.call_tir_inplace(
            cls.add_to, (two, four), inplace_indices=[0], out_sinfo=R.Tensor((n, 2), "float32")
        )
        if c:
            eight = R.call_tir(cls.double, (four,), out_sinfo=R.Tensor((n, 2), "float32"))
            line = R.call_tir(cls.flat, (eight,), out_sinfo=R.Tensor((n * 2,), "float32"))
            result: R.Tensor("float32") = line
        else:
            result: R.Tensor("float32") = six
        return result


def lowered():
    """The main function after outlining, and the functions that were added, by name."""
    added = {}

    def add(name, function):
        added[f"{name}{len(added)}"] = function
        return weft.ir.GlobalVar(f"{name}{len(added) - 1}")

    return outline_regions("main", Choices["main"], add), added


def test_a_run_is_a_function_that_gives_what_is_used_behind_it():
    main, added = lowered()
    assert len(added) == 2
    text = main.script()
    assert text.count("R.call_tir") == 0, text
    first = added["main_region0"]
    assert [param.name_hint for param in first.params] == ["x", "sizes"]
    assert isinstance(first.ret_struct_info, relax.TupleStructInfo)  # four and six
    assert len(first.ret_struct_info.fields) == 2
    symbols = set(weft.ir.functor.collect(main, weft.tir.Var))
    assert not symbols & set(weft.ir.functor.collect(first, weft.tir.Var))


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_results(mode):
    executable = relax.build(Choices, "llvm")
    functions = executable.program.functions
    assert functions["main"].native is None
    assert all(functions[name].native for name in functions if "region" in name)
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
    x = np.arange(6, dtype="float32").reshape(3, 2)
    flat = machine["main"](np.array(True), x).numpy()
    np.testing.assert_array_equal(flat, 8 * x.ravel())
    np.testing.assert_array_equal(machine["main"](np.array(False), x).numpy(), 6 * x)


@I.ir_module
class InPlace:
    """Functions that write to what they are given: to an argument, and to a view of one."""

    @T.prim_func
    def double(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        for i in range(2):
            y[i] = x[i] * T.float32(2)

    @T.prim_func
    def add_to(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        for i in range(2):
            x[i] = x[i] + y[i]

    @R.function(pure=False)
    def argument(x: R.Tensor((2,), "float32")):
        cls = InPlace
        a = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((2,), "float32"))
        b = R.call_tir_inplace(
            cls.add_to, (x, a), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32")
        )
        c = R.call_tir(cls.double, (b,), out_sinfo=R.Tensor((2,), "float32"))
        d = R.call_tir(cls.double, (c,), out_sinfo=R.Tensor((2,), "float32"))
        return d

    @R.function(pure=False)
    def view(x: R.Tensor((2, 1), "float32"), y: R.Tensor((2,), "float32")):
        cls = InPlace
        a = R.call_tir(cls.double, (y,), out_sinfo=R.Tensor((2,), "float32"))
        line = R.reshape(x, R.shape([2]))
        b = R.call_tir_inplace(
            cls.add_to, (line, a), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32")
        )
        return b


def test_what_writes_to_an_argument_stays_outside():
    added = []

    def add(name, function):
        added.append(function)
        return weft.ir.GlobalVar(name)

    main = outline_regions("main", InPlace["argument"], add)
    assert main.script().count("call_tir_inplace") == 1
    assert len(added) == 1  # c and d; a alone is no run


@I.ir_module
class Views:
    """A loop over unknown rows is bytecode; its kernels have views of each other's tensors."""

    @T.prim_func
    def both(p_x: T.handle, p_y: T.handle, p_z: T.handle):
        n = T.int64()
        x = T.match_buffer(p_x, (n, 2))
        y = T.match_buffer(p_y, (n, 2))
        z = T.match_buffer(p_z, (n, 2))
        for i, j in T.grid(n, 2):
            with T.block("both"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2)
                z[vi, vj] = x[vi, vj] + T.float32(1)

    @T.prim_func
    def add_to(p_x: T.handle, p_y: T.handle):
        n = T.int64()
        x = T.match_buffer(p_x, (n,))
        y = T.match_buffer(p_y, (n,))
        for i in range(n):
            with T.block("add_to"):
                vi = T.axis.spatial(n, i)
                x[vi] = x[vi] + y[vi]

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 2), "float32")) -> R.Tensor("float32"):
        n, m = T.int64(), T.int64()
        cls = Views
        pair = R.call_tir(
            cls.both, (x,), out_sinfo=[R.Tensor((n, 2), "float32"), R.Tensor((n, 2), "float32")]
        )
        two = pair[0]
        more = pair[1]
        line = R.reshape(two, R.shape([n * 2]))
        same = R.match_cast(more, R.Tensor((T.max(n, 1), 2), "float32"))
        again = R.match_cast(same, R.Tensor((n, 2), "float32"))
        flat = R.reshape(again, R.shape([n * 2]))
        total = R.call_tir_inplace(
            cls.add_to, (line, flat), inplace_indices=[0], out_sinfo=R.Tensor((n * 2,), "float32")
        )
        named = R.match_cast(total, R.Tensor((m,), "float32"))
        whole = R.call_tir_inplace(
            cls.add_to, (named, flat), inplace_indices=[0], out_sinfo=R.Tensor((m,), "float32")
        )
        if c:
            result: R.Tensor("float32") = whole
        else:
            result: R.Tensor("float32") = again
        return result


def test_what_only_a_run_in_a_branch_reads_is_no_result_of_it():
    _, added = lowered()
    infos = [function.ret_struct_info for function in added.values()]
    assert [isinstance(info, relax.TupleStructInfo) for info in infos] == [True, False]


def test_views_between_kernels_belong_to_a_run():
    """A comparison that defines a symbol ends it; behind that, the tensor comes from outside."""
    added = []

    def add(name, function):
        added.append(function)
        return weft.ir.GlobalVar(name)

    main = outline_regions("main", Views["main"], add)
    [region] = added
    assert region.script().count("R.match_cast") == 2
    assert region.script().count("R.reshape") == 2
    assert main.script().count("R.match_cast") == 1
    assert main.script().count("call_tir_inplace") == 1


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("rows", [1, 3])
def test_results_of_views(rows, mode):
    executable = relax.build(Views, "llvm")
    assert executable.program.functions["main"].native is None
    assert executable.program.functions["main_region"].native
    machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
    x = np.arange(rows * 2, dtype="float32").reshape(rows, 2)
    whole = machine["main"](np.array(True), x).numpy()
    np.testing.assert_array_equal(whole, (4 * x + 2).ravel())
    np.testing.assert_array_equal(machine["main"](np.array(False), x).numpy(), x + 1)


def test_a_view_of_a_tensor_from_outside_is_not_written_to():
    main = outline_regions("main", InPlace["view"], lambda name, function: pytest.fail(name))
    assert main.same_as(InPlace["view"]) or main.script() == InPlace["view"].script()
