"""ShareValues: what several branches of an expression need is computed before them.

Of ``y = T.if_then_else(c, x, 0) + x`` the first use of ``x`` is in a branch, and a value that was
computed in a branch does not hold after it. Computed at both places, thirty such steps would be a
billion instructions. So an object that has a choice in it and stands at several places gets a
variable before the outermost expression::

    T.if_then_else(c, x, 0) + x          T.Let(T.if_then_else(c, v, 0) + v, where={v: x})

That holds for what is surely needed. What is needed perhaps, and stands at very many places, is
computed early where it cannot fault. Where it can, it is computed if it will be needed: ``need``
follows the conditions around its uses, which are evaluated in the order in which they would be::

    T.if_then_else(c, x, 0) * T.if_then_else(d, x, 1)

    need: c or d      v: T.if_then_else(need, x, 0)
    T.if_then_else(c, v, 0) * T.if_then_else(d, v, 1)
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.ir.sharing import parts_of, post_order_of, rebound
from weft.ir.transform import Pass
from weft.tir import expr as e
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.accesses import is_within
from weft.tir.lowering.facts import StatementFacts, facts_of, is_call
from weft.tir.lowering.faults import Faults
from weft.tir.lowering.proofs import Bounds
from weft.tir.lowering.ranges import Ranges
from weft.tir.stmt import DeclBuffer
from weft.tir.transform.prim_func_pass import make_pass

_MANY: Final = 16
"""Ways to a value beyond which it is computed before it is known to be needed."""
_TRUE: Final = IntImm("bool", 1)


def arms_of(node: Any) -> tuple[tuple[Any, bool], ...]:
    """The parts that are computed on a condition, each with what the condition must be."""
    if isinstance(node, e.Select):
        return (node.true_value, True), (node.false_value, False)
    if isinstance(node, e.And | e.Or):
        return ((node.b, isinstance(node, e.And)),)
    if is_call(node, "if_then_else"):
        return (node.args[1], True), (node.args[2], False)
    return ()


def _condition_of(node: Any) -> Any:
    if isinstance(node, e.Select):
        return node.condition
    return node.a if isinstance(node, e.And | e.Or) else node.args[0]


def _values_of(node: Any) -> list[Any]:
    """The expressions right below that are values of their own; a Let's are left to it."""
    if isinstance(node, e.Let):
        return [node.value]
    return [part for part in parts_of(node) if isinstance(part, PrimExpr)]


def _without_arms(node: Any) -> list[Any]:
    arms = {id(arm) for arm, _ in arms_of(node)}
    return [part for part in _values_of(node) if id(part) not in arms]


class Uses:
    """The objects of an expression, and which of them to compute first."""

    def __init__(self, root: PrimExpr) -> None:
        self.root = root
        self.order = post_order_of(root, _values_of)
        self.ways: dict[int, int] = {id(root): 1}
        self.sure = {id(root)}
        in_branch: set[int] = set()
        uses = dict.fromkeys(map(id, self.order), 0)
        for node in reversed(self.order):
            for part in _values_of(node):
                uses[id(part)] += 1
                self.ways[id(part)] = self.ways.get(id(part), 0) + self.ways[id(node)]
                if id(node) in in_branch:
                    in_branch.add(id(part))
            in_branch.update([id(arm) for arm, _ in arms_of(node)])
            if id(node) in self.sure:
                self.sure.update(map(id, _surely_needed(node)))
        has_choice: set[int] = set()
        self.repeated: list[Any] = []
        """Objects with a choice in them that stand in a branch and elsewhere, parts first."""
        for node in self.order:
            if arms_of(node) or any(id(part) in has_choice for part in _values_of(node)):
                has_choice.add(id(node))
                if uses[id(node)] > 1 and id(node) in in_branch:
                    self.repeated.append(node)


def _surely_needed(node: Any) -> list[Any]:
    """What is computed with a node: its parts without its arms, and what these have in common."""
    parts, arms = _without_arms(node), arms_of(node)
    if len(arms) == 2:
        yes, no = (_computed_with(arm) for arm, _ in arms)
        parts += [part for key, part in yes.items() if key in no]
    return parts


def _computed_with(arm: Any) -> dict[int, Any]:
    """What is computed with an arm, as far as the next choice."""
    reached: dict[int, Any] = {}
    waiting = [arm]
    while waiting:
        node = waiting.pop()
        if id(node) not in reached:
            reached[id(node)] = node
            waiting += _without_arms(node)
    return reached


