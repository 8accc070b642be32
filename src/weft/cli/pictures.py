"""What ``weft viz`` and ``weft profile`` share: a model that is compiled and recorded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import weft
from weft.cli.arguments import Sizes, parse_sizes, random_array
from weft.cli.compile_model import add_target_arguments
from weft.cli.models import add_model_arguments, subject_of
from weft.cli.programs import is_program, program_of
from weft.runtime.model.compiled_model import CompiledModel
from weft.support.errors import IRValueError
from weft.viz.collect import Call
from weft.viz.picture import Picture, picture_of
from weft.viz.stored import picture_of_compiled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model and say how to compile it."""
    add_model_arguments(parser)
    add_target_arguments(parser)


def picture(options: argparse.Namespace) -> Picture:
    """The recorded compilation of what the command names."""
    name = Path(options.model).name
    if options.model.endswith(".weft"):
        model = weft.load(options.model, num_threads=options.threads)
        return picture_of_compiled(model, name, example_call(model, options))
    compiling: dict[str, Any] = {
        "target": options.target,
        "num_threads": options.threads,
        "dtype": options.dtype,
    }
    if is_program(options.model):
        made_of, examples = program_of(options.model), None
    else:
        subject = subject_of(options)
        made_of, examples, name = subject.model, subject.examples, subject.name
        compiling |= {"dynamic_shapes": subject.dynamic_shapes, "size_hints": subject.sizes}
    result = picture_of(made_of, examples, title=name, **compiling)
    result.call = None if result.model is None else example_call(result.model, options)
    return result


def example_call(model: CompiledModel, options: argparse.Namespace) -> Call:
    """A call of a model on random inputs; symbolic sizes are those of ``--size``, or examples."""
    rng, sizes = np.random.default_rng(options.seed), Sizes(parse_sizes(options.size))
    states = {state.input for state in model.signature.states}
    arguments: list[Any] = []
    params = model.program.functions[model.entry].params
    for at, (name, pattern) in enumerate(params):
        if at in states:
            continue
        if pattern[0] == "tensor" and pattern[2] is not None:
            arguments.append(random_array(sizes.shape(pattern[2]), str(pattern[1]), rng))
        elif pattern[0] == "prim":
            arguments.append(1)
        else:
            raise IRValueError(f"{name}: there is no example of an input of the kind {pattern[0]}")
    return call_of(model, arguments)


def call_of(model: CompiledModel, arguments: list[Any]) -> Call:
    """Arguments by name where the model takes them so, else by position."""
    names = [
        name
        for at, name in enumerate(model.signature.inputs)
        if at not in {state.input for state in model.signature.states}
    ]
    if model.signature.is_plain:
        return Call(tuple(arguments))
    named: Mapping[str, object] = dict(zip(names, arguments, strict=True))
    return Call((), named)
