"""Decides which bindings of a dataflow block are fused, for FuseOps.

The graph has a node for each binding, and an edge from each node to those that depend on it. The
immediate post-dominator of a node is the nearest node that every path from it to the outputs passes
through. A node may join its immediate post-dominator, together with all nodes in between, if the
patterns of these groups allow it (``_may_join``). So nothing is computed twice, and only the last
node of a group (and outputs of the block) are used outside of it.

Source: Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning" (OSDI
2018), section 3, with the phases of Relay's FuseOps. Dominators are computed by intersecting paths
in the tree, as in Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001); one
sweep suffices, since the graph has no cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.relax.analysis.op_pattern import OpPatternKind

ELEMWISE, BROADCAST, INJECTIVE, REDUCE, OUT_FUSABLE, OPAQUE = (
    OpPatternKind.ELEMWISE,
    OpPatternKind.BROADCAST,
    OpPatternKind.INJECTIVE,
    OpPatternKind.COMM_REDUCE,
    OpPatternKind.OUT_ELEMWISE_FUSABLE,
    OpPatternKind.OPAQUE,
)


@dataclass
class FusionNode:
    """A binding as fusion sees it."""

    pattern: OpPatternKind
    is_output: bool
    """Whether the value must not be fused away: it is used outside of the block, or it is gathered
    and chooses what another gather reads."""
    users: list[tuple[int, OpPatternKind]] = field(default_factory=list)
    """(position, pattern) of each node that depends on it."""
    why_kept: str = "its result is used outside of the block"
    """Why the value must not be fused away, if it must not."""


class _Dominator:
    """A node of the post-dominator tree."""

    __slots__ = ("depth", "index", "parent", "pattern")

    def __init__(self, index: int, parent: _Dominator | None, pattern: OpPatternKind) -> None:
        self.index, self.parent, self.pattern = index, parent, pattern
        self.depth: int = 1 if parent is None else parent.depth + 1


def post_dominators(nodes: Sequence[FusionNode]) -> list[_Dominator]:
    """For each node, its immediate post-dominator and the widest pattern on the way there.

    In ``nodes``, users come after what they use. The time is linear, plus walks up the tree, which
    are as long as the branches that meet there.
    """
    tree: list[_Dominator] = []
    known: dict[int, _Dominator] = {}
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        parent, pattern = None, OPAQUE
        if not node.is_output and node.users:
            pattern = max(kind for _, kind in node.users)
            parent = known[node.users[0][0]]
            for user, _ in node.users[1:]:
                parent, widest = _meet(parent, known[user])
                pattern = max(pattern, widest)
                if parent is None:
                    break
        known[index] = _Dominator(index, parent, pattern)
        tree.append(known[index])
    return tree[::-1]


def _meet(
    lhs: _Dominator | None, rhs: _Dominator | None
) -> tuple[_Dominator | None, OpPatternKind]:
    """The nearest common ancestor of two nodes, and the widest pattern on the way to it."""
    widest = ELEMWISE
    while lhs is not rhs:
        if lhs is None or rhs is None:
            return None, widest
        if lhs.depth >= rhs.depth:
            widest, climb = max(widest, lhs.pattern), lhs.parent
            if lhs.depth == rhs.depth:
                widest, rhs = max(widest, rhs.pattern), rhs.parent
            lhs = climb
        else:
            widest, rhs = max(widest, rhs.pattern), rhs.parent
    return lhs, widest


class _Groups:
    """A union-find forest; each group has the pattern of its root and a size."""

    def __init__(self, nodes: Sequence[FusionNode]) -> None:
        self.parent = list(range(len(nodes)))
        self.pattern = [node.pattern for node in nodes]
        self.has_anchor = [node.pattern is OUT_FUSABLE for node in nodes]
        self.size = [1] * len(nodes)

    def root(self, index: int) -> int:
        head = index
        while self.parent[head] != head:
            head = self.parent[head]
        while self.parent[index] != head:
            self.parent[index], index = head, self.parent[index]
        return head

    def merge(self, child: int, target: int) -> None:
        """Let the group of ``child`` join that of ``target``; an OUT_FUSABLE child passes on its
        pattern.
        """
        child, target = self.root(child), self.root(target)
        if child == target:
            return
        self.parent[child] = target
        self.size[target] += self.size[child]
        if self.has_anchor[child]:
            self.has_anchor[target] = True
            self.pattern[target] = max(self.pattern[child], self.pattern[target])


def partition(nodes: Sequence[FusionNode], max_depth: int) -> list[int]:
    """For each node, the position of the node that stands for its group.

    A group has at most ``max_depth`` nodes.
    """
    groups = _Groups(nodes)
    tree = post_dominators(nodes)
    for phase in (0, 1):  # injective operators join last: products take their followers first
        for index in range(len(nodes)):
            _try_join(nodes, tree, groups, index, phase, max_depth)
    return [groups.root(index) for index in range(len(nodes))]


def _try_join(
    nodes: Sequence[FusionNode],
    tree: Sequence[_Dominator],
    groups: _Groups,
    index: int,
    phase: int,
    max_depth: int,
) -> None:
    """Let a node join its post-dominator, if the patterns allow it."""
    dominator = tree[index].parent
    if dominator is None or groups.root(index) == groups.root(dominator.index):
        return
    kind = groups.pattern[index]
    if not _wants_to_join(kind, tree[index].pattern, phase):
        return
    sink = dominator.index
    between = _nodes_between(nodes, index, sink, max_depth)
    if between is None:
        return
    inner = {groups.root(node) for node in between}
    joined = {*inner, groups.root(index), groups.root(sink)}
    if sum(groups.size[root] for root in joined) > max_depth:
        return
    if _may_join(kind, [groups.pattern[root] for root in inner], groups.pattern[groups.root(sink)]):
        for node in (index, *between):
            groups.merge(node, sink)


def _nodes_between(
    nodes: Sequence[FusionNode], source: int, sink: int, limit: int
) -> list[int] | None:
    """The nodes between ``source`` and ``sink``; None if there are more than ``limit``."""
    between: dict[int, None] = {}
    todo = [user for user, _ in nodes[source].users]
    while todo:
        node = todo.pop()
        if node == sink or node in between:
            continue
        between[node] = None
        if len(between) + 2 > limit:
            return None
        todo.extend([user for user, _ in nodes[node].users])
    return [*between]


def _wants_to_join(kind: OpPatternKind, on_the_way: OpPatternKind, phase: int) -> bool:
    """Whether a group of pattern ``kind`` is fused in this phase.

    ``on_the_way`` is the widest pattern on the way to the sink.
    """
    if kind is OUT_FUSABLE:
        return phase == 0 and on_the_way is ELEMWISE
    if kind <= BROADCAST:
        return on_the_way <= REDUCE
    return kind is INJECTIVE and phase == 1


def _may_join(kind: OpPatternKind, inner: Sequence[OpPatternKind], sink: OpPatternKind) -> bool:
    """Whether a group may join ``sink``, given the patterns of the groups in between."""
    if kind is OUT_FUSABLE:
        return all(pattern <= BROADCAST for pattern in (*inner, sink))
    if kind <= BROADCAST:
        return all(pattern <= INJECTIVE for pattern in inner) and sink <= OUT_FUSABLE
    return all(pattern <= INJECTIVE for pattern in (*inner, sink))


_NAMES: Final[Mapping[OpPatternKind, str]] = {
    ELEMWISE: "element-wise", BROADCAST: "a broadcast", INJECTIVE: "a rearrangement",
    REDUCE: "a reduction", OUT_FUSABLE: "an operator like a product or a window",
    OPAQUE: "an operator of no known form",
}  # fmt: skip


def why_apart(nodes: Sequence[FusionNode], roots: Sequence[int]) -> Iterator[tuple[int, int, str]]:
    """(producer, consumer, reason) of each pair of neighbours in different groups.

    ``roots`` is what ``partition`` gave for ``nodes``.

    >>> product = FusionNode(OUT_FUSABLE, False, [(1, REDUCE)])
    >>> [(_, _, reason)] = why_apart([product, FusionNode(REDUCE, True)], [0, 1])
    >>> reason.partition(" takes ")[2]
    'only element-wise followers, not a reduction'
    """
    tree = post_dominators(nodes)
    widest: dict[int, OpPatternKind] = {}
    for node, root in zip(nodes, roots, strict=True):
        widest[root] = max(widest.get(root, ELEMWISE), node.pattern)
    for index, node in enumerate(nodes):
        for user, _ in node.users:
            if roots[index] != roots[user]:
                kinds = widest[roots[index]], widest[roots[user]]
                yield index, user, _reason(node, tree[index], kinds)


def _reason(
    node: FusionNode, place: _Dominator, groups: tuple[OpPatternKind, OpPatternKind]
) -> str:
    """Why a node does not join the group of its user; ``groups`` are the patterns of both."""
    kind, sink = groups
    if node.is_output:
        return node.why_kept
    if OPAQUE in groups:
        return f"{_NAMES[OPAQUE]} is never fused"
    if place.parent is None:
        return "its users do not meet in one operator, so it would be computed more than once"
    if kind is OUT_FUSABLE:
        widest = _NAMES[max(place.pattern, sink)]
        return f"{_NAMES[kind]} takes only element-wise followers, not {widest}"
    if kind is REDUCE:
        return "a reduction ends its group"
    if kind is INJECTIVE and sink > INJECTIVE:
        return f"{_NAMES[kind]} is not repeated inside of {_NAMES[sink]}"
    if place.pattern > INJECTIVE:
        return f"on the way to where its users meet is {_NAMES[place.pattern]}"
    if sink is OUT_FUSABLE:
        return f"{_NAMES[sink]} reads each element several times, which would repeat it"
    return "the group would be too large, or an operator between them does not fit"


__all__ = ["FusionNode", "partition", "post_dominators", "why_apart"]
