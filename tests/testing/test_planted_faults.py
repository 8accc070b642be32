"""Faults planted in right answers, kind by kind of operator: the judge calls each wrong.

A right answer is what PyTorch gives; an entry of ``CASES`` is a network, its arguments, and
the faults of ``FAULTS`` that it suffers. No rule may excuse them.
"""

import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402 - after torch

from tests.lib import network_runs  # noqa: E402 - likewise
from tests.lib.float64_judge import Judge, values_of  # noqa: E402 - likewise
from tests.lib.float64_rules import judged  # noqa: E402 - likewise
from tests.lib.random_networks import Drawn, Network, Node  # noqa: E402 - likewise

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]
FLOATS = [torch.float16, torch.float32, torch.float64]


def drawn(*shape, seed=0, low=0.5, high=2.0):
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return low + (high - low) * numbers


def layer(made, seed=0):
    """A layer with weights of a seed."""
    for number, weight in enumerate(made.state_dict().values()):
        if weight.is_floating_point():
            weight.copy_(drawn(*weight.shape, seed=seed + number, low=0.1, high=0.9))
    return made


def step(kind, call, *arguments, target=None):
    """A node without its name, which is its place: a, b, ..."""
    return kind, call, arguments, target


def chain(*steps):
    return [
        Node(kind, call, arguments, "abcdef"[place], kind, target)
        for place, (kind, call, arguments, target) in enumerate(steps)
    ]


def unary(kind, call):
    return lambda: (chain(step(kind, call, "x")), [drawn(3, 4)])


def binary(kind, call):
    return lambda: (chain(step(kind, call, "x", "y")), [drawn(3, 4), drawn(3, 4, seed=1)])


def image(kind, call, *shape):
    return lambda: (chain(step(kind, call, "x")), [drawn(*shape)])


def resized(mode, size):
    return lambda x: functional.interpolate(x, size=size, mode=mode)


NUMBERS = {
    "Sin": unary("Sin", torch.sin),
    "Cos": unary("Cos", torch.cos),
    "Tan": unary("Tan", lambda x: torch.tan(x / 2)),
    "Exp": unary("Exp", torch.exp),
    "Log2": unary("Log2", lambda x: torch.log2(x + 2)),
    "Sqrt": unary("Sqrt", torch.sqrt),
    "Sigmoid": unary("Sigmoid", torch.sigmoid),
    "GELU": unary("GELU", functional.gelu),
    "Asin": unary("Asin", lambda x: torch.asin(x / 4)),
    "LeakyReLU": unary("LeakyReLU", functional.leaky_relu),
    "Neg": unary("Neg", torch.neg),
    "Abs": unary("Abs", torch.abs),
    "Clip": unary("Clip", lambda x: x.clip(0.6, 1.9)),
    "Softmax": unary("Softmax", lambda x: x.softmax(1)),
    "Add": binary("Add", torch.add),
    "Sub": binary("Sub", lambda x, y: x - y / 8),
    "Mul": binary("Mul", torch.mul),
    "Div": binary("Div", torch.div),
    "Pow": binary("Pow", torch.pow),
    "Max": binary("Max", torch.maximum),
    "Where": binary("Where", lambda x, y: torch.where(x > 1, x, y)),
    "MatMul": lambda: (
        chain(step("MatMul", torch.matmul, "x", "y")), [drawn(3, 5), drawn(5, 4, seed=1)],
    ),
    "Linear": lambda: (
        chain(step("Linear", layer(torch.nn.Linear(4, 5)), "x")), [drawn(3, 4)],
    ),
    "Conv1d": lambda: (
        chain(step("Conv1d", layer(torch.nn.Conv1d(2, 3, 3)), "x")), [drawn(1, 2, 7)],
    ),
    "NCHWConv2d": lambda: (
        chain(step("NCHWConv2d", layer(torch.nn.Conv2d(2, 3, 3)), "x")), [drawn(1, 2, 6, 5)],
    ),
    "BatchNorm2d": lambda: (
        chain(step("BatchNorm2d", layer(torch.nn.BatchNorm2d(2)), "x")), [drawn(1, 2, 3, 4) + 2],
    ),
    "AvgPool2d": image("AvgPool2d", lambda x: functional.avg_pool2d(x, 2), 1, 2, 4, 6),
    "MaxPool2d": image("MaxPool2d", lambda x: functional.max_pool2d(x, 2), 1, 2, 4, 6),
    "NearestInterp": image("NearestInterp", resized("nearest", 7), 1, 2, 5),
    "LinearInterp": image("LinearInterp", resized("linear", 7), 1, 2, 5),
    "BilinearInterp": image("BilinearInterp", resized("bilinear", (7, 3)), 1, 2, 5, 4),
    "BicubicInterp": image("BicubicInterp", resized("bicubic", (7, 3)), 1, 2, 5, 4),
    "ConstPad": image("ConstPad", lambda x: functional.pad(x, (1, 2), value=0.5), 3, 4),
    "ReduceSum": image("TorchReduceSum", lambda x: x.sum(1), 4, 9),
    "ReduceMean": image("ReduceMean", lambda x: x.mean(0), 6, 5),
    "ReduceProd": image("ReduceProd", lambda x: x.prod(1), 4, 5),
    "ReduceMax": image("ReduceMax", lambda x: x.amax(1), 5, 3),
    "Transpose": image("Transpose", lambda x: x.mT, 3, 4),
    "Exp of Sin of Mul": lambda: (
        chain(
            step("Mul", torch.mul, "x", "y"), step("Sin", torch.sin, "a"),
            step("Exp", torch.exp, "b"),
        ),
        [drawn(3, 4, high=1.0), drawn(3, 4, seed=1, high=1.0)],
    ),
}  # fmt: skip
"""Networks of numbers that rounding moves by a few units in the last place, far from 0."""


