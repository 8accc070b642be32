"""Small functions: delays, texts of yes and no, ranges of types."""

from __future__ import annotations

import time

import pytest

from weft import testing


def test_identity_after_waits(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    assert testing.identity_after("x", 0.01) == "x"
    assert waits == [0.01]
    assert testing.echo([1]) == [1]
    assert testing.nop(1, 2) is None


def test_terminate_self_ends_the_process():
    with pytest.raises(SystemExit) as caught:
        testing.terminate_self()
    assert caught.value.code == -1


@pytest.mark.parametrize(
    ("text", "value"), [("Yes", 1), ("on", 1), ("1", 1), ("T", 1), ("false", 0), ("N", 0), ("0", 0)]
)
def test_strtobool(text, value):
    assert testing.strtobool(text) == value


def test_other_texts_are_refused():
    with pytest.raises(ValueError, match="strtobool: expected one of 0, 1, f, .*got 'perhaps'"):
        testing.strtobool("perhaps")


def test_ranges_of_types():
    assert testing.get_dtype_range("int8") == (-128, 127)
    assert testing.get_dtype_range("uint8") == (0, 255)
    assert testing.get_dtype_range("float16")[1] == 65504
    assert float(testing.get_dtype_range("bfloat16")[1]) > 3e38
    with pytest.raises(TypeError, match="expected an integer or a floating-point type, got handle"):
        testing.get_dtype_range("handle")


def test_names_to_come_say_so():
    with pytest.raises(AttributeError, match="local_run is a name of TVM 0.20 that weft does not"):
        testing.local_run
