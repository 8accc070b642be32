"""Networks through weft and the judge: the status of each way, and the shortest program."""

import pytest

torch = pytest.importorskip("torch")

from tests.lib import network_runs  # noqa: E402 - likewise
from tests.lib.network_answers import by_weft  # noqa: E402 - likewise
from tests.lib.random_networks import Drawn, Network, Node  # noqa: E402 - likewise
from weft.support.errors import InternalError, UnsupportedError  # noqa: E402 - after torch

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def drawn():
    nodes = [
        Node("Sin", torch.sin, ("x",), "a", "a = Sin(x)"),
        Node("Neg", torch.neg, ("x",), "b", "b = Neg(x)"),
        Node("GELU", torch.nn.functional.gelu, ("a",), "c", "c = GELU(a)"),
    ]
    network = Network(("x",), nodes, ("b", "c")).eval()
    return Drawn(network, (torch.linspace(-2, 2, 12).reshape(3, 4),))


def run(monkeypatch, answer=None):
    monkeypatch.setattr(network_runs, "random_network", lambda seed: drawn())
    if answer is not None:
        monkeypatch.setattr(network_runs, "by_weft", answer)
    return network_runs.outcome(0)


def test_a_network_comes_out_right_both_ways(monkeypatch):
    pytest.importorskip("onnx")
    found = run(monkeypatch)
    assert found["operators"] == {"Sin": 1, "Neg": 1, "GELU": 1}
    assert found["dtypes"] == ["float32"]
    for way in ("torch", "onnx"):
        assert found["ways"][way] == {"status": "right", "rules": {"accurate": 24}}


def test_a_planted_fault_is_found_with_the_shortest_program(monkeypatch):
    def wrong_sine(given):
        values = dict(zip("ab", by_weft(given), strict=False))
        sines = any(node.kind == "Sin" for node in given.network.nodes)
        return tuple(value * 1.001 if sines else value for value in values.values())

    found = run(monkeypatch, wrong_sine)["ways"]["torch"]
    assert found["status"] == "wrong"
    assert found["nodes"][0] == "a = Sin(x)"
    assert len(found["nodes"]) == 2
    assert "weft" in found["nodes"][1]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnsupportedError("no sines here"), "refused"),
        (InternalError("a fault of weft"), "crashed"),
        (KeyError("sine"), "crashed"),
    ],
)
def test_errors_are_told_apart(monkeypatch, error, status):
    def answer(given):
        raise error

    found = run(monkeypatch, answer)["ways"]["torch"]
    assert found["status"] == status
    assert str(error) in found["message"]


def test_another_shape_or_dtype_is_wrong(monkeypatch):
    def answer(given):
        return tuple(value[:1].double() for value in by_weft(given))

    found = run(monkeypatch, answer)["ways"]["torch"]
    assert found["status"] == "wrong"
    assert "torch.float64 (1, 4) for torch.float32 (3, 4)" in found["message"]


def test_complex_networks_go_through_real_views():
    nodes = [Node("Mul", torch.mul, ("x", "x"), "a", "a = Mul(x, x)")]
    given = Drawn(Network(("x",), nodes, ("a",)).eval(), (torch.tensor([1 + 2j, 3 - 1j]),))
    (answer,) = by_weft(given)
    assert torch.allclose(torch.view_as_complex(answer), given.arguments[0] ** 2)


def test_a_network_that_takes_too_long_to_draw_is_given_up(monkeypatch):
    def random_network(_):
        while True:
            pass

    monkeypatch.setattr(network_runs, "random_network", random_network)
    monkeypatch.setattr(network_runs, "DRAWING", 0.05)
    told = network_runs.outcome(3)
    assert told["seed"] == 3
    assert told["ways"] == {
        "torch": {"status": "none", "message": "DrawingTooLong: not drawn in 0.05 seconds"}
    }