def element(value, new):
    """The answer with another element at a place in its middle."""
    planted = value.clone().reshape(-1)
    planted[planted.numel() // 2] = new(planted)
    return planted.reshape(value.shape)


FAULTS = {
    "1 % too large": lambda value: value * 1.01,
    "1 % too small": lambda value: value * 0.99,
    "one element 2 % off": lambda value: element(value, lambda v: v[v.numel() // 2] * 1.02),
    "one element of elsewhere": lambda value: element(value, lambda v: v[0] * 1.02 + v[-1]),
    "reversed axis": lambda value: value.flip(-1),
    "rolled": lambda value: value.roll(1, -1),
    "sign": lambda value: -value,
    "zero": lambda value: element(value, lambda _: 0.0),
    "nan": lambda value: element(value, lambda _: math.nan),
    "infinite": lambda value: element(value, lambda _: math.inf),
    "negative infinite": lambda value: element(value, lambda _: -math.inf),
}


def judge_of(nodes, arguments):
    network = Network(tuple("xyz"[: len(arguments)]), nodes, (nodes[-1].result,)).eval()
    if arguments[0].is_floating_point():
        network.to(arguments[0].dtype)
    values = values_of(network, tuple(arguments))
    return Judge(network, tuple(arguments), values), values[nodes[-1].result]


def verdict(judge, answer, *references):
    return judged(judge, judge.network.outputs[0], answer, references)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind, dtype):
    nodes, arguments = NUMBERS[kind]()
    judge, right = judge_of(nodes, [argument.to(dtype) for argument in arguments])
    assert verdict(judge, right, right).right
    slipped = []
    for name, fault in FAULTS.items():
        planted = fault(right)
        moved = ~torch.isclose(planted.double(), right.double(), rtol=5e-3, atol=0.0)
        assert moved.any(), name
        found = verdict(judge, planted, right).wrong
        if not bool(found[moved].all()) or bool((found & (planted == right)).any()):
            slipped.append((name, int((moved & ~found).sum())))
    assert not slipped


def test_a_tiny_number_is_not_0():
    """Numbers near the smallest normal ones of their types."""
    for dtype, tiny in zip(FLOATS, (3e-5, 3e-38, 3e-307), strict=True):
        judge, right = judge_of(
            chain(step("Mul", lambda x: x * 0.5, "x")), [torch.full((2,), tiny, dtype=dtype)]
        )
        assert verdict(judge, right, right).right
        assert verdict(judge, right * 0, right).wrong.all(), dtype
        assert verdict(judge, right * 1.5, right).wrong.all(), dtype


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_what_cancels_to_nothing_is_not_large(dtype):
    """exp(b) - exp(b) is 0 and some rounding, which samples spread around."""
    steps = chain(
        step("Sin", torch.sin, "x"), step("Add", torch.add, "a", "x"),
        step("Exp", torch.exp, "b"), step("Sub", lambda c, b: c - torch.exp(b), "c", "b"),
    )  # fmt: skip
    judge, right = judge_of(steps, [drawn(40).to(dtype)])
    assert verdict(judge, right, right).right
    for fault in (0.5, -0.5, 1e3, math.inf, -math.inf, math.nan):
        assert verdict(judge, right + fault, right).wrong.all(), fault


def test_a_pole_may_be_anything_large():
    """The same as a divisor: 1 / (0 and some rounding)."""
    steps = chain(
        step("Mul", lambda x: x * 3, "x"), step("Add", lambda x: x + x + x, "x"),
        step("Sub", torch.sub, "a", "b"), step("Div", lambda c: 1 / c, "c"),
    )  # fmt: skip
    judge, right = judge_of(steps, [drawn(8).float()])
    for answer in (1e9, -1e12, math.inf, -math.inf):
        assert verdict(judge, torch.full((8,), answer), right).right, answer
    assert verdict(judge, torch.ones(8), torch.full((8,), math.inf)).wrong.all()


def whole(*numbers, dtype=torch.int32):
    return torch.tensor(numbers, dtype=dtype)


X = torch.tensor([0.31, -1.27, 2.46, 0.08])
INTEGERS = {
    "CastI32": (chain(step("Mul", lambda x: x * 10, "x"),
                      step("CastI32", lambda a: a.to(torch.int32), "a", target=torch.int32)), [X]),
    "Floor": (chain(step("Mul", lambda x: x * 10, "x"), step("Floor", torch.floor, "a")),
              [torch.tensor([0.31, -1.27, 2.46, 0.18])]),
    "Add": (chain(step("Add", torch.add, "x", "y")), [whole(3, -4, 2**31 - 1), whole(5, 1, 3)]),
    "ArgMax": (chain(step("Sin", torch.sin, "x"), step("ArgMax", lambda a: a.argmax(1), "a")),
               [torch.tensor([[0.1, 0.5, 0.4999], [1.5, 0.2, 1.4]])]),
    "ReduceSum": (chain(step("TorchReduceSum", lambda x: x.sum(0), "x")),
                  [whole(*range(12), dtype=torch.int64).reshape(3, 4)]),
    "Mul": (chain(step("Mul", torch.mul, "x", "x")), [whole(3, 100, 7, dtype=torch.uint8)]),
}  # fmt: skip
FLAGS = {
    "Less": (chain(step("Less", torch.lt, "x", "y")),
             [X, torch.nextafter(X, torch.tensor([9.0, -9.0, 9.0, -9.0]))]),
    "Greater": (chain(step("Greater", torch.gt, "x", "y")),
                [X, torch.nextafter(X, torch.tensor([9.0, -9.0, 9.0, -9.0]))]),
    "Equal": (chain(step("Equal", torch.eq, "x", "y")), [X, X.nextafter(torch.zeros(4))]),
    "Less of Sin": (chain(step("Sin", torch.sin, "x"), step("Less", torch.lt, "a", "y")),
                    [X, X.sin() + torch.tensor([1e-4, -1e-4, 1e-4, -1e-4])]),
    "CastBool": (chain(step("CastBool", lambda x: x.bool(), "x", target=torch.bool)),
                 [torch.tensor([0.0, 1e-38, -0.0, 2.0])]),
}  # fmt: skip


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("off", [1, -1, 100])
def test_integers(kind, off):
    judge, right = judge_of(*INTEGERS[kind])
    assert verdict(judge, right, right).right
    assert verdict(judge, right + off, right).wrong.all()


@pytest.mark.parametrize("kind", FLAGS)
def test_flags_near_equality(kind):
    judge, right = judge_of(*FLAGS[kind])
    assert verdict(judge, right, right).right
    assert verdict(judge, ~right, right).wrong.all()


def test_a_place_between_two_equal_ones_is_neither():
    """Of three values the outer two are equal but for rounding; the middle one is smaller."""
    steps = chain(step("Sin", torch.sin, "x"), step("ArgMax", lambda a: a.argmax(0), "a"))
    judge, _ = judge_of(steps, [torch.tensor([1.0, 0.5, 1.0])])
    assert verdict(judge, torch.tensor(2)).right
    assert not verdict(judge, torch.tensor(1)).right


def test_a_number_between_two_sides_of_a_jump_is_neither():
    """x below 0.3 gives 1, above 100; 50 is no rounding of either, nor is 1000."""
    steps = chain(
        step("Mul", lambda x: x * 3, "x"), step("Less", lambda a: a < 0.9, "a"),
        step("Where", lambda b: torch.where(b, 1.0, 100.0), "b"), step("Sqrt", torch.sqrt, "c"),
    )  # fmt: skip
    judge, _ = judge_of(steps, [torch.full((3,), 0.3)])
    for answer, is_right in ((1.0, True), (10.0, True), (5.0, False), (1e3, False), (0.0, False)):
        assert verdict(judge, torch.full((3,), answer)).right is is_right, answer


def test_a_reference_that_overflows_excuses_only_its_own_answer():
    judge, _ = judge_of(
        chain(step("Mul", lambda x: x * 2, "x")), [torch.tensor([2.0], dtype=torch.float16)]
    )
    infinite = torch.tensor([math.inf], dtype=torch.float16)
    assert not verdict(judge, torch.tensor([6.0], dtype=torch.float16), infinite).right
    off = torch.tensor([5.0], dtype=torch.float16)
    assert not verdict(judge, torch.tensor([6.0], dtype=torch.float16), off).right


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["torch", "onnx"])
def test_the_type_of_another_framework(way, monkeypatch):
    """PyTorch's exporter makes float32 of a float64 scalar: each way has a type of its own."""
    pytest.importorskip("onnx")
    network = Network(("x",), chain(step("Mul", lambda x: x * 2, "x")), ("a",)).eval()
    given = Drawn(network, (torch.tensor(1.5, dtype=torch.float64),))
    monkeypatch.setattr(network_runs, "random_network", lambda seed: given)
    by_onnxruntime = (torch.tensor(3.0, dtype=torch.float32),)
    monkeypatch.setattr(network_runs, "by_onnxruntime", lambda *_: by_onnxruntime)
    for found in network_runs.outcome(0)["ways"].values():
        assert found["status"] == "right"
    answer, dtype = {
        "torch": ("by_weft", torch.float32), "onnx": ("by_weft_from_onnx", torch.float64),
    }[way]  # fmt: skip
    monkeypatch.setattr(network_runs, answer, lambda *_: (torch.tensor(3.0, dtype=dtype),))
    found = network_runs.outcome(0)["ways"]
    assert found.pop(way)["status"] == "wrong"
    assert [other["status"] for other in found.values()] == ["right"]
