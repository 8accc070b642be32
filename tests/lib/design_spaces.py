"""Design spaces in tests: sketches of small programs, sampled, finished, run."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from weft import meta_schedule as ms
from weft import te, tir
from weft.tir import interp

CPU = "llvm -num-cores=2"


def context(mod: weft.IRModule, target: str = CPU, **parts: Any) -> ms.TuneContext:
    """A task with a space of the given rules, postprocessors and mutators (none by default)."""
    chosen = {"sch_rules": [], "postprocs": [], "mutator_probs": {}, **parts}
    generator = ms.space_generator.PostOrderApply(**chosen)
    return ms.TuneContext(mod, target=target, space_generator=generator, rand_state=7)


def sketches(mod: weft.IRModule, target: str = CPU, **parts: Any) -> list[tir.Schedule]:
    """The schedules that the rules give."""
    spaces: list[tir.Schedule] = context(mod, target, **parts).generate_design_space()
    return spaces


def finished(task: ms.TuneContext, sketch: tir.Schedule, seed: int) -> tir.Schedule | None:
    """A sketch with decisions drawn anew, after the postprocessors; None if one refuses it."""
    sch = tir.Schedule(task.mod, seed=seed, debug_mask="all")
    tir.schedule.Trace(sketch.trace.insts, {}).apply_to_schedule(sch)
    sch.enter_postproc()
    return sch if all(postproc.apply(sch) for postproc in task.space_generator.postprocs) else None


def arguments(function: tir.PrimFunc) -> list[np.ndarray]:
    """Random numbers for all buffers of a function; results are overwritten."""
    generator = np.random.default_rng(3)
    buffers = [function.buffer_map[param] for param in function.params]
    return [
        generator.standard_normal([int(size) for size in buffer.shape]).astype(buffer.dtype)
        for buffer in buffers
    ]


def interpreted(function: tir.PrimFunc) -> list[np.ndarray]:
    """The arguments after a run of the interpreter."""
    values = arguments(function)
    interp.run(function, *values)
    return values


def native(mod: weft.IRModule) -> list[np.ndarray]:
    """The arguments after a run of machine code."""
    values = [weft.nd.array(value) for value in arguments(mod["main"])]
    weft.build(mod, target=CPU)["main"](*values)
    return [value.numpy() for value in values]


def row_sums(rows: int, columns: int) -> weft.IRModule:
    """The sum of each row of a matrix: block ``S``."""
    data = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    sums = te.compute((rows,), lambda i: te.sum(data[i, k], axis=k), name="S")
    return weft.IRModule({"main": te.create_prim_func([data, sums])})


def chain(size: int = 16) -> weft.IRModule:
    """Three steps element by element: blocks ``B``, ``C``, ``D``."""
    data = te.placeholder((size, size), name="A")
    first = te.compute((size, size), lambda i, j: data[i, j] + 1.0, name="B")
    second = te.compute((size, size), lambda i, j: te.exp(first[i, j]), name="C")
    third = te.compute((size, size), lambda i, j: second[i, j] * 2.0, name="D")
    return weft.IRModule({"main": te.create_prim_func([data, third])})
