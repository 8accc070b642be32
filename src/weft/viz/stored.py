"""Pictures of models that are compiled already: of this process, or from a file.

A model is compiled once more, from the module that it was imported to, and that is recorded. A
file whose weights are stored as its code takes them has no module; it still says which memory and
functions there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.driver.compile import CompiledAs, compile_imported
from weft.driver.recording import Recording, recording
from weft.driver.sources import Imported
from weft.ir.transform import PassContext
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.values import as_array
from weft.support import slots
from weft.support.errors import UnsupportedError
from weft.target.target import Target, target_meant
from weft.viz.collect import Call
from weft.viz.picture import Picture, own, own_call


def picture_of_compiled(model: CompiledModel, title: str = "", call: Call | None = None) -> Picture:
    """A picture of a compiled model; without passes and kernels where it has no module.

    Args:
        model: what ``weft.compile`` or ``weft.load`` gave.
        title: its name; default: that of its signature.
        call: arguments of a call, for times.
    """
    title = title or model.signature.name
    known = model.compiled_as
    origin = known if isinstance(known, CompiledAs) else _of_file(model)
    try:
        module = model.mod
    except UnsupportedError:
        return Picture(Recording(origin.target, origin.context), title, model, call)
    states = [as_array(own(state)) for state in model.states]
    imported = Imported(module, model.signature, states, model.entry)
    with origin.context, recording(origin.target) as record:
        again = compile_imported(imported, origin.target, origin.pipelines)
    again.num_threads = model.num_threads
    return Picture(record, title, again, own_call(call))


def _of_file(model: CompiledModel) -> CompiledAs:
    """How a model from a file was compiled: for its system and processor, by default."""
    code, here = model.code, target_meant(None)
    target = here
    if code is not None and code.cpu:
        target = Target(f"llvm -mtriple={code.triple} -mcpu={code.cpu}")
    return CompiledAs(target, ("weft", "default"), PassContext())


def _picture(model: CompiledModel, args: Sequence[object], kwargs: Mapping[str, object]) -> Picture:
    return picture_of_compiled(model, "", Call(args, kwargs) if args or kwargs else None)


slots.picture.fill(_picture)
