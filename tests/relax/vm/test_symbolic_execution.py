"""Symbolic shapes through every route: one artefact at many sizes, natively, as bytecode, and
lowered by ``default_build``; all three give the same results and refuse the same arguments."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

SIZES = (0, 1, 2, 5, 16)
WAYS = ("native", "bytecode", "default_build")


def machine(mod, way):
    """A machine that runs a module one way; natively, every function has a native form."""
    pipeline = "default_build" if way == "default_build" else "default"
    executable = relax.build(mod, relax_pipeline=pipeline)
    if way == "native":
        for function in executable.program.functions.values():
            assert function.native is not None, f"{function.name}: {function.why_not_native}"
    mode = "native" if way == "native" else "bytecode"
    return relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)


def ramp(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def plain(value):
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@I.ir_module
class Expressions:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            longer = R.concat((x, R.zeros(R.shape([1]), "float32")), axis=0)
            four = R.tile(x, [4])
            half = R.strided_slice(x, [0], [0], [n // 2], [1])
            grid = R.matmul(R.reshape(longer, R.shape([n + 1, 1])), R.reshape(four, (1, n * 4)))
            R.output(longer, four, half, grid)
        return (longer, four, half, grid)


@pytest.fixture(scope="module")
def expressions():
    return {way: machine(Expressions, way) for way in WAYS}


@pytest.mark.parametrize("n", SIZES)
def test_extents_that_are_expressions(expressions, way, n):
    x = ramp(n)
    longer, four, half, grid = plain(expressions[way]["main"](x))
    np.testing.assert_array_equal(longer, np.append(x, np.float32(0)))
    np.testing.assert_array_equal(four, np.tile(x, 4))
    np.testing.assert_array_equal(half, x[: n // 2])
    np.testing.assert_array_equal(grid, np.outer(longer, four))


@I.ir_module
class Parameters:
    @R.function
    def main(
        a: R.Tensor(("n + 1",), "float32"),
        b: R.Tensor(("n * 4",), "float32"),
        c: R.Tensor(("n // 2",), "float32"),
        x: R.Tensor(("n",), "float32"),
    ):
        y = R.concat((a, b, c, x), axis=0)
        return y


@pytest.mark.parametrize("n", SIZES)
def test_parameters_that_are_expressions_are_held_against_the_symbol(way, n):
    run = machine(Parameters, way)["main"]
    sizes = [n + 1, n * 4, n // 2, n]
    arrays = [ramp(size) for size in sizes]
    np.testing.assert_array_equal(run(*arrays).numpy(), np.concatenate(arrays))
    for wrong in range(3):
        changed = [*arrays]
        changed[wrong] = ramp(sizes[wrong] + 1)
        with pytest.raises(ValueError, match=str(sizes[wrong] + 1)):
            run(*changed)


@I.ir_module
class Kernels:
    @T.prim_func(private=True)
    def shifted(a: T.handle, b: T.handle):
        T.func_attr({"tir.noalias": T.bool(True)})
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n + T.int64(1),), "float32")
        for i in range(n + T.int64(1)):
            with T.block("B"):
                vi = T.axis.spatial(n + T.int64(1), i)
                B[vi] = T.if_then_else(vi < n, A[T.min(vi, n - T.int64(1))], T.float32(7))

    @T.prim_func(private=True)
    def rows(b: T.handle, n: T.int64, k: T.int64):
        T.func_attr({"tir.noalias": T.bool(True)})
        B = T.match_buffer(b, (n // T.int64(2), k), "float32")
        for i, j in T.grid(n // T.int64(2), k):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.Cast("float32", vi * k + vj)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), s: R.Shape(("k",))):
        cls = Kernels
        n, k = T.int64(), T.int64()
        with R.dataflow():
            y = R.call_tir(cls.shifted, (x,), out_sinfo=R.Tensor((n + 1,), "float32"))
            z = R.call_tir(
                cls.rows, R.tuple(), out_sinfo=R.Tensor((n // 2, k), "float32"),
                tir_vars=R.shape([n, k]),
            )  # fmt: skip
            w = R.call_tir(cls.shifted, (y,), out_sinfo=R.Tensor((n + 2,), "float32"))
            R.output(z, w)
        return (z, w)


@pytest.mark.parametrize("n", SIZES)
def test_kernels_with_symbolic_buffers_and_scalars(way, n):
    z, w = plain(machine(Kernels, way)["main"](ramp(n), (3,)))
    np.testing.assert_array_equal(z, ramp(n // 2, 3))
    np.testing.assert_array_equal(w, np.append(ramp(n), np.float32([7, 7])))


@I.ir_module
class Functions:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        cls = Functions
        n, m = T.int64(), T.int64()
        a = cls.total(x)
        b = cls.total(R.concat((x, x), axis=1))
        c = cls.total(R.reshape(x, R.shape([n * m, 1])))
        return (a, b, c)

    @R.function
    def total(x: R.Tensor(("n", "m"), "float32")):
        n, m = T.int64(), T.int64()
        y = R.sum(x, axis=[1])
        return (y, R.shape([n, m * 2]))


@pytest.mark.parametrize("n", SIZES)
def test_functions_called_at_different_sizes(way, n):
    x = ramp(n, 3)
    (a, sa), (b, sb), (c, sc) = plain(machine(Functions, way)["main"](x))
    assert (sa, sb, sc) == ((n, 6), (n, 12), (n * 3, 2))
    np.testing.assert_array_equal(a, x.sum(1))
    np.testing.assert_array_equal(b, 2 * x.sum(1))
    np.testing.assert_array_equal(c, x.ravel())


@I.ir_module
class Casts:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor("float32", ndim=2)):
        n, m = T.int64(), T.int64()
        z = R.match_cast(y, R.Tensor((n * 2, m), "float32"))
        w = R.sum(z, axis=[0])
        s = R.shape_of(z)
        t = R.match_cast(s, R.Shape([n * 2, m]))
        return (w, t, R.shape([n + m, n // 2]))


def test_match_cast_binds_and_compares(way):
    run = machine(Casts, way)["main"]
    for n in SIZES:
        w, t, s = plain(run(ramp(n), ramp(n * 2, 3)))
        np.testing.assert_allclose(w, ramp(n * 2, 3).sum(0), rtol=1e-6)
        assert (t, s) == ((n * 2, 3), (n + 3, n // 2))
    with pytest.raises(ValueError, match=r"match_cast") as caught:
        run(ramp(3), ramp(5, 4))
    assert "6" in str(caught.value) or "n * 2" in str(caught.value)
    assert "5" in str(caught.value)


@I.ir_module
class Bounded:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        R.func_attr({"tir_var_upper_bound": {"n": 8}})
        with R.dataflow():
            a = R.exp(x)
            b = R.concat((a, a), axis=0)
            c = R.sum(b)
            R.output(c)
        return c


def test_an_upper_bound_makes_the_plan_static(way):
    run = machine(Bounded, way)["main"]
    for n in (0, 3, 8):
        x = np.linspace(0, 1, n, dtype="float32")
        np.testing.assert_allclose(run(x).numpy(), 2 * np.exp(x).sum(), rtol=1e-5)
    with pytest.raises(weft.TVMError, match="tir_var_upper_bound"):
        run(ramp(9))


@I.ir_module
class Unproved:
    @R.function
    def product(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("l", "m"), "float32")):
        z = R.matmul(x, y)
        return z

    @R.function
    def inner(x: R.Tensor(("k",), "float32"), y: R.Tensor(("l",), "float32")):
        z = R.matmul(x, y)
        return z

    @R.function
    def joined(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("l", "m"), "float32")):
        z = R.concat((x, y), axis=-2)
        return z


def test_extents_of_two_operands_that_must_be_equal_are_compared(way):
    runs = machine(Unproved, way)
    x, y = ramp(2, 3), ramp(3, 4)
    np.testing.assert_array_equal(runs["product"](x, y).numpy(), x @ y)
    assert runs["inner"](ramp(3), ramp(3)).numpy() == ramp(3) @ ramp(3)
    np.testing.assert_array_equal(runs["joined"](x, ramp(1, 3)).numpy(), np.vstack([x, ramp(1, 3)]))
    for name, lhs, rhs in [
        ("product", ramp(2, 3), ramp(4, 2)),
        ("inner", ramp(3), ramp(4)),
        ("joined", ramp(2, 3), ramp(1, 4)),
    ]:
        with pytest.raises(ValueError, match=rf"{name}: match_cast|match_cast, ") as caught:
            runs[name](lhs, rhs)
        assert "3" in str(caught.value)
        assert "4" in str(caught.value)


@I.ir_module
class Declared:
    @R.function
    def main(x: R.Tensor(("n", "m"), "int32"), y: R.Object) -> R.Tensor(("m", "n")):
        return y

    @R.function
    def outer(x: R.Tensor(("n", "m"), "int32"), y: R.Object) -> R.Tensor(("m", "n")):
        m, n = T.int64(), T.int64()
        z: R.Tensor((m, n)) = Declared.main(x, y)
        return z


@pytest.mark.parametrize("pipeline", ["default", "default_build"])
def test_a_result_is_held_against_what_is_declared(pipeline):
    vm = relax.VirtualMachine(relax.build(Declared, relax_pipeline=pipeline), weft.cpu())
    for run in (vm["main"], vm["outer"]):
        x = np.zeros((1, 2), "int32")
        assert run(x, weft.nd.array(ramp(2, 1))).shape == (2, 1)
        for wrong in (ramp(1, 2), ramp(2, 1, 1)):
            with pytest.raises(ValueError, match="return|ret"):
                run(x, weft.nd.array(wrong))
