"""The judge bites: right answers of every rule are covered, planted faults are not."""

import math

import pytest

torch = pytest.importorskip("torch")

from tests.lib.float64_judge import Judge, values_of, widened  # noqa: E402 - after torch
from tests.lib.float64_rules import RULES, judged  # noqa: E402 - likewise
from tests.lib.random_networks import Network, Node  # noqa: E402 - likewise

pytestmark = pytest.mark.torch


def node(kind, call, result, *arguments, target=None):
    return Node(kind, call, arguments, result, f"{result} = {kind}{arguments}", target)


def judge_of(nodes, *arguments):
    """The judge of nodes on x, y, ... and what PyTorch answers for the last one."""
    names = "xyz"[: len(arguments)]
    network = Network(tuple(names), nodes, (nodes[-1].result,)).eval()
    judge = Judge(network, arguments, values_of(network, arguments))
    return judge, judge.native[nodes[-1].result].clone()


def verdict(judge, answer, *references):
    return judged(judge, judge.network.outputs[0], answer, references)


def test_what_pytorch_answers_is_right():
    judge, answer = judge_of(
        [node("Sin", torch.sin, "a", "x"), node("Mul", torch.mul, "b", "a", "x")], torch.randn(50)
    )
    found = verdict(judge, answer, answer)
    assert found.right
    assert found.explained == {"accurate": 50}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "fault",
    [
        lambda value: value * (1 + 64 * torch.finfo(value.dtype).eps),
        lambda value: -value,
        lambda value: value.flip(0),
        lambda value: torch.zeros_like(value),
        lambda value: value * math.nan,
        lambda value: value * math.inf,
    ],
    ids=["last places", "sign", "order", "zero", "nan", "infinite"],
)
def test_a_planted_fault_is_wrong(fault, dtype):
    nodes = [node("Sin", torch.sin, "a", "x"), node("Mul", torch.mul, "b", "a", "x")]
    judge, answer = judge_of(nodes, torch.linspace(0.5, 2.0, 20).to(dtype))
    planted = answer.clone()
    planted[3] = fault(answer)[3]
    found = verdict(judge, planted, answer)
    assert found.wrong.nonzero().tolist() == [[3]]


def test_an_integer_that_is_off_by_one_is_wrong():
    judge, answer = judge_of([node("Add", torch.add, "a", "x", "x")], torch.arange(5))
    assert verdict(judge, answer, answer).right
    assert not verdict(judge, answer + 1, answer).right


def test_a_flag_that_is_wrong_is_wrong():
    less = node("Less", torch.lt, "a", "x", "y")
    judge, answer = judge_of([less], torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0]))
    assert verdict(judge, answer, answer).right
    assert verdict(judge, ~answer, answer).wrong.all()


def test_an_answer_may_be_as_far_off_as_a_few_times_the_references():
    judge, answer = judge_of([node("Sin", torch.sin, "a", "x")], torch.ones(1))
    reference = answer * (1 + 1e-5)
    assert verdict(judge, answer * (1 + 3e-5), reference).right
    assert not verdict(judge, answer * (1 + 9e-5), reference).right
    assert not verdict(judge, answer * 1.5, answer * 1.4).right  # references are off themselves


def test_what_cancels_is_explained_by_rounding():
    nodes = [
        node("Mul", lambda x: x * 1e4, "a", "x"),
        node("Add", lambda a: a + 1.0, "b", "a"),
        node("Sub", torch.sub, "c", "b", "a"),
    ]
    judge, _ = judge_of(nodes, torch.full((4,), 1.2345))
    off = torch.tensor([0.0, 1e-3, -1e-3, 0.5])
    found = verdict(judge, torch.ones(4) + off, torch.ones(4))
    assert found.explained["rounding"] == 2
    assert found.wrong.tolist() == [False, False, False, True]


def test_a_floor_near_its_jump_is_explained_by_the_tie():
    nodes = [node("Mul", lambda x: x * 10, "a", "x"), node("Floor", torch.floor, "b", "a")]
    judge, answer = judge_of(nodes, torch.tensor([0.7, 0.75]))
    either = {6.0: 6, 7.0: 7}
    for value in either:
        found = verdict(judge, torch.tensor([value, 7.0]), answer)
        assert found.right, value
    assert not verdict(judge, torch.tensor([5.0, 7.0]), answer).right
    assert verdict(judge, torch.tensor([7.0, 6.0]), answer).wrong.tolist() == [False, True]


def test_places_of_equal_values_are_told_apart():
    """Exact ties have one answer; those of rounded values have each."""
    argmax = node("ArgMax", lambda x: x.argmax(0), "b", "a")
    exact, answer = judge_of([node("Neg", torch.neg, "a", "x"), argmax], torch.ones(3))
    assert verdict(exact, answer, answer).right
    assert not verdict(exact, torch.tensor(2), answer).right
    rounded, answer = judge_of([node("Sin", torch.sin, "a", "x"), argmax], torch.ones(3))
    assert verdict(rounded, torch.tensor(2), answer).explained == {"tie": 1}


