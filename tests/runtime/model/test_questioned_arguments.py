"""Arguments that are legal and probably a slip: they are questioned."""

from __future__ import annotations

import pytest

import weft
from weft.script import relax as R
from weft.support.errors import IRValueError


@pytest.fixture(scope="module")
def model():
    @weft.script.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.add(x, x)
            return y

    return weft.compile(Module)


@pytest.mark.parametrize("name", ["a.onnx", "a.pt2", "a.so"])
def test_a_name_of_another_format(model, tmp_path, name):
    with pytest.raises(IRValueError, match=r"weft would write its own format.* write a\.weft"):
        model.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_more_threads_than_any_machine_has(model):
    with pytest.warns(UserWarning, match="num_threads=100000: this machine has .* cores; more"):
        model.num_threads = 100000
