"""Random ONNX graphs of loops and branches, for comparison with another engine.

Values are integers, so that results are equal or wrong. Loops are bounded by an input, a constant
or a computed condition; they carry scalars, vectors of unknown length and vectors that grow, scan
values out, append to sequences, stand in each other and in branches, and use values from outside.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

SCALAR, VECTOR, GROWN, SEQUENCE = "scalar", "vector", "grown", "sequence"
_RANKS = {SCALAR: 0, VECTOR: 1, GROWN: 1}
_BINARY = ("Add", "Sub", "Mul", "Max", "Min", "Mod")
_UNARY = ("Neg", "Abs", "Identity")
MODULUS = 1009
DEEPEST = 2


@dataclass
class Block:
    """The nodes of a graph so far, and the values that may be used there, with their kinds."""

    values: dict[str, str]
    nodes: list[NodeProto] = field(default_factory=list)


class RandomLoops:
    """Draws one model: ``model``; ``inputs`` draws arguments for it.

    Every second one has nothing that grows, so that it runs natively; every fourth has sequences.
    """

    def __init__(self, seed: int) -> None:
        self.grows, self.has_sequences = seed % 2 == 1, seed % 4 == 1
        self.random = random.Random(seed)
        self.names = 0
        self.constants: dict[str, np.ndarray] = {}

    def model(self) -> ModelProto:
        """A model of three inputs: a number of steps, a flag and a vector."""
        block = Block({"m": SCALAR, "x": VECTOR})
        block.nodes.append(helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0))
        block.values["top"] = SCALAR
        self.loop(block, 0)
        self.statements(block, 0, 3)
        block.nodes += [
            helper.make_node("Identity", [name], [f"{name}_out"]) for name in block.values
        ]
        outputs = [self.info(f"{name}_out", kind) for name, kind in block.values.items()]
        inputs = [
            self.info("m", SCALAR),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.INT64, ["n"]),
        ]
        constants = [numpy_helper.from_array(v, name) for name, v in self.constants.items()]
        graph = helper.make_graph(block.nodes, "random_loops", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model

    def inputs(self, steps: int, length: int) -> dict[str, np.ndarray]:
        """Arguments for a number of steps and a length of vectors."""
        vector = [self.random.randrange(-9, 10) for _ in range(length)]
        return {
            "m": np.array(steps, "int64"),
            "flag": np.array(self.random.random() < 0.7),
            "x": np.array(vector, "int64"),
        }

    # ---- parts

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def constant(self, value: object, dtype: str = "int64") -> str:
        name = self.name()
        self.constants[name] = np.array(value, dtype)
        return name

    def info(self, name: str, kind: str) -> onnx.ValueInfoProto:
        if kind == SEQUENCE:
            item = helper.make_tensor_type_proto(TensorProto.INT64, [None])
            return helper.make_value_info(name, helper.make_sequence_type_proto(item))
        shape = [None] * _RANKS[kind]
        return helper.make_tensor_value_info(name, TensorProto.INT64, shape)

    def emit(self, block: Block, kind: str, op: str, inputs: Sequence[str], **attrs: object) -> str:
        name = self.name()
        block.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        if kind:
            block.values[name] = kind
        return name

    def pick(self, block: Block, *kinds: str) -> str:
        return self.random.choice([v for v, kind in block.values.items() if kind in kinds])

    def statements(self, block: Block, depth: int, most: int) -> None:
        """Some computations, branches and loops."""
        drawn: list[Callable[[Block, int], object]] = [self.binary, self.binary, self.unary]
        if depth < DEEPEST:
            drawn += [self.branch, self.loop]
        if SEQUENCE in block.values.values():
            drawn += [self.read_sequence, self.change_sequence]
        for _ in range(self.random.randint(1, most)):
            self.random.choice(drawn)(block, depth)

    def unary(self, block: Block, _depth: int) -> str:
        value = self.pick(block, SCALAR, VECTOR)
        return self.emit(block, block.values[value], self.random.choice(_UNARY), [value])

    def binary(self, block: Block, _depth: int) -> str:
        left, right = self.pick(block, SCALAR, VECTOR), self.pick(block, SCALAR, VECTOR)
        kind = VECTOR if VECTOR in (block.values[left], block.values[right]) else SCALAR
        op = self.random.choice(_BINARY)
        if op == "Mod":
            right = self.constant(self.random.randint(2, 9))
            kind = block.values[left]
        return self.small(block, self.emit(block, kind, op, [left, right]))

    def small(self, block: Block, value: str) -> str:
        """The value in a range in which no product overflows."""
        return self.emit(block, block.values[value], "Mod", [value, self.constant(MODULUS)])

    def read_sequence(self, block: Block, _depth: int) -> None:
        """An item of a sequence, which has one always, or how many there are."""
        sequence = self.pick(block, SEQUENCE)
        length = self.emit(block, SCALAR, "SequenceLength", [sequence])
        if self.random.random() < 0.5:
            place = self.emit(block, "", "Mod", [self.pick(block, SCALAR), length])
            self.emit(block, VECTOR, "SequenceAt", [sequence, place])

    def change_sequence(self, block: Block, _depth: int) -> str:
        """One more item, or one less and then two more."""
        sequence = self.pick(block, SEQUENCE)
        if self.random.random() < 0.3:
            places = [self.constant(0)] if self.random.random() < 0.5 else []
            sequence = self.emit(block, "", "SequenceErase", [sequence, *places])
            vector = self.pick(block, VECTOR)
            sequence = self.emit(block, "", "SequenceInsert", [sequence, vector])
        places = [self.constant(self.random.choice([0, -1]))] if self.random.random() < 0.3 else []
        vector = self.pick(block, VECTOR)
        return self.emit(block, SEQUENCE, "SequenceInsert", [sequence, vector, *places])

    def condition(self, block: Block) -> str:
        if self.random.random() < 0.3:
            return "flag"
        limit = self.constant(self.random.randint(-5, 400))
        return self.emit(block, "", "Less", [self.pick(block, SCALAR), limit])

    def branch(self, block: Block, depth: int) -> None:
        """An If whose branches give values of the same kinds."""
        drawn = [SCALAR, VECTOR, *[SEQUENCE] * (SEQUENCE in block.values.values())]
        kinds = [self.random.choice(drawn) for _ in range(self.random.randint(1, 2))]
        condition = self.condition(block)
        graphs = [self.branch_graph(block, depth, kinds) for _ in range(2)]
        names = [self.name() for _ in kinds]
        block.nodes.append(
            helper.make_node("If", [condition], names, then_branch=graphs[0], else_branch=graphs[1])
        )
        block.values.update(zip(names, kinds, strict=True))

    def branch_graph(self, block: Block, depth: int, kinds: Sequence[str]) -> GraphProto:
        inner = Block(dict(block.values))
        self.statements(inner, depth + 1, 2)
        outputs = [self.result(inner, self.pick(inner, kind)) for kind in kinds]
        infos = [self.info(name, kind) for name, kind in zip(outputs, kinds, strict=True)]
        return helper.make_graph(inner.nodes, "branch", [], infos)

    def result(self, block: Block, value: str) -> str:
        """An output of a graph: a name of its own, for it may be from outside."""
        return self.emit(block, "", "Identity", [value])

    def loop(self, block: Block, depth: int) -> None:
        """A Loop; what it scans out, and what grows, is summed up, so that it can be used."""
        drawn = [SCALAR, VECTOR, GROWN] if self.grows else [SCALAR, VECTOR]
        kinds = [SCALAR, *self.random.choices(drawn, k=self.random.randint(0, 2))]
        if self.has_sequences:
            kinds.append(SEQUENCE)
        starts = [self.start(block, kind) for kind in kinds]
        count = self.random.choice([0, 0, 1, 2]) if self.grows else 0
        scans = self.random.choices([SCALAR, VECTOR], k=count)
        way = self.random.choice(["input", "both", "constant", "condition"])
        trips = {"condition": "", "constant": self.constant(self.random.randint(0, 4))}.get(way)
        if trips is None:
            trips = self.emit(block, "", "Min", ["m", self.constant(6 if depth == 0 else 3)])
        first = self.condition(block) if way in ("both", "condition") else ""
        body = self.body(block, depth, kinds, scans, way)
        names = [self.name() for _ in (*kinds, *scans)]
        block.nodes.append(helper.make_node("Loop", [trips, first, *starts], names, body=body))
        for name, kind in zip(names, kinds, strict=False):
            block.values[name] = kind
            if kind == GROWN:
                axes = self.constant([0])
                self.emit(block, SCALAR, "ReduceSum", [name, axes], keepdims=0)
            if kind == SEQUENCE:
                self.joined(block, name)
        for name, kind in zip(names[len(kinds) :], scans, strict=True):
            axes = self.constant([0] if kind == SCALAR else [0, 1])
            # of no step, ONNX Runtime has rows of no elements where the length is not known
            total = self.emit(block, SCALAR, "ReduceSum", [name, axes], keepdims=0)
            self.small(block, total)

    def start(self, block: Block, kind: str) -> str:
        """A value with which a loop begins."""
        if kind != SEQUENCE:
            return self.pick(block, VECTOR if kind == GROWN else kind)
        if SEQUENCE in block.values.values() and self.random.random() < 0.5:
            return self.pick(block, SEQUENCE)
        return self.emit(block, "", "SequenceConstruct", [self.pick(block, VECTOR)])

    def joined(self, block: Block, sequence: str) -> None:
        """The sum of all items of a sequence, and how many elements they have together."""
        new_axis = self.random.randint(0, 1)
        whole = self.emit(
            block, "", "ConcatFromSequence", [sequence], axis=self.random.randint(-1, 0),
            new_axis=new_axis,
        )  # fmt: skip
        axes = self.constant([0, 1] if new_axis else [0])
        self.small(block, self.emit(block, SCALAR, "ReduceSum", [whole, axes], keepdims=0))
        self.emit(block, SCALAR, "Size", [whole])

    def body(
        self, block: Block, depth: int, kinds: Sequence[str], scans: Sequence[str], way: str
    ) -> GraphProto:
        step, going = self.name(), self.name()
        states = [self.name() for _ in kinds]
        inner = Block({**block.values, step: SCALAR})
        inner.values.update(zip(states, kinds, strict=True))
        self.statements(inner, depth + 1, 4)
        again = going
        if way == "condition":
            again = self.emit(inner, "", "Less", [step, self.constant(self.random.randint(0, 4))])
        elif way == "both":
            again = self.condition(inner)
        following = [self.following(inner, s, kind) for s, kind in zip(states, kinds, strict=True)]
        rows = [self.pick(inner, kind) for kind in scans]
        outputs = [self.result(inner, value) for value in (again, *following, *rows)]
        inputs = [
            helper.make_tensor_value_info(step, TensorProto.INT64, []),
            helper.make_tensor_value_info(going, TensorProto.BOOL, []),
            *[self.info(s, kind) for s, kind in zip(states, kinds, strict=True)],
        ]
        infos = [
            helper.make_tensor_value_info(outputs[0], TensorProto.BOOL, []),
            *[self.info(s, k) for s, k in zip(outputs[1:], (*kinds, *scans), strict=True)],
        ]
        return helper.make_graph(inner.nodes, "body", inputs, infos)

    def following(self, block: Block, state: str, kind: str) -> str:
        """The next value of a state: often another value of the step; a grown one gets longer."""
        if kind == SEQUENCE:
            return self.change_sequence(block, 0)
        if kind != GROWN:
            return self.pick(block, kind)
        if self.random.random() < 0.2:
            return state
        return self.emit(block, "", "Concat", [state, self.pick(block, VECTOR)], axis=0)