def test_overflow_on_the_way_is_explained_by_the_range():
    nodes = [node("Mul", torch.mul, "a", "x", "x"), node("Div", torch.div, "b", "a", "x")]
    judge, answer = judge_of(nodes, torch.tensor([300.0, 2.0], dtype=torch.float16))
    assert answer[0] == math.inf
    assert verdict(judge, answer, answer).right
    kept_wide = torch.tensor([300.0, 2.0], dtype=torch.float16)
    assert verdict(judge, kept_wide, answer).right
    assert verdict(judge, answer, kept_wide).explained == {"accurate": 1, "range": 1}
    assert not verdict(judge, -answer, answer).right
    assert not verdict(judge, torch.tensor([math.inf] * 2, dtype=torch.float16), answer).right


def test_integers_of_what_has_none_are_explained_as_undefined():
    cast = node("CastI32", lambda x: x.to(torch.int32), "a", "x", target=torch.int32)
    values = torch.tensor([math.nan, math.inf, 1e20, 3.5])
    judge, _ = judge_of([cast], values)
    found = verdict(judge, torch.tensor([0, -1, 5, 3], dtype=torch.int32))
    assert found.explained == {"accurate": 1, "undefined": 3}
    assert verdict(judge, torch.zeros(4, dtype=torch.int32)).wrong.tolist() == [False] * 3 + [True]


def test_infinite_values_of_an_interpolation_are_explained_as_undefined():
    def doubled(x):
        return torch.nn.functional.interpolate(x, size=2, mode="linear")

    values = torch.tensor([[[-math.inf]], [[1.0]]])
    judge, answer = judge_of([node("LinearInterp", doubled, "a", "x")], values)
    assert answer.isnan().any()
    left_out = torch.tensor([[[-math.inf] * 2], [[1.0] * 2]])
    assert verdict(judge, left_out, answer).explained == {"accurate": 3, "undefined": 1}
    assert not verdict(judge, left_out * math.nan, answer).right


def test_gelu_of_minus_infinity_is_its_limit_or_the_product():
    gelu = node("GELU", torch.nn.functional.gelu, "a", "x")
    judge, answer = judge_of([gelu], torch.tensor([-math.inf, 1.0]))
    assert verdict(judge, answer, answer).right
    limit = torch.tensor([0.0, answer[1]])
    assert verdict(judge, limit, answer).explained == {"accurate": 1, "undefined": 1}
    assert not verdict(judge, torch.tensor([-1.0, answer[1]]), answer).right


def test_coordinates_of_an_interpolation_are_rounded():
    """16384 elements by float32 positions: some thousandths of the step to the next element."""

    def shrunk(x):
        return torch.nn.functional.interpolate(x, size=29, mode="linear")

    values = torch.randn(1, 1, 16384, generator=torch.Generator().manual_seed(0))
    judge, answer = judge_of([node("LinearInterp", shrunk, "a", "x")], values)
    assert verdict(judge, answer).right
    assert "rounding" in verdict(judge, answer).explained
    assert not verdict(judge, answer + 0.02, answer).right


def test_what_rounding_seldom_brings_about_is_looked_for_longer():
    """1 + 3e-7 is in the domain of asin in few of the perturbed runs."""
    nodes = [node("Div", lambda x: x / 3, "a", "x"), node("Asin", torch.asin, "b", "a")]
    judge, answer = judge_of(nodes, torch.full((40,), 3 * (1 + 3.5e-7)))
    assert answer.isnan().all()
    assert verdict(judge, torch.full((40,), math.pi / 2), answer).right
    assert not verdict(judge, torch.full((40,), 1.4), answer).right


def test_complex_numbers_are_judged():
    values = torch.tensor([1 + 2j, -0.5 + 1j])
    judge, answer = judge_of([node("Mul", torch.mul, "a", "x", "x")], values)
    assert verdict(judge, answer, answer).right
    assert verdict(judge, answer.conj().resolve_conj(), answer).wrong.all()


def test_the_judge_knows_what_pytorch_gets_wrong():
    """PyTorch's GELU is -0 far below 0, in float64 too."""
    judge, _ = judge_of([node("GELU", torch.nn.functional.gelu, "a", "x")], torch.tensor([-12.0]))
    right = torch.tensor([-12.0 * 0.5 * math.erfc(12 / math.sqrt(2))])
    assert verdict(judge, right, torch.zeros(1)).right


def test_weights_are_widened_and_the_network_is_left_alone():
    layer = torch.nn.Linear(2, 2).half()
    network = Network(("x",), (node("Linear", layer, "a", "x"),), ("a",))
    wide = widened(network)
    assert wide.layers[0].weight.dtype is torch.float64
    assert wide.nodes[0].call is wide.layers[0]
    assert layer.weight.dtype is torch.float16


def test_every_rule_has_its_reason():
    assert list(RULES) == ["accurate", "as a reference", "rounding", "tie", "range", "undefined"]


def test_a_part_of_a_network_needs_no_more_than_it_reads():
    nodes = [
        node("Neg", torch.neg, "a", "x"),
        node("Sin", torch.sin, "b", "x"),
        node("Cos", torch.cos, "c", "a"),
    ]
    part = Network(("x",), nodes, ("b", "c")).up_to("c")
    assert [step.kind for step in part.nodes] == ["Neg", "Cos"]
    assert torch.equal(part(torch.ones(1))[0], torch.cos(torch.tensor([-1.0])))
