import pytest

from weft.runtime import registry
from weft.runtime.registry import (
    PackedFunc,
    convert,
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    monkeypatch.setattr(registry, "_TABLE", {})


def test_every_form_of_registration():
    @register_func
    def plain(x):
        return x + 1

    @register_func("test.named")
    def named(x):
        return x + 2

    assert register_func("test.called", lambda x: x + 3)(0) == 3
    assert plain(1) == 2
    assert get_global_func("plain")(1) == 2
    assert get_global_func("test.named")(1) == 3
    assert get_global_func("test.called")(1) == 4
    assert list_global_func_names() == ["plain", "test.called", "test.named"]


def test_a_taken_name_needs_override():
    register_func("test.f", lambda: 1)
    with pytest.raises(ValueError, match=r"'test.f' is already registered; pass override=True"):
        register_func("test.f", lambda: 2)

    @register_func("test.f", override=True)
    def other():
        return 3

    assert get_global_func("test.f")() == 3


def test_a_missing_name_gives_the_nearest_ones():
    register_func("env.linear", print)
    register_func("env.relu", print)
    with pytest.raises(ValueError, match=r"'env.linaer'; did you mean env.linear"):
        get_global_func("env.linaer")
    with pytest.raises(ValueError, match=r"register it with weft.register_func\('zzz'\)"):
        get_global_func("zzz")
    assert get_global_func("zzz", allow_missing=True) is None


def test_remove():
    register_func("test.f", print)
    remove_global_func("test.f")
    with pytest.raises(ValueError, match=r"cannot find global function 'test.f'"):
        remove_global_func("test.f")


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"test.f: expected a callable, got int"):
        register_func("test.f", 3)
    with pytest.raises(TypeError, match=r"expected the name of a function, got int"):
        register_func(3)
    with pytest.raises(TypeError, match=r"expected a callable, got str"):
        PackedFunc("f")


def test_packed_functions_pass_through():
    function = register_func("test.f", PackedFunc(lambda *a: a, "inner"))
    assert get_global_func("test.f") is function
    assert function(1, "a", None) == (1, "a", None)
    assert repr(function) == "PackedFunc('inner')"


def test_convert():
    assert isinstance(convert(len), PackedFunc)
    assert convert("a") == "a"
    assert type(convert("a")).__name__ == "String"
    assert convert(3) == 3


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_compiled_code_cannot_hold_is_refused(name):
    with pytest.raises(ValueError, match="not empty and has no NUL characters, got"):
        register_func(name, lambda: 1)
