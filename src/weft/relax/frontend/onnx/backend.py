"""ONNX's backend interface (``onnx.backend.base``): prepare a model, run it, run a single node.

So that ONNX's own suite runs: ``onnx.backend.test.BackendTest(backend, __name__)``.

A model that can be translated without its inputs' values is compiled once. One that needs them at
import (axes that are an input of the graph, the number of items of a sequence, the rank of an
input of which the model says nothing) is translated at the first ``run`` with those inputs bound as
constants, and once more for each other value of them; results stay exact, but every new value
costs a compilation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from weft.driver.build import relax_build
from weft.relax.frontend.onnx.element_types import from_storage, to_storage
from weft.relax.frontend.onnx.errors import (
    ConstantNeededError,
    OnnxModelError,
    ShapeNeededError,
    need_onnx,
)
from weft.relax.frontend.onnx.importer import Given, Imported, Request, import_model
from weft.relax.frontend.onnx.model import check_versions, load_model
from weft.relax.frontend.onnx.protos import ModelProto, NodeProto
from weft.relax.frontend.onnx.value import (
    GraphValue,
    MapValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    TextTable,
    TextValue,
)
from weft.runtime.device import cpu
from weft.runtime.ndarray import NDArray
from weft.runtime.ndarray import array as make_ndarray
from weft.runtime.vm.virtual_machine import VirtualMachine

need_onnx()
import onnx  # noqa: E402 - after the error that says what to install
from onnx.backend.base import Backend, BackendRep, namedtupledict  # noqa: E402 - as above

Feeds = Mapping[str, Given]
"""Inputs of a model by name."""
Returned: TypeAlias = NDArray | float | Iterable["Returned"]
"""What a compiled function returns."""
Output: TypeAlias = np.ndarray | Sequence["Output"] | dict[str | int, float] | None
"""An output as ONNX's backends give it; None is an optional that is absent."""
Key: TypeAlias = tuple["Key", ...] | str | bytes | int | None
"""A value, or its structure, as a key of a dict."""
KEPT: Final = 8
"""So many compilations of one model are kept, for different values of bound inputs."""


class _Compiled:
    """One translation of the model, built."""

    def __init__(self, imported: Imported) -> None:
        self.imported = imported
        built = relax_build(imported.mod, "llvm", relax_pipeline="weft")
        self.machine = VirtualMachine(built, cpu())

    def run(self, feeds: Feeds) -> list[Output]:
        arguments = []
        for name in self.imported.inputs:
            for array in _leaves(feeds[name]):
                is_text = array.dtype.kind in "OUST"
                arguments.append(
                    array if is_text else make_ndarray(to_storage(np.asarray(array, order="C")))
                )
        result = self.machine["main"](*arguments)
        values = self.imported.outputs
        fields = [result] if len(values) == 1 else list(result)
        return [_result(item, value) for item, value in zip(fields, values, strict=True)]


def _leaves(value: Given) -> list[np.ndarray]:
    """The arrays of an input: its own, those of a sequence, none of an absent optional."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [np.asarray(value)]


def _array(returned: Returned) -> np.ndarray:
    return returned.numpy() if isinstance(returned, NDArray) else np.asarray(returned)


def _result(returned: Returned, value: GraphValue) -> Output:
    """A result as ONNX's suite expects it: arrays, lists of them, None."""
    if isinstance(value, SequenceValue):
        assert isinstance(returned, Iterable)
        return [_result(item, inner) for item, inner in zip(returned, value.items, strict=True)]
    if isinstance(value, RunSequence):
        assert isinstance(returned, Iterable)
        return [from_storage(_array(item), value.elem or 0) for item in returned]
    if isinstance(value, OptionalValue):
        return None if value.content is None else _result(returned, value.content)
    array = _array(returned)
    if isinstance(value, TextValue) and not isinstance(value.texts, TextTable):
        texts: np.ndarray = np.array(value.texts, object)[array]
        return texts
    if isinstance(value, MapValue):
        return [dict(zip(value.keys, row, strict=True)) for row in array.tolist()]
    return from_storage(array, value.elem or 0)


