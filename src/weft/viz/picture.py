"""``Picture``: a recorded compilation with its page, for notebooks and files."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np

from weft.driver.compile import compile as compile_model
from weft.driver.recording import Recording, recording
from weft.runtime.artifact.weft_file import as_path
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.ndarray import NDArray, array
from weft.support.errors import IRValueError
from weft.support.lazy_property import lazy_property
from weft.target.target import target_meant
from weft.viz.collect import Call, page_data
from weft.viz.held import with_held
from weft.viz.html import page
from weft.viz.svg import Drawing, draw_arena, draw_loops, draw_roofline

HEIGHT = 760


class Picture:
    """What the compiler did to a model, as data (``data``), page (``html``) and file (``save``).

    Everything is computed when it is first asked for. A notebook shows the page in a frame, and
    ``arena``, ``roofline`` and ``loops(kernel)`` as drawings.

    Args:
        record: what was recorded.
        title: the name of the model.
        model: what was compiled, if it is a model.
        call: arguments of a call; None: no times are measured.
    """

    def __init__(
        self,
        record: Recording,
        title: str,
        model: CompiledModel | None = None,
        call: Call | None = None,
    ) -> None:
        self.record, self.title, self.model, self.call = record, title, model, call

    def __repr__(self) -> str:
        return f"Picture({self.title}: {len(self.record.kernels())} kernels; save(path) writes it)"

    @lazy_property
    def data(self) -> dict[str, object]:
        """The content of the page, as JSON has it (docs/design/0022-pictures.md)."""
        data = page_data(self.record, self.title, self.model, self.call)
        if self.record.module is None and self.model is not None:
            return with_held(data, self.model)
        return data

    @property
    def arena(self) -> Drawing:
        """Working memory over the steps of a call."""
        memory: Any = self.data["memory"]
        return draw_arena(memory)

    @property
    def roofline(self) -> Drawing:
        """The kernels below what the machine can do; UnsupportedError without times."""
        profile: Any = self.data["profile"]
        return draw_roofline(profile)

    def loops(self, kernel: str) -> Drawing:
        """The loop nest of a kernel; IRValueError for an unknown name."""
        kernels: Any = self.data["kernels"]
        by_name = {row["name"]: row for row in kernels}
        if kernel not in by_name:
            raise IRValueError(f"there is no kernel {kernel!r}; there are {', '.join(by_name)}")
        return draw_loops(by_name[kernel])

    @lazy_property
    def html(self) -> str:
        """The page: one HTML file that needs no other."""
        return page(self.data)

    def json(self) -> str:
        """``data`` as JSON text."""
        return json.dumps(self.data, separators=(",", ":"))

    def save(self, path: str | Path) -> Path:
        """Write the page, or the data alone if the name ends in ``.json``; gives the path."""
        target = as_path(path)
        text = self.json() if target.suffix == ".json" else self.html
        target.write_text(text, encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own."""
        source = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{source}" style="width:100%;height:{HEIGHT}px;border:0" '
            f'sandbox="allow-scripts" title="weft viz"></iframe>'
        )


def own(value: Any) -> Any:
    """A copy of a tensor, which the calls that are measured may write; another value itself."""
    if isinstance(value, NDArray):
        return array(value.numpy().copy())
    if isinstance(value, np.ndarray):
        return value.copy()
    clone = getattr(value, "clone", None)
    return value if clone is None else clone()


def own_call(call: Call | None) -> Call | None:
    """A call with copies of its tensors."""
    if call is None:
        return None
    return Call(
        tuple([own(value) for value in call.args]),
        {name: own(value) for name, value in call.kwargs.items()},
    )


def picture_of(model: Any, examples: Any = None, *, title: str = "", **options: Any) -> Picture:
    """Compile something that ``weft.compile`` takes, and record it.

    Models come from no cache of models, kernels may come from the cache of code. ``call`` of the
    picture can be set, for times.

    Args:
        model: as for ``weft.compile``: also a module of PrimFuncs, or one PrimFunc.
        examples: as for ``weft.compile``.
        title: the name of the model; default: its class.
        options: as for ``weft.compile``.

    >>> import weft
    >>> from weft import te
    >>> x = te.placeholder((4,), name="x")
    >>> func = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)])
    >>> [kernel["name"] for kernel in picture_of(func).data["kernels"]]
    ['main']
    """
    target = target_meant(options.get("target"))
    with recording(target) as record:
        built = compile_model(model, examples, cache=False, **options)
    compiled = built if isinstance(built, CompiledModel) else None
    if compiled is not None:
        compiled.states = [own(state) for state in compiled.states]
    return Picture(record, title or type(model).__name__, compiled)
