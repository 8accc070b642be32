"""Messages stay readable: long lists in them are cut."""

import pytest

from weft import relax, te, topi
from weft.support.errors import IRKeyError, IRValueError, TVMError, cut_lists


def test_a_long_shape_is_cut():
    shape = ", ".join(str(i) for i in range(100))
    assert str(IRValueError(f"expected ({shape}), got [{shape}]")) == (
        "expected (0, 1, 2, 3, 4, 5, ... 92 more ..., 98, 99), "
        "got [0, 1, 2, 3, 4, 5, ... 92 more ..., 98, 99]"
    )
    assert str(IRKeyError(f"({shape})")) == "(0, 1, 2, 3, 4, 5, ... 92 more ..., 98, 99)"


def test_a_long_list_of_typed_or_symbolic_extents_is_cut():
    assert cut_lists("(" + "T.int64(2), " * 99 + "n + 1)") == (
        "(" + "T.int64(2), " * 6 + "... 92 more ..., T.int64(2), n + 1)"
    )


@pytest.mark.parametrize(
    "text", ["short (1, 2, 3)", "x" * 300, "a, " * 200, "(" * 5000, "(" + "1, " * 15 + "1)"]
)
def test_other_messages_stay(text):
    assert str(TVMError(text)) == text


def test_lines_after_the_first_stay():
    listing = "(" + "1, " * 50 + "1)"
    assert cut_lists("what\n" + listing) == "what\n" + listing


def test_errors_without_a_text_stay():
    assert TVMError().args == ()
    assert TVMError(3, "x").args == (3, "x")


def test_operators_on_tensors_of_many_dimensions():
    one, other = (te.placeholder([size] * 100) for size in (2, 3))
    with pytest.raises(ValueError, match=r"\(2, 2, 2, 2, 2, 2, \.\.\. 92 more \.\.\., 2, 2\)"):
        topi.add(one, other)
    infos = [relax.TensorStructInfo([size] * 100, "float32") for size in (2, 3)]
    variables = [relax.Var(name, info) for name, info in zip("xy", infos, strict=True)]
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match=r"92 more .* 92 more") as caught:
        with bb.function("main", variables):
            bb.emit(relax.op.add(*variables))
    assert len(str(caught.value)) < 300
