"""An imported model as bytes, with all that decides how it is compiled: for another process.

The cache of models keeps one beside each model of symbolic sizes (``weft.driver.specialization``).
It is JSON (the module without its arrays, the signature, the pass context ...) of a length that
stands before it, then the arrays in the format of safetensors.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.driver import model_cache
from weft.driver.sources import Imported
from weft.ir.expr import PrimExpr
from weft.ir.json_text import save_json
from weft.ir.transform import PassContext
from weft.relax.transform import BindSymbolicVars
from weft.runtime.artifact.constants import constants_to_bytes, read_constants
from weft.runtime.model.signature import Signature
from weft.runtime.ndarray import NDArray
from weft.support import slots
from weft.support.errors import IRTypeError, UnsupportedError
from weft.target.target import Target
from weft.tir.expr import Var

_LENGTH: Final = struct.Struct("<Q")


@dataclass(frozen=True)
class ModelSource:
    """An imported model with the settings of its compilation.

    ``context`` are the arguments of ``PassContext``; all settings are plain values. ``additions``
    tells what was added to the compiler, such as a plug-in.
    """

    imported: Imported
    target: Target
    pipelines: tuple[str | None, str | None]
    context: Mapping[str, Any]
    additions: str

    @staticmethod
    def of(imported: Imported, target: Target, pipelines: tuple[object, object]) -> ModelSource:
        """The model as it would be compiled now: in this pass context, by pipelines with names."""
        now = PassContext.current()
        context = {
            "opt_level": now.opt_level,
            "required_pass": list(now.required_pass),
            "disabled_pass": list(now.disabled_pass),
            "config": dict(now.config),
        }
        first, second = [None if item is None else str(item) for item in pipelines]
        return ModelSource(imported, target, (first, second), context, additions_of(target))

    def bound(self, extents: Mapping[str, int]) -> ModelSource:
        """The model for single sizes: each symbol is the number that it is mapped to."""
        imported = self.imported
        numbers: dict[Var | str, PrimExpr | int] = dict(extents.items())
        module = BindSymbolicVars(numbers, imported.entry)(imported.module)
        ranges = tuple([item for item in imported.signature.ranges if item[0] not in extents])
        signature = dataclasses.replace(imported.signature, ranges=ranges)
        return dataclasses.replace(
            self, imported=dataclasses.replace(imported, module=module, signature=signature)
        )

    def pass_context(self) -> PassContext:
        """The pass context of the compilation."""
        return PassContext(**self.context)

    def to_bytes(self) -> bytes | None:
        """The bytes; None for a model that has no such form: it has a user's object, or states."""
        slots.module_json.get()  # loads the module that converts arrays to JSON
        arrays: dict[int, NDArray] = {}
        numbers: dict[int, int] = {}

        def aside(value: object) -> int | None:
            if not isinstance(value, NDArray):
                return None
            arrays[id(value)] = value
            return numbers.setdefault(id(value), len(numbers))

        if self.imported.states:
            return None
        try:
            module = save_json(self.imported.module, aside=aside)
            constants = constants_to_bytes(list(arrays.values()))
        except (IRTypeError, UnsupportedError):
            return None
        header = {
            "module": module,
            "dtypes": [str(array.dtype) for array in arrays.values()],
            "signature": self.imported.signature.to_json(),
            "entry": self.imported.entry,
            "target": self.target.export(),
            "pipelines": list(self.pipelines),
            "context": dict(self.context),
            "additions": self.additions,
        }
        text = json.dumps(header).encode()
        return _LENGTH.pack(len(text)) + text + constants

    @staticmethod
    def from_bytes(data: bytes) -> ModelSource:
        """What ``to_bytes`` made."""
        (size,) = _LENGTH.unpack_from(data)
        begin = _LENGTH.size + size
        header = json.loads(data[_LENGTH.size : begin])
        constants = read_constants(memoryview(data)[begin:], header["dtypes"], share=False)
        imported = Imported(
            slots.module_json.get()[1](header["module"], constants),
            Signature.from_json(header["signature"]),
            entry=header["entry"],
        )
        first, second = header["pipelines"]
        return ModelSource(
            imported, Target(header["target"]), (first, second), header["context"],
            header["additions"],
        )  # fmt: skip


def additions_of(target: Target) -> str:
    """A text that is the same in processes in which the same was added to the compiler."""
    return repr(model_cache.additions(target))
