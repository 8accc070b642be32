"""InsertChecks: what is tested, what is proved, which arms run, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.script import ir as I
from weft.script import tir as T
from weft.support.errors import IRIndexError, RuntimeFault
from weft.tir import expr as e
from weft.tir import interp
from weft.tir.buffer import BufferLoad
from weft.tir.expr import is_call
from weft.tir.lowering.insert_checks import InsertChecks
from weft.tir.lowering.pipeline import lower_meaning


def after(func, tests=True):
    return InsertChecks(tests)(IRModule({"main": func}))["main"]


def checks_in(func):
    return [call for call in collect(func.body, e.Call) if is_call(call, "checked")]


def test_a_place_that_is_read_is_tested_before_the_element_is(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = a[b[i]]

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = T.checked(
                a[b[i]], T.bitwise_and(0 <= b[i], b[i] < 8), "index",
                "index {a} is out of bounds for buffer a of extent {b}", b[i], 8,
            )  # fmt: skip

    becomes(InsertChecks(), before, expected)


def test_a_value_is_stored_where_its_place_was_tested(becomes):
    @T.prim_func
    def before(a: T.Buffer((8, 8), "int32"), b: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            a[b[i], n] = 7

    @T.prim_func
    def expected(a: T.Buffer((8, 8), "int32"), b: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            a[b[i], n] = T.checked(
                T.checked(
                    7, T.bitwise_and(0 <= n, n < 8), "index",
                    "index {a} is out of bounds for buffer a on axis 1 of extent {b}", n, 8,
                ),
                T.bitwise_and(0 <= b[i], b[i] < 8), "index",
                "index {a} is out of bounds for buffer a on axis 0 of extent {b}", b[i], 8,
            )  # fmt: skip

    module = InsertChecks()(IRModule({"main": before}))
    weft.ir.assert_structural_equal(module["main"], expected.with_attr("global_symbol", "before"))


def test_only_what_is_not_proved_is_tested(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = a[i] + a[i // 2]
            if a[i] < 8:
                a[a[i] % 4] = 1

    func = after(before)
    assert func.body is before.body


def test_places_by_quotients_of_a_loop_are_proved():
    """A loop over joined axes finds its places by divisions by symbols."""

    @T.prim_func
    def joined(p: T.handle, q: T.handle):
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, 12, t, 5), "float32")
        b = T.match_buffer(q, (n, 12, t, 5), "float32")
        for i in range(n * t * 12):
            with T.LetStmt(i // (t * 12)) as quotient:
                with T.LetStmt(i % (t * 12)) as rest:
                    with T.LetStmt(rest // t) as row:
                        with T.LetStmt(i % t) as column:
                            for k in range(5):
                                b[quotient, row, column, k] = a[quotient, row, column, k]

    assert not checks_in(after(joined))


@pytest.mark.parametrize("beyond", [0, 1])
def test_places_by_quotients_by_numbers_are_proved(beyond):
    """A loop over tiles of all images; with one iteration more the last image is outside."""

    @T.prim_func
    def tiles(p: T.handle, q: T.handle):
        n = T.int64()
        a = T.match_buffer(p, (n, 6, 7, 14), "float32")
        b = T.match_buffer(q, (n, 6, 7, 14), "float32")
        for i in T.parallel(n * 42 + beyond):
            for k in range(14):
                b[i // 42, i % 42 // 7, i % 7, k] = a[i // 42, i % 42 // 7, i % 7, k]

    tests = [check for check in checks_in(after(tiles)) if "out of bounds" in str(check.args[3])]
    assert len(tests) == 2 * beyond


@pytest.mark.parametrize("case", ["another divisor", "a longer loop", "a negative symbol"])
def test_other_quotients_are_tested(case):
    @T.prim_func
    def func(p: T.handle, m: T.int64):
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, t), "float32")
        for i in range(n * m if case == "a negative symbol" else n * t + (case == "a longer loop")):
            with T.LetStmt(i // (m if case != "a longer loop" else t)) as quotient:
                a[quotient, 0] = T.float32(0)

    texts = [str(check.args[3]) for check in checks_in(after(func))]
    assert len([text for text in texts if "out of bounds" in text and "axis 0" in text]) == 1
    # Where the loop runs, no factor of its extent is 0. The other extents are not such products.
    assert len([text for text in texts if "axis 1" in text]) == (case != "another divisor")


@pytest.mark.parametrize("loop", ["over the first axis", "over another number"])
def test_a_loop_over_one_axis_makes_the_size_of_the_others_exact(loop):
    """``n * h * w`` elements are in memory. Where n is at least 1, so are ``h * w``."""

    @T.prim_func
    def func(p: T.handle, m: T.int64):
        n, h, w = T.int64(), T.int64(), T.int64()
        a = T.match_buffer(p, (n, h, w), "float32")
        flat = T.Buffer((n, h * w), "float32", data=a.data)
        for i in range(n if loop == "over the first axis" else m):
            if i < n:
                for j in range(h * w):
                    flat[i, j] = T.float32(0)

    texts = [str(check.args[3]) for check in checks_in(after(func))]
    wanted = [text for text in texts if "out of bounds" in text or "does not fit" in text]
    assert bool(wanted) == (loop != "over the first axis")


@pytest.mark.parametrize("rows", [14, 15])
def test_the_last_tile_is_proved_to_end_at_the_extent(rows):
    """A condition narrows the interval of its variable; each arm of a minimum is a bound."""

    @T.prim_func
    def func(p: T.handle):
        n = T.int64()
        a = T.match_buffer(p, (n,), "float32")
        if n >= 14:
            for i in range((n + 13) // 14):
                with T.LetStmt(T.min(i * 14, n - 14)) as first:
                    for row in T.unroll(rows):
                        a[first + row] = T.float32(0)

    texts = [str(check.args[3]) for check in checks_in(after(func))]
    assert bool([text for text in texts if "out of bounds" in text]) == (rows > 14)


def test_a_product_of_symbols_is_exact_if_it_is_the_size_of_a_parameter():
    """Then tiles of the joined axes are proved to lie inside; else the product is tested."""

    def tests_of(shape):
        @T.prim_func
        def func(p: T.handle, q: T.handle):
            n, t = T.int64(), T.int64()
            T.match_buffer(p, shape(n, t), "float32")
            T.match_buffer(q, (n + t, n, t), "float32")
            for i in range(n * t):
                T.evaluate(i)

        return len(checks_in(after(func)))

    assert tests_of(lambda n, t: (n, t)) == 0
    assert tests_of(lambda n, t: (n * t, 4)) == 0
    assert tests_of(lambda n, t: (n, 3, t, t)) == 0
    assert tests_of(lambda n, t: (n, t, 0)) == 1
    assert tests_of(lambda n, t: (n, t + 1)) == 1
    assert tests_of(lambda n, t: (n, n)) == 1


def test_a_vector_is_tested_at_its_ends(becomes):
    @T.prim_func
    def before(a: T.Buffer((64,), "int32"), b: T.Buffer((4,), "int32")):
        b[T.Ramp(0, 1, 4)] = a[T.Ramp(b[0] * 4, 2, 4)]

    @T.prim_func
    def expected(a: T.Buffer((64,), "int32"), b: T.Buffer((4,), "int32")):
        b[T.Ramp(0, 1, 4)] = T.checked(
            a[T.Ramp(b[0] * 4, 2, 4)],
            T.bitwise_and(0 <= b[0] * 4, T.Cast("int64", b[0] * 4) + T.int64(6) < T.int64(64)),
            "index", "index {a} is out of bounds for buffer a of extent {b}",
            T.Cast("int64", b[0] * 4) + T.int64(6), 64,
        )  # fmt: skip

    becomes(InsertChecks(), before, expected)


def test_lanes_that_nobody_wants_are_masked(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(2):
            b[T.Ramp(i * 4, 1, 4)] = T.Select(
                b[T.Ramp(i * 4, 1, 4)] < T.Broadcast(8, 4), a[b[T.Ramp(i * 4, 1, 4)]],
                T.Broadcast(-1, 4),
            )  # fmt: skip

    func = after(before)
    load = next(
        node for node in collect(func.body, BufferLoad)
        if node.buffer.name == "a"
    )  # fmt: skip
    (named,) = collect(func.body, e.Let)
    assert load.predicate is named.var
    condition = checks_in(func)[0].args[1]
    assert is_call(condition, "bitwise_or")
    assert condition.args[1].a is named.var
    a, b = np.arange(8, dtype="int32") * 10, np.array([1, 100, 7, 2**31 - 1] * 2, "int32")
    for run in (lambda *arrays: interp.run(func, *arrays), weft.build(before)):
        out = b.copy()
        run(a, out)
        np.testing.assert_array_equal(out, [10, -1, 70, -1] * 2)
        with pytest.raises((RuntimeFault, IndexError), match="index -3 is out of bounds"):
            run(a, np.array([1, -3, 2, 3] * 2, "int32"))


def test_a_mask_that_reads_by_a_quotient_is_computed_once():
    """Where no lane is wanted, the divisor of an index in the mask must not become 1."""

    @T.prim_func
    def greatest(p: T.handle, o: T.Buffer((4,), "float32")):
        n = T.int64()
        x = T.match_buffer(p, (3, n, 4), "float32")
        for i in range(n * T.int64(3)):
            o[0:4] = T.Select(o[0:4] < x[i // n, i % n, 0:4], x[i // n, i % n, 0:4], o[0:4])

    x = np.random.default_rng(0).random((3, 5, 4), "float32")
    lowered = lower_meaning()(IRModule({"main": greatest}))["main"]
    for run in (lambda *arrays: interp.run(lowered, *arrays), weft.build(greatest)):
        o = np.zeros(4, "float32")
        run(x, o)
        np.testing.assert_array_equal(o, x.max((0, 1)))


def test_an_arm_that_may_fault_runs_alone(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = T.Select(i < 7, a[i + 1], T.Select(i > 3, a[i], i))

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            b[i] = T.if_then_else(i < 7, a[i + 1], T.Select(i > 3, a[i], i))

    becomes(InsertChecks(), before, expected)


def test_the_right_side_of_a_condition_runs_after_the_left(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            if i > 0 and a[i - 1] > 0:
                b[i] = 1
            if i == 0 or a[i - 1] > 0:
                b[i] = b[i] + 2
            if i > 2 and a[i] > 0:
                b[i] = b[i] + 4

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        for i in range(8):
            if T.if_then_else(i > 0, a[i - 1] > 0, T.bool(False)):
                b[i] = 1
            if T.if_then_else(i == 0, T.bool(True), T.checked(
                a[i - 1], 0 <= i - 1, "index",
                "index {a} is out of bounds for buffer a of extent {b}", i - 1, 8,
            ) > 0):  # fmt: skip
                b[i] = b[i] + 2
            if i > 2 and a[i] > 0:
                b[i] = b[i] + 4

    becomes(InsertChecks(), before, expected)


def test_cheap_arms_both_run(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = T.if_then_else(i < 4, i + 1, i * 2)
            a[i] = T.if_then_else(i < 4, a[i] + 1, i)

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32")):
        for i in range(8):
            a[i] = T.Select(i < 4, i + 1, i * 2)
            a[i] = T.if_then_else(i < 4, a[i] + 1, i)

    becomes(InsertChecks(), before, expected)


def test_an_element_whose_address_is_passed_is_not_read():
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), b: T.Buffer((8,), "int32")):
        T.evaluate(T.call_extern("int32", "f", T.address_of(a[8]), T.address_of(a[b[0]])))
        T.evaluate(T.call_extern("int32", "f", a[b[1]]))

    (value,) = checks_in(after(before))
    assert value.args[0].indices[0].indices[0].value == 1


def test_an_address_in_a_view_is_an_argument_whose_memory_is_tested():
    """The test of the view stands around the address; the argument behind it is tested too."""

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def fill(x: T.handle, y: T.handle, n: T.int64):
            X = T.match_buffer(x, (n * T.int64(2),), "int64")
            Y = T.match_buffer(y, (4,), "int64")
            for i in range(n * T.int64(2)):
                X[i] = Y[0]

        @T.prim_func
        def main(a: T.handle, n: T.int64):
            A = T.match_buffer(a, (16,), "int64")
            V = T.decl_buffer((n, n), "int64", data=A.data, strides=[n, 1])
            Module.fill(T.address_of(V[n - 2, n - 1]), A, n)

    built = weft.build(Module)
    values = weft.nd.array(np.arange(16, dtype="int64"))
    built["main"](values, 3)
    np.testing.assert_array_equal(values.numpy()[4:12], [4, 0, 0, 0, 0, 0, 0, 11])
    with pytest.raises(RuntimeFault, match="V"):
        built["main"](values, 5)
    with pytest.raises(RuntimeFault, match="fill: argument X"):
        built["main"](weft.nd.array(np.arange(16, dtype="int64")), 4)


def test_a_bound_of_a_loop_that_is_read_is_tested():
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(a[n]):
            a[0] = i

    func = after(before)
    assert len(checks_in(func)) == 1
    with pytest.raises(IndexError, match="index 8 is out of bounds for buffer a of extent 8"):
        weft.build(before)(np.zeros(8, "int32"), 8)


def test_an_index_that_is_surely_outside_is_refused():
    @T.prim_func
    def certain(a: T.Buffer((8,), "int32")):
        a[8] = 1

    @T.prim_func
    def perhaps(a: T.Buffer((8,), "int32")):
        if a[0] > 0:
            a[8] = 1

    message = "certain: index 8 is out of bounds for buffer a, whose axis 0 has extent 8"
    with pytest.raises(IRIndexError, match=message):
        after(certain)
    assert len(checks_in(after(perhaps))) == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32", "uint64"])
def test_an_index_of_any_integer_type_is_tested(dtype):
    @T.prim_func
    def func(a: T.Buffer((8,), "int32"), b: T.Buffer((1,), dtype)):
        a[b[0]] = 7

    built = weft.build(func)
    ends = np.iinfo(dtype)
    for index in (0, 7, 8, 9, ends.min, ends.max, ends.max // 2 + 1, ends.max - 1):
        a = np.zeros(8, "int32")
        if 0 <= index < 8:
            built(a, np.array([index], dtype))
            assert a[int(index)] == 7
        else:
            with pytest.raises(IndexError, match="out of bounds for buffer a of extent 8"):
                built(a, np.array([index], dtype))
            assert not a.any()


def test_without_tests_choices_stay_apart():
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), n: T.int32):
        for i in range(8):
            a[i] = T.Select(i < n, a[i + n], 0)

    func = after(before, tests=False)
    assert not checks_in(func)
    assert is_call(func.body.body.value, "if_then_else")
