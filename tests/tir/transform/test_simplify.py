from __future__ import annotations

import pytest

from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.ir.transform import PassContext
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.simplify import Simplify


def run(made_pass, func):
    return made_pass(IRModule({"main": func.with_attr("global_symbol", "main")}))["main"]


def check(before, after):
    changed = run(Simplify(), before)
    wanted = after.with_attr("global_symbol", "main")
    assert structural_equal(changed, wanted), changed.script()


def test_a_store_of_the_element_itself_disappears():
    @T.prim_func
    def before(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = A[i + 1 - 1]

    @T.prim_func
    def after(A: T.Buffer((4,), "int32")):
        for _ in range(4):
            T.evaluate(0)

    check(before, after)


def test_a_zero_added_to_a_float_stays():
    @T.prim_func
    def before(A: T.Buffer((1,), "float32")):
        A[0] = A[0] + T.float32(0)  # -0.0 becomes 0.0

    check(before, before)


def test_sums_of_loaded_integers_may_wrap():
    @T.prim_func
    def before(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        B[0] = T.min(A[0] * 2, 8)
        if A[0] < A[0] + 1:
            B[0] = 1

    check(before, before)


def test_let_variables_for_constants_are_inlined():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        n: T.int32 = 2 * 3
        for i in range(n):
            if i < 7:
                A[i] = n

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for i in range(6):
            A[i] = 6

    check(before, after)


def test_a_boolean_let_variable_is_known_in_its_branches():
    @T.prim_func
    def before(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool")):
        for i in range(4):
            small: T.bool = i < 3
            if small:
                A[i] = small
            else:
                B[i] = small

    @T.prim_func
    def after(A: T.Buffer((4,), "bool"), B: T.Buffer((4,), "bool")):
        for i in range(4):
            small: T.bool = i < 3
            if small:
                A[i] = True
            else:
                B[i] = False

    check(before, after)


def test_casts_of_floats_that_integers_hold_are_folded():
    @T.prim_func
    def before(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "uint8")):
        A[0] = T.Cast("int32", T.ceil(T.log2(T.Cast("float64", 14))))
        A[1] = T.Cast("int32", T.float32(-2.75))
        A[2] = T.Cast("int32", T.float64(3e9))
        A[3] = T.Cast("int32", T.float32("nan"))
        B[0] = T.Cast("uint8", T.float32(7.5))

    @T.prim_func
    def after(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "uint8")):
        A[0] = 4
        A[1] = -2
        A[2] = T.Cast("int32", T.float64(3e9))
        A[3] = T.Cast("int32", T.float32("nan"))
        B[0] = T.Cast("uint8", T.float32(7.5))

    check(before, after)


def test_a_boolean_let_variable_decides_branches():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            low: T.bool = i < 5
            if low:
                if i < 6:
                    A[i] = 1
            if low or i >= 5:
                A[i] = T.if_then_else(low, 2, 3)

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for i in range(8):
            low: T.bool = i < 5
            if low:
                A[i] = 1
            A[i] = T.if_then_else(low, 2, 3)

    check(before, after)


def test_else_of_an_or_knows_both_parts():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), n: T.int32, m: T.int32):
        for i in range(8):
            if i == n or i == m:
                A[i] = 0
            else:
                if i != m:
                    A[i] = 1

    @T.prim_func
    def after(A: T.Buffer((8,), "int32"), n: T.int32, m: T.int32):
        for i in range(8):
            if i == n or i == m:
                A[i] = 0
            else:
                A[i] = 1

    check(before, after)


