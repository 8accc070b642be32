"""args_converter: arguments become expressions before the function sees them."""

import pytest

from weft import relax
from weft.relax import Expr
from weft.relax.utils import args_converter
from weft.support.errors import IRTypeError, IRValueError

VALUES = [1, 2.5, "text", (1, 2), (relax.const(1), (1, 1)), relax.const(0), ()]
KINDS = ["PrimValue", "PrimValue", "StringImm", "Tuple", "Tuple", "Constant", "Tuple"]


def names(value):
    if isinstance(value, list | tuple) and not isinstance(value, Expr):
        return [names(item) for item in value]
    return (
        {key: names(item) for key, item in value.items()}
        if isinstance(value, dict)
        else (None if value is None else type(value).__name__)
    )


def seen(arg, *args, **kwargs):
    return names(arg), names(args), names(kwargs)


@pytest.mark.parametrize(("value", "kind"), list(zip(VALUES, KINDS, strict=True)))
def test_each_argument_becomes_an_expression(value, kind):
    f = args_converter.to_expr("arg", "args", "kwargs")(seen)
    assert f(value, value, value, key=value) == (kind, [kind, kind], {"key": kind})
    g = args_converter.to_list_expr("arg", "args", "kwargs")(seen)
    assert g([value], [value, value], key=(value,)) == ([kind], [[kind, kind]], {"key": [kind]})


def test_none_stays():
    assert args_converter.to_expr("arg", "args")(seen)(None, None) == (None, [None], {})
    assert args_converter.to_list_expr("arg")(seen)(None) == (None, [], {})


def test_annotations_say_what_is_converted():
    def typed(
        one: Expr, perhaps: Expr | None, several: list[Expr], number: int,
        mixed: str | Expr, *rest: list[Expr] | None,
    ):  # fmt: skip
        return names(one), names(perhaps), names(several), number, mixed, names(rest)

    found = args_converter.auto(typed)(1, None, (1, "a"), 7, "stays", None, ["b"])
    assert found == (
        "PrimValue", None, ["PrimValue", "StringImm"], 7, "stays", [None, ["StringImm"]],
    )  # fmt: skip


def test_errors():
    with pytest.raises(IRTypeError, match="seen: arg: expected a list of expressions, got int"):
        args_converter.to_list_expr("arg")(seen)(1)
    with pytest.raises(IRValueError, match="seen has no parameter 'x'; its parameters are: arg"):
        args_converter.to_expr("x")(seen)
