"""Random networks through PyTorch, ONNX Runtime and weft, judged: one line of JSON for each.

``python -m tests.lib.network_runs 0 100`` runs the seeds 0 to 99.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

from tests.lib.float64_judge import Judge, values_of
from tests.lib.float64_rules import judged
from tests.lib.network_answers import (
    Answers,
    by_onnxruntime,
    by_weft,
    by_weft_from_onnx,
    casts_of_exported,
    dtypes_of_exported,
    exported_model,
)
from tests.lib.random_networks import Drawn, Network, Node, prepare, random_network
from weft.support.errors import InternalError, TVMError

OPSETS: Final = (14, 15, 16, 17)
"""Operator sets of the exported models, by seed."""
FAILURES: Final = ("wrong", "crashed")
DRAWING: Final = 120.0
"""Seconds of this process that drawing a network may take: some solver queries go on for hours."""


class DrawingTooLong(BaseException):  # of no class that NNSmith would catch
    """A network was given up before it was drawn."""


def outcome(seed: int) -> dict[str, Any]:
    """What became of one network: its operators, and for each way a status.

    ``{"seed": 7, "operators": {"Add": 2}, "dtypes": ["float16"], "ways": {"torch": {"status":
    "right", "rules": {"accurate": 64}}, "onnx": {"status": "refused", "message": "..."}}}``.
    The statuses are ``right``, ``wrong`` (with ``nodes``, the shortest program that shows it),
    ``refused`` (a TVMError), ``crashed`` (another error) and ``none`` (there is nothing to judge:
    PyTorch does not run or export the network, or NNSmith draws none in ``DRAWING`` seconds).
    """
    warnings.simplefilter("ignore")
    try:
        with processor_time(DRAWING):
            drawn = random_network(seed)
    except DrawingTooLong as error:
        return {"seed": seed, "operators": {}, "dtypes": [], "ways": {"torch": _none(error)}}
    operators = Counter(node.kind for node in drawn.network.nodes)
    found: dict[str, Any] = {"seed": seed, "operators": dict(operators)}
    try:
        values = values_of(drawn.network, drawn.arguments)
    except (RuntimeError, NotImplementedError, IndexError) as error:
        return {**found, "dtypes": [], "ways": {"torch": _none(error)}}
    dtypes = sorted({str(value.dtype).removeprefix("torch.") for value in values.values()})
    return {**found, "dtypes": dtypes, "ways": _ways(drawn, values, seed)}


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises DrawingTooLong in a block that computes for longer; in the main thread only."""

    def stop(*_: object) -> None:
        raise DrawingTooLong(f"not drawn in {seconds:g} seconds")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _ways(drawn: Drawn, values: Mapping[str, torch.Tensor], seed: int) -> dict[str, Any]:
    """The status of each way: weft from PyTorch, weft from ONNX; ONNX Runtime if it has none."""
    opset = OPSETS[seed % len(OPSETS)]
    references = [tuple(values[name] for name in drawn.network.outputs)]
    ways: dict[str, Any] = {}
    exported = None
    try:
        exported = exported_model(drawn, opset)
        references.append(by_onnxruntime(exported, drawn))
    except Exception as error:  # noqa: BLE001 - the exporter's or ONNX Runtime's, of any class
        ways["onnx" if exported is None else "onnxruntime"] = _none(error)
    judge = Judge(drawn.network, drawn.arguments, values)
    ways["torch"] = _status(lambda: by_weft(drawn), judge, references)
    if ways["torch"]["status"] in FAILURES:
        ways["torch"]["nodes"] = shortest(drawn, by_weft, judge_of)
    if exported is None:
        return ways

    def from_onnx(part: Drawn) -> Answers:
        return by_weft_from_onnx(exported_model(part, opset), part)

    def judge_for(part: Drawn) -> Judge:
        return judge_of_exported(part, exported_model(part, opset))

    ways["onnx"] = _status(lambda: from_onnx(drawn), judge_for(drawn), references)
    if ways["onnx"]["status"] in FAILURES:
        ways["onnx"]["nodes"] = shortest(drawn, from_onnx, judge_for)
    return ways


def _none(error: BaseException) -> dict[str, Any]:
    return {"status": "none", "message": first_line(error)}


def judge_of(drawn: Drawn) -> Judge:
    """The judge of a network as PyTorch has it."""
    values = values_of(drawn.network, drawn.arguments)
    return Judge(drawn.network, drawn.arguments, values)


def judge_of_exported(drawn: Drawn, exported: bytes) -> Judge:
    """The judge of a network as its ONNX model computes it.

    Operator sets below 20 know no Gelu; and the exporter makes float32 of float64 tensors without
    axes: where it writes more casts to float32 than the network has, float64 means float32.
    """
    casts = casts_of_exported(exported)
    nodes = [part for node in drawn.network.nodes for part in EXPORTED.get(node.kind, _as_is)(node)]
    network = Network(drawn.network.inputs, nodes, drawn.network.outputs).eval()
    judge = judge_of(Drawn(network, drawn.arguments))
    judge.declared = dict(zip(network.outputs, dtypes_of_exported(exported), strict=True))
    if casts > sum(node.kind == "CastF32" for node in nodes):
        judge.native = {
            name: value.float() if value.dtype is torch.float64 else value
            for name, value in judge.native.items()
        }
    return judge


