"""Which calls are the last thing that a function does."""

import weft
from weft import relax
from weft.relax.analysis.tail_calls import ends, last_binding, tail_calls
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Paths:
    @R.function
    def other(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        return x

    @R.function
    def loop(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        stop = R.less(i, R.const(1, "int32"))
        if stop:
            far = R.less(i, R.const(-5, "int32"))
            if far:
                r: R.Tensor((), "int32") = Paths.other(i)
            else:
                r: R.Tensor((), "int32") = i
            s: R.Tensor((), "int32") = r
        else:
            last: R.Tensor((), "int32") = Paths.loop(R.subtract(i, R.const(1, "int32")))
            s: R.Tensor((), "int32") = last
        return s

    @R.function
    def works_after(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        a: R.Tensor((), "int32") = Paths.works_after(i)
        b: R.Tensor((), "int32") = R.add(a, a)
        return b

    @R.function
    def unused_after(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        a: R.Tensor((), "int32") = Paths.other(i)
        _b: R.Tensor((), "int32") = R.add(i, i)
        return a

    @R.function
    def casts_after(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        a: R.Tensor((), "int32") = Paths.other(i)
        b = R.match_cast(a, R.Tensor((), "int32"))
        return b

    @R.function(pure=False)
    def frees_after(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        a: R.Tensor((), "int32") = Paths.other(i)
        _: R.Tuple = R.memory.kill_tensor(i)
        return a

    @R.function
    def never_returns(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        more = R.less(i, R.const(1, "int32"))
        if more:
            a: R.Tensor((), "int32") = Paths.never_returns(R.add(i, i))
        else:
            a: R.Tensor((), "int32") = Paths.never_returns(i)
        return a


def callees(name):
    """The functions that a function calls last."""

    def is_itself(callee):
        return isinstance(callee, weft.ir.GlobalVar) and callee.name_hint == name

    return [binding.value.op.name_hint for binding in tail_calls(Paths[name], is_itself)]


def test_every_path_through_nested_branches():
    assert callees("loop") == ["other", "loop"]
    assert len(list(ends(Paths["loop"].body))) == 3


def test_what_is_computed_after_a_call_keeps_it_from_being_the_last():
    assert callees("works_after") == callees("unused_after") == callees("casts_after") == []


def test_saying_what_is_not_needed_is_no_computation():
    assert callees("frees_after") == ["other"]


def test_a_function_that_never_returns_is_no_loop():
    assert callees("never_returns") == []


def test_a_value_that_nothing_binds():
    assert last_binding(relax.const(1)) is None
    x = relax.Var("x", relax.TensorStructInfo([], "int32"))
    assert last_binding(relax.SeqExpr([], x)) is None
