"""AttachSizeHints: kernels get the hints that follow from their calls."""

from weft.relax.transform.fusion.attach_size_hints import AttachSizeHints
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.tir.size_hints import SIZE_HINTS, size_hints_of


@I.ir_module
class Rows:
    @R.function
    def main(x: R.Tensor(("batch", 2), "float32"), y: R.Tensor(("other", 2), "float32")):
        batch = T.int64()
        other = T.int64()
        cls = Rows
        a = R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((batch, 2), "float32"))
        b = R.call_tir(cls.doubled, (y,), out_sinfo=R.Tensor((other, 2), "float32"))
        c = R.call_tir(
            cls.shifted, (a,), out_sinfo=R.Tensor((batch, 2), "float32"),
            tir_vars=R.shape([batch * 3]),
        )  # fmt: skip
        return (b, c)

    @T.prim_func(private=True)
    def doubled(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(2)))
        B = T.match_buffer(b, (n, T.int64(2)))
        for i, j in T.grid(n, T.int64(2)):
            with T.block("doubled"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vi, vj]

    @T.prim_func(private=True)
    def shifted(a: T.handle, b: T.handle, shift: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(2)))
        B = T.match_buffer(b, (n, T.int64(2)))
        for i, j in T.grid(n, T.int64(2)):
            with T.block("shifted"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.Cast("float32", shift)


def hints(mod):
    return {var.name_hint: size_hints_of(func) for var, func in mod.functions.items()}


def test_shapes_and_scalars_of_a_call_bind_the_symbols_of_its_kernel():
    mod = AttachSizeHints()(Rows.with_attr(SIZE_HINTS, {"batch": 8}))
    assert hints(mod) == {"main": {}, "doubled": {"n": 8}, "shifted": {"n": 8, "shift": 24}}


def test_the_largest_size_of_several_calls_counts():
    mod = AttachSizeHints()(Rows.with_attr(SIZE_HINTS, {"batch": 8, "other": 50}))
    assert hints(mod)["doubled"] == {"n": 50}


def test_a_module_without_hints_stays_as_it_is():
    assert AttachSizeHints()(Rows) is Rows
