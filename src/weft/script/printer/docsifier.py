"""The state while a program is printed: configuration, frames of statements, names, metadata.

A *frame* is a block of statements under construction; names defined in it are free again when it
closes. ``Docsifier.doc(node)`` dispatches on the node's ``KIND`` to the functions that the modules
``tir_*``, ``relax_*`` and ``ir_module`` register with ``@prints``.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from weft.ir.expr import GlobalVar
from weft.ir.global_info import GlobalInfo
from weft.ir.node import Node
from weft.script.printer.doc import (
    AttrAccessDoc,
    Doc,
    ExprDoc,
    Head,
    IdDoc,
    IndexDoc,
    LiteralDoc,
    StmtBlockDoc,
    StmtDoc,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.free_name import free_name
from weft.support.object_path import ObjectPath
from weft.tir.stmt import For

D = TypeVar("D", bound=ExprDoc)


@dataclass(slots=True)
class PrinterConfig:
    """The options of ``script()``; names, order and defaults as in TVM 0.20."""

    name: str | None = None
    show_meta: bool = False
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    relax_prefix: str = "R"
    module_alias: str = "cls"
    buffer_dtype: str = "float32"
    int_dtype: str = "int32"
    float_dtype: str = "void"
    verbose_expr: bool = False
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int = -1
    syntax_sugar: bool = True
    show_object_address: bool = False
    show_all_struct_info: bool = True
    path_to_underline: ObjectPath | Sequence[ObjectPath] | None = None
    path_to_annotate: Mapping[ObjectPath, object] | None = None
    obj_to_underline: object = None
    obj_to_annotate: Mapping[object, object] | None = None
    extra_config: object = None


class Frame:
    """A block of statements under construction, and what was named in it."""

    __slots__ = (
        "concise", "defined", "func_vars", "is_func", "kind", "loops", "stmts", "uses_alias",
    )  # fmt: skip

    def __init__(self, kind: str, *, is_func: bool = False) -> None:
        self.kind, self.is_func = kind, is_func
        self.stmts: list[Doc] = []
        self.defined: list[tuple[int, str | None]] = []
        self.loops: list[For] = []
        self.concise = False
        self.uses_alias = False
        self.func_vars: set[int] | None = None


Printer = Callable[[Any, "Docsifier"], Doc]
PRINTERS: Final[dict[str, Printer]] = {}
"""KIND of a node -> the function that makes its doc."""


def prints(*kinds: str) -> Callable[[Printer], Printer]:
    """Register a function as the printer of nodes of these kinds."""

    def register(function: Printer) -> Printer:
        for kind in kinds:
            PRINTERS[kind] = function
        return function

    return register


_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


def clean_name(hint: str) -> str:
    """``hint`` as a Python identifier."""
    name = _NOT_NAME.sub("_", hint) if not (hint.isidentifier() and hint.isascii()) else hint
    if not name:
        return "v"
    if name[0].isdigit():
        return "_" + name
    return name + "_" if keyword.iskeyword(name) else name


class Docsifier:
    """Turns the nodes of a program into docs, with unique names and collected metadata."""

    def __init__(self, config: PrinterConfig) -> None:
        self.config = config
        self.frames: list[Frame] = []
        self.names: set[str] = {
            config.ir_prefix,
            config.tir_prefix,
            config.relax_prefix,
            config.module_alias,
            "metadata",
            "range",
            "tvm",
        }
        self.docs: dict[int, tuple[object, Callable[[], ExprDoc]]] = {}
        self.values: set[int] = set()
        """Expressions (by ``id``) that have a name."""
        self.metadata: dict[str, list[object]] = {}
        self.used: set[str] = set()
        self.binding_names: list[str] = []
        self.relax_mode = False
        self.in_module = False
        self.short = False
        self.used_handles: set[int] = set()
        self.globals: dict[str, str] = {}
        self.function_names: dict[str, str] = {}
        self.return_types: dict[str, DataType] = {}
        self.global_infos: Mapping[str, Sequence[GlobalInfo]] | None = None
        self._printers: dict[type, Printer] = {}
        self.prefixes = {
            "ir": config.ir_prefix,
            "tir": config.tir_prefix,
            "relax": config.relax_prefix,
        }
        paths = config.path_to_underline
        self.tracking = config.obj_to_underline is not None or paths is not None
        self.remarks: dict[int, tuple[object, str]] = {}

    # ---- docs of nodes

    def doc(self, node: object) -> Any:
        """The doc of a node."""
        if self.values and self.has_name(node):
            return self.reference(node)
        kind = type(node)
        printer = self._printers.get(kind)
        if printer is None:
            printer = self._printers[kind] = self._find(kind)
        doc = printer(node, self)
        if self.tracking:
            doc.source = node
            if isinstance(doc, StmtBlockDoc) and doc.stmts and doc.stmts[0].source is None:
                doc.stmts[0].source = node  # the block becomes a part of the block around it
            if id(node) in self.remarks and isinstance(doc, StmtDoc):
                doc.comment = self.remarks[id(node)][1]
        return doc

    def expr(self, node: object) -> ExprDoc:
        """The doc of a node that prints as an expression."""
        doc: ExprDoc = self.doc(node)
        return doc

    def head(self, doc: D, node: object) -> D:
        """``doc``, marked as a part of the first line of the loop or block ``node``."""
        if self.tracking:
            doc.source_paths = [*doc.source_paths, Head(node)]
        return doc

    def annotate(self, remarks: dict[int, tuple[object, str]]) -> None:
        """Set the remarks to print behind statements: ``id(node)`` -> node, text."""
        self.remarks = remarks
        self.tracking = self.tracking or bool(remarks)

    def _find(self, kind: type) -> Printer:
        for base in kind.__mro__:
            printer = PRINTERS.get(base.__dict__.get("KIND", base.__name__))
            if printer is not None and issubclass(base, Node):
                return printer
        raise IRTypeError(f"{kind.__name__} has no printed form")

    # ---- prefixes

    def tir(self, name: str) -> AttrAccessDoc:
        """``T.name``."""
        self.used.add("tir")
        return AttrAccessDoc(IdDoc(self.prefixes["tir"]), name)

    def relax(self, name: str) -> ExprDoc:
        """``R.name``, for dotted names too."""
        self.used.add("relax")
        return AttrAccessDoc(IdDoc(self.prefixes["relax"]), name)

    def ir(self, name: str) -> AttrAccessDoc:
        """``I.name``."""
        self.used.add("ir")
        return AttrAccessDoc(IdDoc(self.prefixes["ir"]), name)

    # ---- frames and names

    def push(self, kind: str, *, is_func: bool = False) -> Frame:
        """Open a frame."""
        frame = Frame(kind, is_func=is_func)
        self.frames.append(frame)
        return frame

    def pop(self) -> None:
        """Close the innermost frame: its names are free again."""
        frame = self.frames.pop()
        for key, name in frame.defined:
            self.docs.pop(key, None)
            if name is not None:
                self.names.discard(name)

    def unique_name(self, hint: str) -> str:
        """``hint`` or ``hint_1``, ... : the first that is free."""
        return free_name(clean_name(hint), self.names)

    def define(self, node: object, hint: str, frame: Frame | None = None) -> IdDoc:
        """Name a node until ``frame`` (by default the innermost) is closed."""
        if self.config.show_object_address:
            hint = f"{hint}_{id(node):#x}"
        name = self.unique_name(hint)
        self._bind(node, lambda: IdDoc(name), name, frame or self.frames[-1])
        doc = IdDoc(name)
        if self.tracking:
            doc.source = node
        return doc

    def define_value(self, node: object, hint: str, frame: Frame) -> IdDoc:
        """Name an expression: it prints as its name from here on."""
        self.values.add(id(node))
        return self.define(node, hint, frame)

    def has_name(self, node: object) -> bool:
        """Whether an expression has a name here."""
        return id(node) in self.values and self.defined(node)

    def define_as(
        self, node: object, make: Callable[[], ExprDoc], frame: Frame | None = None
    ) -> None:
        """Let a node print as ``make()`` until a frame is closed."""
        self._bind(node, make, None, frame or self.frames[-1])

    def _bind(
        self, node: object, make: Callable[[], ExprDoc], name: str | None, frame: Frame
    ) -> None:
        self.docs[id(node)] = (node, make)
        frame.defined.append((id(node), name))

    def defined(self, node: object) -> bool:
        """Whether a variable or buffer has a name now."""
        return id(node) in self.docs

    def reference(self, node: object) -> ExprDoc | None:
        """The doc of a named node, or None."""
        entry = self.docs.get(id(node))
        if entry is None:
            return None
        doc = entry[1]()
        if self.tracking:
            doc.source = node
        return doc

    def call_type(self, callee: GlobalVar) -> str:
        """The dtype that the parser gives to a call of this function."""
        return str(self.return_types.get(callee.name_hint, "void"))

    def function_frame(self, kind: str) -> Frame:
        """The innermost function's frame of a kind, else the outermost frame of it."""
        outermost = None
        for frame in reversed(self.frames):
            if frame.kind == kind:
                outermost = frame
                if frame.is_func:
                    break
        return outermost or self.frames[-1]

    # ---- metadata

    def add_metadata(self, key: str, value: object) -> ExprDoc:
        """``metadata["key"][n]`` for a value without literal syntax."""
        items = self.metadata.setdefault(key, [])
        index = len(items)
        for position, item in enumerate(items):
            if item is value:
                index = position
        if index == len(items):
            items.append(value)
        return IndexDoc(IndexDoc(IdDoc("metadata"), [LiteralDoc(key)]), [LiteralDoc(index)])
