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
_OP = "call_tir call_tir_inplace call_tir_with_grad call_dps_packed call_pure_packed"
_NAMES = {
    **dict.fromkeys(_EXPR.split(), "weft.relax.expr"),
    **dict.fromkeys(_STRUCT_INFO.split(), "weft.relax.struct_info"),
    **dict.fromkeys(_OP.split(), "weft.relax.op"),
    "BlockBuilder": "weft.relax.block_builder",
    "DataflowBlockRewrite": "weft.relax.binding_rewrite",
    "ExecBuilder": "weft.relax.vm.exec_builder",
    "GlobalVar": "weft.ir.expr",
    "PyExprMutator": "weft.relax.expr_functor",
    "PyExprVisitor": "weft.relax.expr_functor",
    "VMExecutable": "weft.runtime.vm.executable:Executable",
    "VMInstrumentReturnKind": "weft.runtime.vm.interpreter",
    "VirtualMachine": "weft.runtime.vm.virtual_machine",
    "build": "weft.driver.build:relax_build",
    "get_default_pipeline": "weft.driver.pipeline",
    "get_pipeline": "weft.driver.pipeline",
    "pipeline": "weft.driver:pipeline",
    "get_shape_of": "weft.relax.expr",
    "register_pipeline": "weft.driver.pipeline",
    "register_reference": "weft.relax.reference",
}
_PLANNED = {
    "training": "training",
}
__getattr__, __dir__ = module_getattr(
    __name__,
    _NAMES,
    (
        "analysis", "backend", "binding_rewrite", "block_builder", "distributed", "dpl", "expr",
        "expr_functor", "frontend", "op", "struct_info", "testing", "transform", "utils", "vm",
    ),
    _PLANNED,
)  # fmt: skip