def test_inequalities_chain_and_meet():
    @T.prim_func
    def before(A: T.Buffer((3,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        if i < j and j <= k:
            A[0] = i < k
            A[1] = i + 1 < k
        if i <= j:
            A[2] = j <= i

    @T.prim_func
    def after(A: T.Buffer((3,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        if i < j and j <= k:
            A[0] = True
            A[1] = i + 1 < k
        if i <= j:
            A[2] = j == i

    check(before, after)


def test_an_assumption_holds_for_what_follows_in_its_scope():
    @T.prim_func
    def before(A: T.Buffer((2,), "int32"), n: T.int32, m: T.int32):
        if 3 < m:
            T.evaluate(T.assume(n > 4))
            if n > 2:
                A[0] = 1
        if 2 < n:
            A[1] = 1

    @T.prim_func
    def after(A: T.Buffer((2,), "int32"), n: T.int32, m: T.int32):
        if 3 < m:
            T.evaluate(T.assume(n > 4))
            A[0] = 1
        if 2 < n:
            A[1] = 1

    check(before, after)


def test_shifts_have_bounds():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32")):
        for i in range(8):
            if T.shift_left(3, i) <= 384:
                A[i] = 1
            if T.shift_left(3, i) <= 383:
                A[i] = 2

    @T.prim_func
    def after(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = 1
            if T.shift_left(3, i) <= 383:
                A[i] = 2

    check(before, after)


def test_extents_of_parameters_are_not_negative():
    @T.prim_func
    def before(a: T.handle, n: T.int64):
        A = T.match_buffer(a, (n * 8,), "int32")
        if T.min(T.int64(0), n) == T.int64(0):
            A[0] = 1

    @T.prim_func
    def after(a: T.handle, n: T.int64):
        A = T.match_buffer(a, (n * 8,), "int32")
        A[0] = 1

    check(before, after)


def test_options_are_checked():
    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        A[0] = 1

    with PassContext(config={"tir.Simplify": {"transitively_prove_inequalities": True}}):
        run(Simplify(), func)
    for name in (
        "propagate_knowns_to_prove_conditional", "propagate_knowns_to_simplify_expressions",
    ):  # fmt: skip
        with PassContext(config={"tir.Simplify": {name: False}}):
            run(Simplify(), func)
        with (
            PassContext(config={"tir.Simplify": {name: True}}),
            pytest.raises(NotImplementedError, match=f"{name}.*not there yet"),
        ):
            run(Simplify(), func)
    with (
        PassContext(config={"tir.Simplify": {"transitively": True}}),
        pytest.raises(PassError, match="no option 'transitively'"),
    ):
        run(Simplify(), func)


def test_options_enable_extensions():
    @T.prim_func
    def func(A: T.Buffer((3,), "bool"), i: T.int32, j: T.int32, k: T.int32):
        A[0] = (i == 0 and j == 10) or k == 20
        if i == j and (i == k or k == 5):
            A[1] = i == j or k == 3

    @T.prim_func
    def branches(A: T.Buffer((2,), "bool"), i: T.int32, j: T.int32):
        A[0] = (i < 10) and (i < 12 or j == 3)
        A[1] = (i == 5) or (i != 5 and j == 3)

    def simplified(given, **options):
        with PassContext(config={"tir.Simplify": options}):
            return run(Simplify(), given).script()

    plain = simplified(func)
    assert "A[0] = i == 0 and j == 10 or k == 20" in plain
    assert simplified(func, convert_boolean_to_and_of_ors=False) == plain
    normal = simplified(func, convert_boolean_to_and_of_ors=True)
    assert "A[0] = (i == 0 or k == 20) and (j == 10 or k == 20)" in normal
    assert "A[0] = i < 10 and (i < 12 or j == 3)" in simplified(branches)
    applied = simplified(branches, apply_constraints_to_boolean_branches=True)
    assert "A[0] = i < 10\n" in applied
    assert applied.endswith("A[1] = i == 5 or j == 3")


def test_compacted_buffers_keep_their_regions():
    @T.prim_func
    def before(A: T.Buffer((16, 4), "int32")):
        for i in range(16):
            with T.block("outer"):
                T.reads()
                T.writes(A[i, 0:4])
                B = T.alloc_buffer((16, 4), "int32")
                for j in range(4):
                    with T.block("inner"):
                        T.reads()
                        T.writes(B[i, j])
                        B[i, j] = j

    outer = run(CompactBufferAllocation(), before).body.block.body.body.block
    assert outer.alloc_buffers[0].shape[0].value == 1
    (region,) = outer.body.body.block.writes
    assert region.buffer is outer.alloc_buffers[0]
    assert (region.region[0].min.value, region.region[0].extent.value) == (0, 1)


def test_the_indices_of_a_sum_of_products_are_simplified():
    @T.prim_func
    def before(
        A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((2,), "float32")
    ):
        for i in range(2):
            for j in range(4):
                C[i + 0] = C[i * 1] + A[i * 4 + j - i * 4 + 0] * B[(j * 2) // 2 + i * 4] * A[i // 2]

    @T.prim_func
    def after(
        A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((2,), "float32")
    ):
        for i in range(2):
            for j in range(4):
                C[i] = C[i] + A[j] * B[i * 4 + j] * A[0]

    check(before, after)


def test_a_sum_whose_parts_are_shared_is_simplified_in_no_time():
    """As a tree it has more than a billion nodes."""
    buffer = decl_buffer((1,), "float32")
    value = BufferLoad(buffer, [0])
    for _ in range(60):
        value = value + value
    func = PrimFunc([Var("a", "handle")], BufferStore(buffer, value, [0]))
    func = PrimFunc(func.params, func.body, None, {func.params[0]: buffer})
    assert run(Simplify(), func).body.value is value