class WeftRep(BackendRep):
    """A prepared model."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        graph = model.graph
        defaults = {item.name for item in graph.initializer}
        self.names = [info.name for info in graph.input if info.name not in defaults]
        self.infos = {info.name: info for info in graph.input}
        self.needed: frozenset[str] = frozenset()
        self.shaped: frozenset[str] = frozenset()
        self.compiled: dict[Key, _Compiled] = {}

    def run(self, inputs: Feeds | Given, **kwargs: object) -> tuple[Output, ...]:
        """The outputs for inputs in the graph's order (or a dict by name)."""
        feeds = dict(inputs) if isinstance(inputs, Mapping) else self._named(inputs)
        for name in (*self.names, *feeds):
            if name not in feeds or name not in self.infos:
                problem = "missing" if name in self.infos else "no input of the model"
                raise OnnxModelError(
                    f"run: expected the inputs {', '.join(self.names) or '(none)'}; {name!r} is "
                    f"{problem}"
                )
        outputs = self._for(feeds).run(feeds)
        names = [info.name for info in self.model.graph.output]
        result: tuple[Output, ...] = namedtupledict("Outputs", names)(*outputs)
        return result

    def _named(self, inputs: Given) -> dict[str, Given]:
        arrays = inputs if isinstance(inputs, list | tuple) else [inputs]
        if len(arrays) > len(self.names):
            raise OnnxModelError(
                f"run: expected {len(self.names)} inputs ({', '.join(self.names)}), got "
                f"{len(arrays)}"
            )
        return dict(zip(self.names, arrays, strict=False))

    def _for(self, feeds: Feeds) -> _Compiled:
        """The compilation for these inputs; more of them are bound as the translator asks."""
        while True:
            key = self._key(feeds)
            compiled = self.compiled.get(key)
            if compiled is not None:
                return compiled
            try:
                compiled = _Compiled(import_model(self.model, self._request(feeds)))
            except ConstantNeededError as error:
                if not self._bind_more(error, feeds):
                    raise
                continue
            if len(self.compiled) >= KEPT:
                self.compiled.pop(next(iter(self.compiled)))
            self.compiled[key] = compiled
            return compiled

    def _bind_more(self, error: ConstantNeededError, feeds: Feeds) -> bool:
        """Bind shapes, then the values, of inputs that an operator must know; False if all are."""
        sources = error.sources & feeds.keys()
        if isinstance(error, ShapeNeededError):
            if sources - self.shaped:
                self.shaped |= sources
                return True
            # extents that are computed of integers: those decide them
            sources = frozenset(
                name for name in sources if np.asarray(feeds[name]).dtype.kind in "iub"
            )
        if not sources - self.needed:
            return False
        self.needed |= sources
        return True

    def _request(self, feeds: Feeds) -> Request:
        request = Request(sanitize=True)
        bound = {name: feeds[name] for name in self.needed}
        shapes: dict[str, Sequence[int]] = {}
        lengths: dict[str, Given] = {}
        for name, value in feeds.items():
            info = self.infos[name]
            if info.type.WhichOneof("value") != "tensor_type":
                lengths[name] = value
            elif name in self.shaped or not info.type.tensor_type.HasField("shape"):
                shapes[name] = np.asarray(value).shape
        return replace(request, bound=bound, shapes=shapes, lengths=lengths)

    def _key(self, feeds: Feeds) -> Key:
        """What a compilation depends on: values of bound inputs, structures of unknown ones."""
        parts: list[Key] = []
        for name in sorted(feeds):
            value = feeds[name]
            if name in self.needed:
                parts.append((name, _content(value)))
            elif self.infos[name].type.WhichOneof("value") != "tensor_type":
                parts.append((name, _structure(value)))
            elif name in self.shaped or not self.infos[name].type.tensor_type.HasField("shape"):
                parts.append((name, np.asarray(value).shape))
        return tuple(parts)


def _content(value: Given) -> Key:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return tuple(_content(item) for item in value)
    array = np.asarray(value)
    return (array.dtype.str, array.shape, array.tobytes())


def _structure(value: Given) -> Key:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return tuple(_structure(item) for item in value)
    array = np.asarray(value)
    return (array.dtype.str, array.shape)


class WeftBackend(Backend):
    """weft as a backend of ONNX, on the CPU."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: object) -> bool:
        """Every model is tried; what cannot be done is an error of ``prepare``."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: object) -> WeftRep:
        """A model that can be run; its errors are those of ``from_onnx``."""
        if not cls.supports_device(device):
            raise OnnxModelError(f"prepare: expected the device CPU, got {device!r}")
        loaded = load_model(model)
        check_versions(loaded)
        return WeftRep(loaded)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Feeds | Given, device: str = "CPU", **kwargs: object
    ) -> tuple[Output, ...]:
        """Prepare a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Given,
        device: str = "CPU",
        outputs_info: object = None,
        **kwargs: object,
    ) -> tuple[Output, ...]:
        """Run one node on arrays; ``outputs_info`` is not needed."""
        helper = onnx.helper
        arrays = inputs if isinstance(inputs, list | tuple) else [inputs]
        names = [name for name in node.input if name]
        infos = []
        for name, value in zip(names, arrays, strict=True):
            array = np.asarray(value)
            elem = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos.append(helper.make_tensor_value_info(name, elem, array.shape))
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, results)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.prepare(model, device).run(list(arrays))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        return device.partition(":")[0].upper() == "CPU"


is_compatible = WeftBackend.is_compatible
prepare = WeftBackend.prepare
run_model = WeftBackend.run_model
run_node = WeftBackend.run_node
supports_device = WeftBackend.supports_device
