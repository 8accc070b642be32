"""Nodes, functors, structural equality, operators, modules and passes: what both IRs share."""

from weft.support.facade import module_getattr

_NAMES = {
    "Array": "weft.ir.node",
    "Attrs": "weft.ir.attrs",
    "BaseExpr": "weft.ir.expr",
    "BaseFunc": "weft.ir.function",
    "DictAttrs": "weft.ir.attrs",
    "DummyGlobalInfo": "weft.ir.global_info",
    "FloatImm": "weft.ir.expr",
    "FuncType": "weft.ir.type",
    "GlobalInfo": "weft.ir.global_info",
    "GlobalVar": "weft.ir.expr",
    "IRModule": "weft.ir.module",
    "IntImm": "weft.ir.expr",
    "Map": "weft.ir.node",
    "Node": "weft.ir.node",
    "Object": "weft.ir.node:Node",
    "Op": "weft.ir.op",
    "PointerType": "weft.ir.type",
    "PrimExpr": "weft.ir.expr",
    "PrimType": "weft.ir.type",
    "Range": "weft.ir.expr",
    "RelaxExpr": "weft.ir.expr",
    "SourceName": "weft.support.span",
    "Span": "weft.support.span",
    "TupleType": "weft.ir.type",
    "Type": "weft.ir.type",
    "VDevice": "weft.ir.global_info",
    "assert_structural_equal": "weft.ir.structural",
    "get_first_structural_mismatch": "weft.ir.structural",
    "load_json": "weft.ir.json_text",
    "make_node": "weft.ir.reflection",
    "register_op_attr": "weft.ir.op",
    "save_json": "weft.ir.json_text",
    "structural_equal": "weft.ir.structural",
    "structural_hash": "weft.ir.structural",
}
_PLANNED = {
    "EnvFunc": "functions of the environment as nodes",
    "SequentialSpan": "spans of several places",
    "diagnostics": "renderers of diagnostics that programs register",
    "supply": "supplies of unique names",
}
__getattr__, __dir__ = module_getattr(
    __name__,
    _NAMES,
    ("attrs", "expr", "function", "functor", "global_info", "instrument", "module", "op",
     "structural", "transform", "type"),
    _PLANNED,
)  # fmt: skip