def _as_is(node: Node) -> list[Node]:
    return [node]


def _gelu(node: Node) -> list[Node]:
    """x * (1 + erf(x / sqrt 2)) / 2, where what is added to 1 is rounded before."""
    (x,), y = node.arguments, node.result
    return [
        Node("Erf", lambda x: torch.erf(x / math.sqrt(2)), (x,), f"{y}_erf", ""),
        Node("Add", lambda erf: erf + 1, (f"{y}_erf",), f"{y}_add", ""),
        Node("Mul", torch.mul, (x, f"{y}_add"), f"{y}_mul", ""),
        Node("Mul", lambda twice: twice * 0.5, (f"{y}_mul",), y, node.text),
    ]


def _log2(node: Node) -> list[Node]:
    """log(x) / log(2), the constant in float32 beside float64 too."""
    two, log = float(np.float32(math.log(2))), f"{node.result}_log"
    return [
        Node("Log", torch.log, node.arguments, log, ""),
        Node("Div", lambda log: log / two, (log,), node.result, node.text),
    ]


def _leaky(node: Node) -> list[Node]:
    """Attributes of ONNX are float32, of float64 operators too."""
    slope = float(np.float32(0.01))
    call = functools.partial(torch.nn.functional.leaky_relu, negative_slope=slope)
    return [dataclasses.replace(node, call=call)]


EXPORTED: Final[Mapping[str, Callable[[Node], list[Node]]]] = {
    "GELU": _gelu,
    "LeakyReLU": _leaky,
    "Log2": _log2,
}
"""What the exporter writes with other numbers, or as several operators that round each."""


def _status(
    answers: Callable[[], Answers], judge: Judge, references: Sequence[Answers]
) -> dict[str, Any]:
    try:
        found = answers()
    except InternalError as error:
        return {"status": "crashed", "message": str(error)[:2000]}
    except TVMError as error:
        return {"status": "refused", "message": str(error)[:500]}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        message = f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}"
        return {"status": "crashed", "message": message}
    return _judged(found, judge, references)


def _judged(found: Answers, judge: Judge, references: Sequence[Answers]) -> dict[str, Any]:
    rules: Counter[str] = Counter()
    wrong = []
    for index, name in enumerate(judge.network.outputs):
        answer, native = found[index], references[0][index]
        if native.is_complex() and not answer.is_complex():
            answer = torch.view_as_complex(answer)
        others = [given[index] for given in references]
        fitting = [other for other in others if other.shape == native.shape]
        dtype = judge.declared.get(name, native.dtype)
        if answer.shape != native.shape or answer.dtype != dtype:
            wrong.append(
                f"{name}: {answer.dtype} {tuple(answer.shape)} for {dtype} {tuple(native.shape)}"
            )
            continue
        verdict = judged(judge, name, answer, [other.to(answer.dtype) for other in fitting])
        rules.update(verdict.explained)
        if not verdict.right:
            at = tuple(int(place[0]) for place in torch.nonzero(verdict.wrong, as_tuple=True))
            said = [str(value[at].item()) for value in (answer, judge.exact[name], *fitting)]
            wrong.append(
                f"{name}{list(at)}: weft {said[0]}, float64 {said[1]}, references {said[2:]}; "
                f"{int(verdict.wrong.sum())} of {verdict.wrong.numel()} elements"
            )
    if wrong:
        return {"status": "wrong", "rules": dict(rules), "message": "\n".join(wrong)}
    return {"status": "right", "rules": dict(rules)}


def shortest(
    drawn: Drawn, answers: Callable[[Drawn], Answers], judge_for: Callable[[Drawn], Judge]
) -> list[str]:
    """The first node whose value comes out wrong, after what it needs; what it reads, as text."""
    for node in drawn.network.nodes:
        part = Drawn(drawn.network.up_to(node.result), drawn.arguments)
        judge = judge_for(part)
        native = values_of(part.network, part.arguments)[node.result]
        status = _status(functools.partial(answers, part), judge, [(native,)])
        if status["status"] in FAILURES:
            return [*(step.text for step in part.network.nodes), status["message"]]
    return [step.text for step in drawn.network.nodes]


def first_line(error: BaseException) -> str:
    """The head of a message: ``RuntimeError: maximum not implemented for complex tensors.``"""
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:200]}"


def main(arguments: Sequence[str]) -> None:
    """Run the seeds from the first argument, as many as the second says.

    Each runs in a fork of this process, which has drawn none: what a solver draws depends on what
    it was asked before, and so a seed would mean another network after other ones.
    """
    first, count = (int(text) for text in arguments)
    prepare()
    _warm_up()
    for seed in range(first, first + count):
        child = os.fork()
        if not child:
            said = json.dumps(outcome(seed))  # on a line of its own, whatever libraries print
            print(f"\n{said}", flush=True)  # noqa: T201 - read by who started it
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(1)


def _warm_up() -> None:
    """A small network every way, so that no fork imports what this process can import for all."""
    node = Node("GELU", torch.nn.functional.gelu, ("x",), "y", "")
    network = Network(("x",), (node,), ("y",)).eval()
    drawn = Drawn(network, (torch.ones(2),))
    _ways(drawn, values_of(network, drawn.arguments), 0)


if __name__ == "__main__":
    main(sys.argv[1:])
