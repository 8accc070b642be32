"""NameExtents: extents of kernels become variables that the shapes of their buffers define."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax.analysis import well_formed
from weft.relax.transform import LegalizeOps
from weft.relax.transform.fusion.name_extents import NameExtents, name_extents
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

X = np.arange(14, dtype="float32").reshape(7, 2)


@I.ir_module
class Halves:
    @R.function
    def main(x: R.Tensor(("h", 2), "float32")):
        h = T.int64()
        cls = Halves
        y = R.call_tir(
            cls.even_rows, (x,), out_sinfo=R.Tensor(((h + 1) // 2, 2), "float32"),
        )  # fmt: skip
        z = R.call_tir(
            cls.doubled, (y,), out_sinfo=R.Tensor(((h + 1) // 2, 2), "float32"),
            tir_vars=R.shape([h]),
        )  # fmt: skip
        return z

    @T.prim_func(private=True)
    def even_rows(a: T.handle, b: T.handle):
        h = T.int64()
        A = T.match_buffer(a, (h, T.int64(2)))
        B = T.match_buffer(b, ((h + T.int64(1)) // T.int64(2), T.int64(2)))
        for i, j in T.grid((h + T.int64(1)) // T.int64(2), T.int64(2)):
            with T.block("even_rows"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * T.int64(2), vj]

    @T.prim_func(private=True)
    def doubled(a: T.handle, b: T.handle, h: T.int64):
        A = T.match_buffer(a, ((h + T.int64(1)) // T.int64(2), T.int64(2)))
        B = T.match_buffer(b, ((h + T.int64(1)) // T.int64(2), T.int64(2)))
        for i, j in T.grid((h + T.int64(1)) // T.int64(2), T.int64(2)):
            with T.block("doubled"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vi, vj]


def test_an_extent_that_is_an_expression_becomes_a_variable(check):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("h", 2), "float32")):
            h = T.int64()
            cls = Expected
            y = R.call_tir(
                cls.even_rows, (x,), out_sinfo=R.Tensor(((h + 1) // 2, 2), "float32"),
            )  # fmt: skip
            z = R.call_tir(cls.doubled, (y,), out_sinfo=R.Tensor(((h + 1) // 2, 2), "float32"))
            return z

        @T.prim_func(private=True)
        def even_rows(a: T.handle, b: T.handle):
            h = T.int64()
            A = T.match_buffer(a, (h, T.int64(2)))
            B = T.match_buffer(b, ((h + T.int64(1)) // T.int64(2), T.int64(2)))
            for i, j in T.grid((h + T.int64(1)) // T.int64(2), T.int64(2)):
                with T.block("even_rows"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi * T.int64(2), vj]

        @T.prim_func(private=True)
        def doubled(a: T.handle, b: T.handle):
            h_size = T.int64(is_size_var=True)
            A = T.match_buffer(a, (h_size, T.int64(2)))
            B = T.match_buffer(b, (h_size, T.int64(2)))
            for i, j in T.grid(h_size, T.int64(2)):
                with T.block("doubled"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + A[vi, vj]

    check(NameExtents(), Halves, Expected, X)
    check(NameExtents(), Expected, Expected)


def kernel(into, out, extra="h"):
    """A kernel from a buffer of ``into`` rows to one of ``out`` rows, as text."""
    scalars = "".join([f", {name}: T.int64" for name in extra.split()])
    return weft.script.from_source(f"""
