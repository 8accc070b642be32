"""Choices after which the rest of a graph is another one, or fits one branch only.

PyTorch's exporter writes ``x.squeeze(-1)`` as an If: where the last extent is 1, the result has one
dimension less. What follows has other shapes in each case, so the rest of the graph is translated
once behind each branch::

    if extent == 1: squeeze, rest    else: identity, rest

Mostly the rest fits one of the two (a layer takes no tensor of the other rank). Then that branch is
translated alone, and the program stops with the reason where the condition says otherwise.

A Squeeze without axes is such a choice for each extent that may turn out to be 1. Where the results
of the graph have another rank in each case, they are tensors of unknown rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.relax import op
from weft.relax.expr import Expr, If, PrimValue, SeqExpr, Tuple
from weft.relax.frontend.onnx.blocks import Taken, opened_block
from weft.relax.frontend.onnx.context import Context, Translation
from weft.relax.frontend.onnx.errors import ConstantNeededError
from weft.relax.frontend.onnx.protos import NodeProto
from weft.relax.frontend.onnx.results import all_rebuilt, flat_expr, structure
from weft.relax.frontend.onnx.scope import Scope
from weft.relax.frontend.onnx.value import GraphValue, Value
from weft.support.errors import TVMError
from weft.tir.op import logical_not

DEEPEST: Final = 8
"""So many choices whose conditions are data may follow each other: each doubles the work."""
BRANCHES: Final = ("its then_branch", "its else_branch")

Branch: TypeAlias = Callable[[], list[GraphValue | None]]
"""Emits a branch where it is called, and returns the outputs of the node."""


class BranchesDifferError(ConstantNeededError):
    """What follows an If depends on the branch, or a branch does not fit the inputs."""

    def __init__(
        self,
        message: str,
        context: Context,
        condition: Value,
        branches: Sequence[Branch],
        names: tuple[str, str] = BRANCHES,
    ) -> None:
        super().__init__(message, condition.sources)
        self.context, self.condition, self.branches = context, condition, branches
        self.names = names


@dataclass
class Rest:
    """What follows a choice: the nodes behind it, and the names that are wanted of them."""

    node: NodeProto
    nodes: Sequence[NodeProto]
    scope: Scope
    outputs: Sequence[str]

    def enter(self, walk: Translation, branch: Branch) -> None:
        """Translate a branch here, and what follows it."""
        try:
            outputs = branch()
        except BranchesDifferError as choice:
            if choice.context.scope is not self.scope:
                raise  # of a graph inside of the branch
            choose_rest(walk, choice, self)
            return
        self.scope.set_outputs(self.node, outputs)
        walk.nodes(self.nodes, self.scope, self.outputs)


@dataclass
class Attempt:
    """A branch with the rest behind it: the bindings, and the values of the outputs."""

    body: SeqExpr
    values: list[GraphValue]


def condition_key(condition: Value) -> str:
    """What tells conditions apart; empty for one that is computed of data."""
    return "" if condition.claim is None else str(condition.claim)


def choose_rest(walk: Translation, choice: BranchesDifferError, rest: Rest) -> None:
    """Translate the rest of a graph behind the branches of a choice, and enter its outputs.

    Raises the choice, or what it comes from, where neither branch fits, or both do with results of
    other structures.
    """
    key = condition_key(choice.condition)
    if walk.is_looping or (not key and walk.choices >= DEEPEST):
        raise choice.__cause__ or choice
    before = dict(walk.taken)
    walk.choices += not key
    attempts = []
    for index, branch in enumerate(choice.branches):
        if key:  # the same question behind the branch has the same answer
            walk.taken[key] = Taken(index, "")
        attempts.append(_attempt(walk, branch, rest))
        walk.taken = dict(before)
    walk.choices -= not key
    first, second = attempts
    if isinstance(first, Attempt) and isinstance(second, Attempt):
        _join(choice, first, second, rest)
        return
    if isinstance(first, TVMError) and isinstance(second, TVMError):
        raise choice.__cause__ or choice
    index = 1 if isinstance(first, TVMError) else 0
    taken = Taken(index, str(attempts[1 - index]).partition("\n")[0])
    if key:
        walk.taken[key] = taken
    insist(walk, choice.context, choice.condition, taken, choice.names)
    rest.enter(walk, choice.branches[index])
    walk.taken = before


def insist(
    walk: Translation,
    context: Context,
    condition: Value,
    taken: Taken,
    names: tuple[str, str] = BRANCHES,
) -> None:
    """Stop the program where the condition does not choose the branch that was taken."""
    holds: Expr
    if condition.claim is not None:
        holds = PrimValue(condition.claim if taken.index == 0 else logical_not(condition.claim))
    else:
        flag = context.emit(op.reshape(condition.expr, []))
        holds = flag if taken.index == 0 else context.emit(op.logical_not(flag))
    left, wanted = names[1 - taken.index], "true" if taken.index == 0 else "false"
    text = (
        f"{context.where}: expected a condition that is {wanted}; {left} was left out when the "
        f"model was imported, because it does not fit: {taken.reason}"
    )
    context.builder.emit(op.assert_op(holds, format=text.replace("{", "{{").replace("}", "}}")))
    walk.is_pure = False


def _attempt(walk: Translation, branch: Branch, rest: Rest) -> Attempt | TVMError:
    """The branch and what follows in a block of their own, or why they do not fit."""
    scope, names = rest.scope, dict(rest.scope.names)
    try:
        with opened_block(walk.builder) as opened:
            rest.enter(walk, branch)
            values = [scope.get(name) for name in rest.outputs]
            exprs = [flat_expr(value) for value in values]
            result = walk.builder.emit(exprs[0] if len(exprs) == 1 else Tuple(exprs))
        return Attempt(opened.ending_in(result), [item for item in values if item is not None])
    except TVMError as error:
        return error
    finally:
        scope.names = names


def _can_be_one(first: GraphValue, second: GraphValue) -> bool:
    """Whether a value may be the one or the other: tensors of one type may differ in rank."""
    if isinstance(first, Value) and isinstance(second, Value):
        return first.elem == second.elem
    return structure(first) == structure(second)


def _join(choice: BranchesDifferError, first: Attempt, second: Attempt, rest: Rest) -> None:
    """The choice of two blocks, each of which ends in what is wanted."""
    context = choice.context
    pairs = list(zip(first.values, second.values, strict=True))
    if not all(_can_be_one(first_value, second_value) for first_value, second_value in pairs):
        raise choice
    flag = choice.condition.expr
    if choice.condition.rank != 0:
        flag = context.emit(op.reshape(flag, []))
    chosen = context.emit(If(flag, first.body, second.body))
    values = all_rebuilt(context, chosen, first.values, second.values)
    for name, value in zip(rest.outputs, values, strict=True):
        rest.scope.set(name, value)
