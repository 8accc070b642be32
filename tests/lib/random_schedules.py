"""Random schedules: any sequence of primitives either keeps the meaning or is refused.

A schedule is a workload's seed and a list of moves. A move names blocks and counts loops, so that
it can be made again after others were left out: ``shrunk`` makes a failing list short, ``script``
writes it down as a program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.lib.random_workloads import Workload, random_workload
from weft.ir.structural import structural_equal
from weft.support.errors import InternalError, TVMError
from weft.testing.schedules import assert_same_meaning
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.state import ScheduleDebugMask
from weft.tir.schedule.testing import verify_trace_roundtrip
from weft.tir.stmt import Block, BlockRealize
from weft.tir.transform.simplify import Simplify

MAPS: dict[int, tuple[str, ...]] = {
    1: ("lambda i: (i // 4, i % 4)", "lambda i: (i,)", "lambda i: (i // 2, i % 2)"),
    2: ("lambda i, j: (j, i)", "lambda i, j: (i, j // 4, j % 4)", "lambda i, j: (i * 1, j)",
        "lambda i, j: (i // 2, j, i % 2)"),
    3: ("lambda i, j, k: (k, i, j)", "lambda i, j, k: (i, j, k // 2, k % 2)"),
}  # fmt: skip


@dataclass(frozen=True)
class Move:
    """One call: the primitive, and its arguments as text over ``sch``, ``block`` and ``loops``."""

    primitive: str
    block: str
    text: str

    def lines(self) -> list[str]:
        """The call as statements."""
        lines = [f"block = sch.get_block({self.block!r})"]
        if "loops" in self.text:
            lines.append("loops = sch.get_loops(block)")
        return [*lines, f"sch.{self.primitive}({self.text})"]

    def make(self, sch: Schedule) -> None:
        """Make the call; ScheduleError and argument errors are refusals."""
        exec("\n".join(self.lines()), {"sch": sch})  # noqa: S102 - our own text


Chooser = Callable[[random.Random, Schedule, Block, int], str | None]


def _loop(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    return f"loops[{r.randrange(loops)}]" if loops else None


def _split(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    if not loops:
        return None
    factors: list[Any] = [r.choice((1, 2, 3, 4, 5, 8)) for _ in range(r.randint(1, 2))]
    factors.insert(r.randrange(len(factors) + 1), None)
    return f"loops[{r.randrange(loops)}], {factors}"


def _fuse(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    if loops < 2:
        return None
    first = r.randrange(loops - 1)
    return f"*loops[{first}:{r.randint(first + 2, min(loops, first + 3))}]"


def _reorder(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    if loops < 2:
        return None
    chosen = r.sample(range(loops), r.randint(2, loops))
    return ", ".join([f"loops[{index}]" for index in chosen])


def _block_only(_r: random.Random, _sch: Schedule, _block: Block, _loops: int) -> str | None:
    return "block"


def _block_at_own_loop(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    return f"block, loops[{r.randrange(loops)}]" if loops else None


def _block_at_other_loop(r: random.Random, sch: Schedule, block: Block, _: int) -> str | None:
    others = [name for name in block_names(sch) if name != block.name_hint]
    if not others:
        return None
    other = r.choice(others)
    return f"block, sch.get_loops({other!r})[{r.randrange(4)}]"


def _read(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    scope = r.choice(("global", "local", "shared"))
    return f"block, {r.randrange(len(block.reads))}, {scope!r}" if block.reads else None


def _write(r: random.Random, _sch: Schedule, _block: Block, _: int) -> str | None:
    return f"block, 0, {r.choice(('global', 'local'))!r}"


def _place(r: random.Random, block: Block) -> tuple[str, int]:
    side = r.choice(("read", "write")) if block.reads else "write"
    index = r.randrange(len(block.reads)) if side == "read" else 0
    regions = block.reads if side == "read" else block.writes
    return f"({side!r}, {index})", len(regions[index].region)


def _buffer(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    return f"block, {_place(r, block)[0]}" if block.writes else None


def _layout(r: random.Random, sch: Schedule, block: Block, _: int) -> str | None:
    """Of buffers inside only: a parameter's new layout would be the caller's to give."""
    parameters = list(sch.mod["main"].buffer_map.values())
    if not block.writes:
        return None
    place, rank = _place(r, block)
    regions = block.reads if place.startswith("('read") else block.writes
    if any(r.buffer in parameters for r in regions):
        return None
    return f"block, {place}, {r.choice(MAPS[rank])}" if rank in MAPS else None


def _block_layout(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    rank = len(block.iter_vars)
    return f"block, {r.choice(MAPS[rank])}" if rank in MAPS else None


def _align(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    rank = len(block.writes[0].region) if block.writes else 0
    if not rank:
        return None
    return f"block, 0, {r.randrange(rank)}, {r.choice((4, 8))}, {r.randrange(3)}"


def _factor(r: random.Random, _sch: Schedule, block: Block, loops: int) -> str | None:
    rank = len(block.writes[0].region) if block.writes else 0
    return f"loops[{r.randrange(loops)}], {r.randint(0, rank)}" if loops else None


def _axes(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    order = list(range(len(block.iter_vars)))
    r.shuffle(order)
    return f"block, {order}" if order else None


def _padding(r: random.Random, _sch: Schedule, block: Block, _: int) -> str | None:
    return f"block, {[r.choice((1, 2, 4)) for _ in block.iter_vars]}" if block.iter_vars else None


def _pragma(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    key = "'pragma_auto_unroll_max_step'"
    return f"loops[{r.randrange(loops)}], {key}, {r.choice((4, 16))}" if loops else None


def _partition(r: random.Random, _sch: Schedule, _block: Block, loops: int) -> str | None:
    return f"loops[{r.randrange(loops)}], [{r.choice((1, 2, 3))}, None]" if loops else None


CHOOSERS: dict[str, tuple[Chooser, int]] = {
    "split": (_split, 8), "fuse": (_fuse, 5), "reorder": (_reorder, 6),
    "parallel": (_loop, 2), "vectorize": (_loop, 2), "unroll": (_loop, 2), "annotate": (_pragma, 1),
    "compute_inline": (_block_only, 3), "reverse_compute_inline": (_block_only, 3),
    "compute_at": (_block_at_other_loop, 7), "reverse_compute_at": (_block_at_other_loop, 7),
    "cache_read": (_read, 3), "cache_write": (_write, 3), "reindex": (_buffer, 2),
    "decompose_reduction": (_block_at_own_loop, 4), "rfactor": (_factor, 4),
    "transform_layout": (_layout, 4), "transform_block_layout": (_block_layout, 2),
    "blockize": (_loop, 2), "storage_align": (_align, 1), "reorder_block_iter_var": (_axes, 1),
    "pad_einsum": (_padding, 1), "decompose_padding": (_block_at_own_loop, 1),
    "rolling_buffer": (_write, 0), "add_unit_loop": (_block_only, 1),
    "loop_partition": (_partition, 2),
    "set_scope": (_write, 1),
}  # fmt: skip
"""Primitive -> how its arguments are drawn, and how often it is."""


def block_names(sch: Schedule) -> list[str]:
    """The names of the blocks of ``main``, but the root."""
    root = sch.state.roots[sch._function_named("main")].stmt
    assert isinstance(root, Block)
    blocks = [item for item in tree.all_references(root) if isinstance(item, Block)]
    return [block.name_hint for block in blocks[1:]]


def random_move(r: random.Random, sch: Schedule) -> Move | None:
    """A move for the schedule as it stands; it may turn out to be refused."""
    known = {name: entry for name, entry in CHOOSERS.items() if hasattr(Schedule, name)}
    name = r.choices(list(known), [weight for _, weight in known.values()])[0]
    names = block_names(sch)
    chosen = r.choice(names)
    if names.count(chosen) > 1:
        return None
    sref = sch.state.sref_of(_block_named(sch, chosen))
    block = sref.stmt
    assert isinstance(block, Block)
    loops, above = 0, sref.parent
    while above is not None and not isinstance(above.stmt, Block):
        loops, above = loops + 1, above.parent
    text = known[name][0](r, sch, block, loops)
    return None if text is None else Move(name, chosen, text)


def _block_named(sch: Schedule, name: str) -> Block:
    body = sch.mod["main"].body
    assert isinstance(body, BlockRealize)
    for item in tree.all_references(body):
        if isinstance(item, Block) and item.name_hint == name:
            return item
    raise InternalError(f"random schedules: there is no block {name}")


def random_schedule(seed: int, length: int = 8) -> tuple[Workload, list[Move], str | None]:
    """A workload, the moves that were not refused, and what went wrong while they were made."""
    r = random.Random(seed)
    workload = random_workload(seed)
    sch = Schedule(workload.func)
    made: list[Move] = []
    for _ in range(4 * length):
        move = random_move(r, sch)
        if move is None:
            continue
        try:
            move.make(sch)
        except InternalError as error:
            return workload, [*made, move], f"InternalError: {error}"
        except TVMError:
            continue
        except IndexError:
            continue  # a loop that the other block does not have
        except Exception as error:  # noqa: BLE001 - that is what the fuzzer looks for
            return workload, [*made, move], f"{type(error).__name__}: {error}"
        made.append(move)
        if len(made) == length:
            break
    return workload, made, None


def problem_of(workload: Workload, moves: Sequence[Move]) -> str | None:
    """What is wrong with a schedule: its meaning, its trace, or an error that is no refusal."""
    sch = Schedule(workload.func, debug_mask="all")
    try:
        for move in moves:
            move.make(sch)
    except InternalError as error:
        return f"InternalError: {error}"
    except (TVMError, IndexError):
        return None  # refused, in this order
    except Exception as error:  # noqa: BLE001 - that is what the fuzzer looks for
        return f"{type(error).__name__}: {error}"
    if _shapes(sch.mod["main"]) != _shapes(workload.func):
        return None  # a parameter has another layout now: the caller's to give
    try:
        # Its edits were checked when they were made; those of the replays are the same.
        verify_trace_roundtrip(sch, workload.func, debug_mask=ScheduleDebugMask.VERIFY_SREF_TREE)
        once = Simplify()(sch.mod)
        if not structural_equal(once, Simplify()(once)):
            return "a second simplification changes the program"
        assert_same_meaning(workload.func, sch.mod, workload.sizes)
    except Exception as error:  # noqa: BLE001 - that is what the fuzzer looks for
        return f"{type(error).__name__}: {error}"
    return None


def _shapes(func: PrimFunc) -> list[str]:
    return [str(buffer.shape) for buffer in func.buffer_map.values()]


def shrunk(
    workload: Workload, moves: Sequence[Move], fails: Callable[[Sequence[Move]], bool]
) -> list[Move]:
    """The moves without those that the failure does not need."""
    kept = list(moves)
    position = len(kept) - 1
    while position >= 0:
        fewer = [*kept[:position], *kept[position + 1 :]]
        if fails(fewer):
            kept = fewer
        position -= 1
    return kept


def script(seed: int, moves: Sequence[Move]) -> str:
    """The schedule as a program that shows the failure again."""
    lines = [
        "from tests.lib.random_workloads import random_workload",
        "from weft.testing.schedules import assert_same_meaning",
        "from weft.tir import Schedule",
        "",
        f"workload = random_workload({seed})",
        "sch = Schedule(workload.func, debug_mask='all')",
    ]
    for move in moves:
        lines += move.lines()
    lines += ["sch.mod.show()", "assert_same_meaning(workload.func, sch.mod, workload.sizes)"]
    return "\n".join(lines) + "\n"


def report(seed: int, length: int = 8) -> str | None:
    """None if the schedule of a seed is good; else the shortest script that shows what is wrong."""
    workload, moves, found = random_schedule(seed, length)
    found = found or problem_of(workload, moves)
    if found is None:
        return None
    small = shrunk(workload, moves, lambda fewer: problem_of(workload, fewer) is not None)
    again = problem_of(workload, small) or found
    remarks = "\n".join([f"# {line}" for line in again.splitlines()])
    return f"# seed {seed} ({workload.kind})\n{remarks}\n{script(seed, small)}"