class _Needs:
    """When the repeated objects of an expression are needed, from the outermost to their parts.

    ``early`` are those that get a variable. An object's need is known once that of all that uses it
    is. It is an expression over conditions; one that holds an object with a variable is no use, as
    needs are computed first.
    """

    def __init__(self, uses: Uses, faults: Faults) -> None:
        self.uses = uses
        self.early: dict[int, PrimExpr] = {}
        """Object (by ``id``) -> its need; ``_TRUE`` where it is computed in any case."""
        self.flags: list[tuple[e.Var, PrimExpr]] = []
        """Variables of needs, in the order of their definitions."""
        self._reached: dict[int, PrimExpr | None] = {}
        repeated = {id(node) for node in uses.repeated}
        self._open = _with_any(uses.order, repeated)
        self._spread(uses.root, _TRUE, repeated)
        for node in reversed(uses.order):
            if id(node) in repeated:
                self._decide(node, faults, repeated)

    def _decide(self, node: Any, faults: Faults, repeated: set[int]) -> None:
        key = id(node)
        need: PrimExpr | None = self._reached.get(key)
        if key in self.uses.sure:
            need = _TRUE
        elif self.uses.ways[key] <= _MANY:
            need = None
        elif not faults.can_fault(node):
            need = _TRUE
        elif node.dtype.lanes != 1 or node.dtype.is_handle:
            need = None
        if need is not None:
            if not isinstance(need, e.Var | IntImm):
                self.flags.append((e.Var("need", "bool"), need))
                need = self.flags[-1][0]
            self.early[key] = need
        self._spread(node, need if need is not None else self._reached.get(key), repeated)

    def _spread(self, unit: Any, need: PrimExpr | None, repeated: set[int]) -> None:
        """Add the ways from a value that is computed where ``need`` holds to those in it."""
        reached: dict[int, PrimExpr | None] = {id(unit): need}
        inside = post_order_of(
            unit, lambda node: [] if node is not unit and id(node) in repeated
            else _values_of(node)
        )  # fmt: skip
        for node in reversed(inside):
            here = reached[id(node)]
            if node is not unit and id(node) in repeated:
                self._join(self._reached, node, here)
                continue
            arms = {id(arm): holds for arm, holds in arms_of(node)}
            for part in _without_arms(node):
                self._join(reached, part, here)
            for arm, holds in arms_of(node) if arms else ():
                self._join(reached, arm, self._under(here, _condition_of(node), holds))

    def _under(self, here: PrimExpr | None, condition: Any, holds: bool) -> PrimExpr | None:
        if here is None or condition.dtype.lanes != 1 or id(condition) in self._open:
            return None
        flag = condition if holds else e.Not(condition)
        return flag if here is _TRUE else e.And(here, flag)

    @staticmethod
    def _join(reached: dict[int, PrimExpr | None], node: Any, way: PrimExpr | None) -> None:
        """One more way to a node. None: there is one whose condition is not known early."""
        if id(node) not in reached:
            reached[id(node)] = way
            return
        before = reached[id(node)]
        if before is _TRUE or way is _TRUE:
            reached[id(node)] = _TRUE
        elif before is None or way is None:
            reached[id(node)] = None
        elif before is not way:
            reached[id(node)] = e.Or(before, way)


def _with_any(order: list[Any], chosen: set[int]) -> set[int]:
    """The objects that are, or hold, one of those chosen."""
    holding: set[int] = set()
    for node in order:
        if id(node) in chosen or any(id(part) in holding for part in _values_of(node)):
            holding.add(id(node))
    return holding


class _Rename(Mutator):
    """Puts variables in the places of objects."""

    def __init__(self) -> None:
        self.names: dict[int, e.Var] = {}

    def visit(self, node: Any) -> Any:
        name = self.names.get(id(node))
        return super().visit(node) if name is None else name

    def visit_Buffer(self, buffer: Any) -> Any:
        return buffer


def shared(root: PrimExpr, faults: Faults) -> PrimExpr:
    """The expression, with variables for objects that several branches need."""
    if not collect(root, (e.Select, e.And, e.Or)) and not any(map(arms_of, collect(root, e.Call))):
        return root
    uses = Uses(root)
    if not uses.repeated or rebound(root):
        return root
    calls = collect(root, e.Call)
    if any(effect_of(call) >= CallEffectKind.UpdateState for call in calls):
        return root  # what is loaded before and after it differs
    needs = _Needs(uses, faults)
    rename, lets = _Rename(), list(needs.flags)
    for node in uses.repeated:
        need = needs.early.get(id(node))
        if need is None or node is root:
            continue
        var = e.Var("shared", node.dtype)
        value = rename.visit(node)
        lets.append((var, value if need is _TRUE else _if_needed(need, value)))
        rename.names[id(node)] = var
    body: PrimExpr = rename.visit(root)
    for var, value in reversed(lets):
        body = e.Let(var, value, body)
    return body


def _if_needed(need: PrimExpr, value: PrimExpr) -> PrimExpr:
    return op.if_then_else(need, value, op.const(0, value.dtype))


class _ShareValues(StatementFacts):
    def __init__(
        self, ranges: Ranges, bounds: Bounds, buffers: list[Buffer], checks: bool
    ) -> None:
        super().__init__(ranges, bounds)
        self.checks = checks
        self.known = {id(buffer): buffer for buffer in buffers}

    def is_proved(self, load: BufferLoad) -> bool:
        is_tested = self.checks and id(load.buffer) in self.known
        return is_tested and is_within(self.bounds, load.indices, load.buffer.shape)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return shared(expr, Faults(self.ranges, self.is_proved, {}))


def share_values(func: PrimFunc, checks: bool = True) -> PrimFunc:
    """The function whose expressions compute no value twice (module docstring)."""
    if not any(map(arms_of, collect(func.body, (e.Select, e.And, e.Or, e.Call)))):
        return func
    buffers = [stmt.buffer for stmt in collect(func.body, DeclBuffer)]
    buffers += func.buffer_map.values()
    return func.with_(body=_ShareValues(*facts_of(func), buffers, checks).visit(func.body))


def ShareValues(checks: bool = True) -> Pass:
    """The pass; without ``checks`` of bounds every load counts as able to fault."""
    return make_pass("ShareValues", lambda func: share_values(func, checks))