# from tvm.script import tir as T
@T.prim_func(private=True)
def main(a: T.handle, b: T.handle{scalars}):
    A = T.match_buffer(a, ({into}, T.int64(2)))
    B = T.match_buffer(b, ({out}, T.int64(2)))
    for i, j in T.grid({out}, T.int64(2)):
        with T.block("copied"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[T.min(vi, {into} - T.int64(1)), vj]
""")


@pytest.mark.parametrize(
    ("into", "out", "extents", "scalars"),
    [
        # an extent with a shift: the shift moves into the other extents
        ("(h - 3) // 2 + 1", "(h - 3) // 2 + 3", ("h_size", "h_size + 2"), 0),
        # quotients of the same variable, of which the finer one gives the other
        ("(h - 3) // 2 + 1", "(h - 5) // 4 + 1", ("h_size", "h_size // 2"), 0),
        ("(h - 5) // 4 + 1", "(h - 3) // 2 + 1", ("h_size // 2", "h_size"), 0),
        ("(h - 3) // 2", "(h + 1) // 6", ("h_size", "(h_size + 2) // 3"), 0),
        # nothing but a sum: the variable itself can be written with the extent
        ("h + 1", "h // 2", ("h_size", "(h_size + 1) // 2 - 1"), 0),
        ("h * 2", "h * 2 + 1", ("h_size", "h_size + 1"), 0),
        # one extent cannot be written with the other
        ("(h - 3) // 2", "(h - 4) // 2", ("(h - 3) // 2", "(h - 4) // 2"), 1),
        ("(h - 3) // 2", "h // 3", ("(h - 3) // 2", "h // 3"), 1),
        ("h * 2", "h * 3", ("h * 2", "h * 3"), 1),
        ("(h - 3) // 2", "7 - h", ("(h - 3) // 2", "7 - h"), 1),
    ],
)
def test_other_extents_are_written_with_it(into, out, extents, scalars):
    before = kernel(into, out)
    after = name_extents(before)
    shapes = [after.buffer_map[param].shape[0] for param in after.params[:2]]
    assert tuple(str(extent).replace("T.int64(", "").replace(")", "") for extent in shapes) == (
        tuple(extent.replace(")", "") for extent in extents)
    )
    assert len(after.params) == 2 + scalars
    assert (after is before) == bool(scalars)


def test_a_variable_that_the_body_needs_stays():
    @T.prim_func(private=True)
    def rows(b: T.handle, h: T.int64):
        B = T.match_buffer(b, (h // T.int64(2),))
        for i in range(h // T.int64(2)):
            with T.block("rows"):
                vi = T.axis.spatial(h // T.int64(2), i)
                B[vi] = T.cast(h, "float32")

    assert name_extents(rows) is rows


def test_of_two_variables_each_goes_by_itself():
    both = kernel("h // 2", "h // 2 + w // 2", "h w")
    after = name_extents(both)
    assert [param.name for param in after.params] == ["a", "b", "w"]


def test_integers_that_are_loaded_have_the_buffers_that_are_stored():
    """A sum of loaded integers mentions the variable only by the shapes of its buffers."""

    @T.prim_func(private=True)
    def sums(a: T.handle, b: T.handle, h: T.int64):
        A = T.match_buffer(a, (h + T.int64(1),), "int32")
        B = T.match_buffer(b, (h + T.int64(1),), "int64")
        for i in range(h + T.int64(1)):
            with T.block("sums"):
                vi = T.axis.spatial(h + T.int64(1), i)
                B[vi] = T.Cast("int64", A[vi] + A[h - vi]) + h

    @T.prim_func(private=True)
    def expected(a: T.handle, b: T.handle):
        h_size = T.int64(is_size_var=True)
        A = T.match_buffer(a, (h_size,), "int32")
        B = T.match_buffer(b, (h_size,), "int64")
        for i in range(h_size):
            with T.block("sums"):
                vi = T.axis.spatial(h_size, i)
                B[vi] = T.Cast("int64", A[vi] + A[h_size - vi - T.int64(1)]) + (h_size - T.int64(1))

    assert_structural_equal(name_extents(sums), expected)


def test_a_kernel_that_is_no_callee_of_call_tir_stays():
    public = Halves["doubled"].with_attr("global_symbol", "doubled")
    module = weft.IRModule({**Halves.functions, Halves.get_global_var("doubled"): public})
    assert NameExtents()(module) is module


@pytest.mark.parametrize("size", [3, 4, 7, 8, 13])
def test_pools_and_convolutions_of_any_size(size):
    height, width = weft.tir.Var("h", "int64"), weft.tir.Var("w", "int64")
    x = relax.Var("x", relax.TensorStructInfo((1, 3, height, width), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            weight = relax.const(np.ones((2, 3, 3, 3), "float32"))
            data = builder.emit(relax.op.nn.conv2d(x, weight, strides=2, padding=1))
            data = builder.emit(relax.op.nn.relu(data))
            pixel = relax.const(np.ones((2, 2, 1, 1), "float32"))
            data = builder.emit(relax.op.nn.conv2d(data, pixel))
            out = builder.emit_output(relax.op.nn.max_pool2d(data, (2, 2), (2, 2), ceil_mode=True))
        builder.emit_func_output(out)
    before = LegalizeOps()(builder.get())
    after = NameExtents()(before)
    assert well_formed(after)
    assert all(len(func.params) == len(func.buffer_map) for func in kernels_of(after))
    image = np.random.default_rng(size).standard_normal((1, 3, size, 5), np.float32)
    results = [
        relax.VirtualMachine(weft.relax.build(module), weft.cpu())["main"](weft.nd.array(image))
        for module in (before, after)
    ]
    np.testing.assert_array_equal(results[1].numpy(), results[0].numpy())


def kernels_of(module):
    return [func for func in module.functions.values() if isinstance(func, weft.tir.PrimFunc)]
