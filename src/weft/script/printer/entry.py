"""The functions that ``script()``, ``show()``, ``repr()`` and messages call (slot ``text``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

from weft.ir.expr import GlobalVar, PrimExpr, Range, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import Array, Node
from weft.ir.op import Op
from weft.ir.type import Type
from weft.relax.expr import Binding, ExternFunc
from weft.relax.struct_info import StructInfo
from weft.script import metadata as metadata_format
from weft.script.highlight import display, to_highlighted_html
from weft.script.printer import (
    ir_module,
    relax_distributed,
    relax_expr,
    relax_function,
    relax_info,
    tir_block,
    tir_buffer,
    tir_expr,
    tir_function,
    tir_stmt,
)
from weft.script.printer.doc import CommentDoc, Doc, ExprDoc, ExprStmtDoc, Head, StmtBlockDoc
from weft.script.printer.doc_printer import to_python_script
from weft.script.printer.docsifier import Docsifier, PrinterConfig
from weft.script.printer.lines import LineWriter
from weft.script.printer.nested_values import bind_nested
from weft.script.printer.shared_values import is_name_of_shared, name_shared
from weft.script.printer.underlining import Chain
from weft.support.errors import IRTypeError
from weft.support.object_path import ObjectPath
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer

REGISTERED: Final = (
    ir_module, relax_distributed, relax_expr, relax_function, relax_info, tir_block, tir_buffer,
    tir_expr, tir_function, tir_stmt,
)  # fmt: skip
"""The modules whose import registers the printers of nodes."""

OMITTED: Final = "Metadata omitted. Use show_meta=True in script() method to show it."
REPR_LINES: Final = 10
_FIELDS: Final = frozenset(field.name for field in dataclasses.fields(PrinterConfig))


def make_config(options: dict[str, Any]) -> PrinterConfig:
    """The configuration from options by name; an unknown option is an error."""
    unknown = set(options) - _FIELDS
    if unknown:
        names = ", ".join(sorted(unknown))
        raise IRTypeError(
            f"script() has no option {names}; there are: {', '.join(sorted(_FIELDS))}"
        )
    return PrinterConfig(**options)


@deep_recursion
def to_text(node: object, **options: object) -> str:
    """The TVMScript text of a node (options: ``PrinterConfig``)."""
    return _text(node, make_config(options), short=False)


@deep_recursion
def text_and_lines(node: Node, **options: object) -> tuple[str, dict[int, int]]:
    """The text of a node, and the line (from 1) on which each statement and loop begins, by ``id``.

    Loops that share a line with others (``T.grid``) have that line.
    """
    config = make_config(options)
    d = Docsifier(config)
    d.tracking = True
    writer = LineWriter(config.indent_spaces)
    writer.block_or_doc(ir_module.block(_statements(node, d, config)))
    return writer.finish(False, None), writer.lines


def _text(node: object, config: PrinterConfig, *, short: bool) -> str:
    d = Docsifier(config)
    d.short = short
    return _finish(_statements(node, d, config), d, config, node)


def _statements(node: object, d: Docsifier, config: PrinterConfig) -> list[Doc]:
    """The docs of the lines that print a node."""
    d.annotate(_remarks(config, node))
    is_graph = _is_graph(node)
    d.relax_mode = is_graph
    outermost = "ir" if isinstance(node, Range) else "tir"
    frame = d.push("relax" if is_graph else outermost)
    if config.name:
        d.binding_names.append(config.name)
    named: list[Doc] = []
    if isinstance(node, PrimExpr):
        name_shared(node, d, frame)
        named = [line for line in frame.stmts if is_name_of_shared(line)]
    elif isinstance(node, Node) and is_graph:
        named = [line for _, line in bind_nested(node, d)]
        frame.stmts.extend(named)
    doc = d.doc(node)
    if isinstance(doc, ExprDoc):
        if not config.verbose_expr and not isinstance(node, Buffer):
            if not (isinstance(node, Node) and node.KIND in _DECLARING):
                frame.stmts[:] = named
        doc = ExprStmtDoc(doc)
    if isinstance(node, IRModule | BaseFunc) and not isinstance(node, ExternFunc):
        frame.stmts.extend(ir_module.with_header(doc, d))
    elif isinstance(doc, StmtBlockDoc):
        frame.stmts.extend(doc.stmts)
    else:
        frame.stmts.append(doc)
    return frame.stmts


_DECLARING: Final = frozenset({"BufferRegion"})


def _finish(stmts: list[Doc], d: Docsifier, config: PrinterConfig, node: object) -> str:
    head = ""
    if d.metadata:
        if config.show_meta:
            head = metadata_format.to_statement(d.metadata) + "\n"
        elif not d.short:
            stmts = [*stmts, CommentDoc(OMITTED)]
    text = to_python_script(
        ir_module.block(stmts),
        config.indent_spaces,
        config.print_line_numbers,
        config.num_context_lines,
        _targets(config, node),
    )
    return head + text


def _targets(config: PrinterConfig, root: object) -> list[object]:
    """The targets to underline: objects, and for paths, the objects that they lead through."""
    targets: list[object] = []
    for given in (config.obj_to_underline, config.path_to_underline):
        if given is None:
            continue
        if isinstance(given, dict | list | tuple) and not isinstance(given, Node):
            targets.extend(given)
        else:
            targets.append(given)
    return [Chain(t.resolve(root)) if isinstance(t, ObjectPath) else t for t in targets]


def _remarks(config: PrinterConfig, root: object) -> dict[int, tuple[object, str]]:
    """The remarks on objects and on the ends of paths, by the identity of the object."""
    remarks = {id(item): (item, str(text)) for item, text in (config.obj_to_annotate or {}).items()}
    for path, text in (config.path_to_annotate or {}).items():
        values = path.resolve(root)
        if len(values) == len(path):
            remarks[id(values[-1])] = (values[-1], str(text))
    return remarks


def _is_graph(node: object) -> bool:
    if isinstance(node, PrimExpr | GlobalVar | Op) or getattr(node, "KIND", "") == "PrimFunc":
        return False
    return isinstance(node, RelaxExpr | StructInfo | Binding) or (
        getattr(node, "KIND", "") in _GRAPH_PARTS
    )


_GRAPH_PARTS: Final = frozenset(
    {"BindingBlock", "DataflowBlock", "DeviceMesh", "Placement", "PlacementSpec"}
)


def to_repr(node: object) -> str:
    """The short text of a node: its script, cut at ten lines."""
    if isinstance(node, Op):
        return f"Op({node.name})"
    if isinstance(node, GlobalVar):
        return f'I.GlobalVar("{node.name_hint}")'
    if isinstance(node, Type) and getattr(node, "KIND", "") == "TupleType":
        return "None" if not getattr(node, "fields", ()) else to_text(node)
    if isinstance(node, Array):
        return repr(node)
    try:
        text = _short_text(node)
    except IRTypeError:
        return _plain_repr(node)
    lines = text.split("\n")
    if len(lines) <= REPR_LINES:
        return text
    return "\n".join(
        [*lines[:REPR_LINES], f"... ({len(lines) - REPR_LINES} more lines; show() prints all)"]
    )


@deep_recursion
def _short_text(node: object) -> str:
    """The script without annotations of bindings and without remarks, to keep a repr short."""
    return _text(node, PrinterConfig(), short=not isinstance(node, IRModule | BaseFunc))


def _plain_repr(node: object) -> str:
    """Class and fields, for nodes without a form in the script."""
    names = getattr(node, "INIT_FIELDS", ())
    parts = [f"{name}={getattr(node, name)!r}" for name in names]
    return f"{type(node).__name__}({', '.join(parts)})"


def to_html(node: object) -> str | None:
    """The script as highlighted HTML; None for a node without a form in the script."""
    try:
        text = to_text(node)
    except IRTypeError:
        return None
    return to_highlighted_html(text)


def show(
    node: object, style: str | None = None, black_format: bool = False, **options: object
) -> None:
    """Print the script, highlighted if the terminal or notebook can show it.

    ``black_format`` is accepted for TVM's signature; the text has one layout.
    """
    del black_format
    display(to_text(node, **options), style)


def underlined_heads(node: object, nodes: Sequence[object]) -> str:
    """The first lines of the given loops and blocks in the script, each underlined."""
    heads = [Head(item) for item in nodes]
    lines = to_text(node, obj_to_underline=heads, num_context_lines=0).split("\n")
    marked = [number for number, line in enumerate(lines) if "^" in line and not line.strip(" ^")]
    return "\n".join([line for number in marked for line in lines[number - 1 : number + 1]])


def underlined(node: object, nodes: Sequence[object], context_lines: int = 2) -> str:
    """The script around the given nodes, each underlined: for error messages."""
    return str(to_text(node, obj_to_underline=list(nodes), num_context_lines=context_lines))
