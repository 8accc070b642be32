"""Relax: the computational graph: expressions, struct info, operators, block builder, passes."""

from weft.support.facade import module_getattr

_EXPR = (
    "Expr Call If Tuple TupleGetItem ShapeExpr Constant Var DataflowVar PrimValue StringImm "
    "DataTypeImm Binding MatchCast VarBinding BindingBlock DataflowBlock SeqExpr Function "
    "ExternFunc extern const"
)
_STRUCT_INFO = (
    "StructInfo ObjectStructInfo PrimStructInfo ShapeStructInfo TensorStructInfo TupleStructInfo "
    "FuncStructInfo"
)
_NAMES = {
    **dict.fromkeys(_EXPR.split(), "weft.relax.expr"),
    **dict.fromkeys(_STRUCT_INFO.split(), "weft.relax.struct_info"),
    "BlockBuilder": "weft.relax.block_builder",
    "GlobalVar": "weft.ir.expr",
    "PyExprMutator": "weft.relax.expr_functor",
    "PyExprVisitor": "weft.relax.expr_functor",
    "get_shape_of": "weft.relax.expr",
}
__getattr__, __dir__ = module_getattr(
    __name__,
    _NAMES,
    ("analysis", "binding_rewrite", "block_builder", "dpl", "expr", "expr_functor", "frontend",
     "op", "struct_info", "testing", "transform", "utils", "vm"),
)  # fmt: skip
