"""TensorIR: scalar expressions, statements, functions, schedules and passes."""

from weft.support.facade import module_getattr

_EXPR = (
    "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or Not Select Cast Ramp "
    "Broadcast Shuffle Let Call ProducerLoad Reduce CommReducer IterVar Var SizeVar"
)
_STMT = (
    "Stmt LetStmt AssertStmt ForKind For While BufferStore BufferRealize Allocate AllocateConst "
    "DeclBuffer AttrStmt SeqStmt Evaluate IfThenElse MatchBufferRegion Block "
    "BlockRealize stmt_seq stmt_list"
)
_OP = (
    "abs acos acosh add add_n address_of all all_lanes any asin asinh assume atan atan2 atanh "
    "bitwise_and bitwise_neg bitwise_not bitwise_or bitwise_xor call_cpacked call_extern "
    "call_intrin call_llvm_intrin call_llvm_pure_intrin call_packed call_pure_extern call_tir "
    "ceil ceildiv checked clz comm_reducer const convert copysign cos cosh div divide "
    "dot_four_bytes erf erfc exp exp10 exp2 floor floordiv floormod fmod hypot if_then_else "
    "indexdiv indexmod infinity "
    "is_exact isfinite isinf isnan isnullptr ldexp likely log log10 log1p log2 lookup max "
    "max_value min min_value multiply nearbyint negative nextafter popcount pow power "
    "q_multiply_shift "
    "reinterpret ret round rsqrt scaleb shift_left shift_right sigmoid sin sinh sqrt subtract sum "
    "tan tanh trunc truncdiv truncmod tvm_access_ptr tvm_storage_sync tvm_thread_allreduce "
    "unchecked_cast uncontracted undef vectorlow vectorhigh vectorcombine vscale"
)
_DEVICE = (
    "TVMBackendAllocWorkspace TVMBackendFreeWorkspace anylist_getitem anylist_resetitem "
    "create_barriers dp4a end_profile_intrinsic get_active_lane_mask ignore_loop_partition "
    "lookup_param make_filled_simdgroup_matrix mma_fill mma_store ptx_arrive_barrier "
    "ptx_arrive_barrier_expect_tx ptx_commit_group ptx_cp_async ptx_cp_async_barrier "
    "ptx_cp_async_bulk ptx_init_barrier_thread_count ptx_ldmatrix ptx_mma ptx_mma_sp "
    "ptx_wait_barrier ptx_wait_group simdgroup_load simdgroup_multiply_accumulate "
    "simdgroup_store start_profile_intrinsic tvm_bmma_sync tvm_check_return tvm_fill_fragment "
    "tvm_load_matrix_sync tvm_mma_sync tvm_stack_alloca tvm_stack_make_array "
    "tvm_stack_make_shape tvm_store_matrix_sync tvm_struct_get tvm_struct_set "
    "tvm_thread_invariant tvm_throw_last_error tvm_tuple tvm_warp_activemask tvm_warp_shuffle "
    "tvm_warp_shuffle_down tvm_warp_shuffle_up type_annotation"
)
_NAMES = {
    **dict.fromkeys(_EXPR.split(), "weft.tir.expr"),
    **dict.fromkeys(_STMT.split(), "weft.tir.stmt"),
    **dict.fromkeys(_OP.split(), "weft.tir.op"),
    **dict.fromkeys(_DEVICE.split(), "weft.tir.device_intrinsic"),
    **dict.fromkeys(
        "Schedule ScheduleState StmtSRef BlockScope Instruction Trace Dependency BlockRV LoopRV "
        "BlockDependenceInfo ExprRV InstructionKind ScheduleDebugMask".split(),
        "weft.tir.schedule",
    ),
    **dict.fromkeys("Buffer BufferLoad BufferRegion decl_buffer".split(), "weft.tir.buffer"),
    **dict.fromkeys(
        "BijectiveLayout Layout bijective_layout layout".split(), "weft.tir.data_layout"
    ),
    "FloatImm": "weft.ir.expr",
    "IndexMap": "weft.tir.index_map",
    "IntImm": "weft.ir.expr",
    "PrimExpr": "weft.ir.expr",
    "PrimFunc": "weft.tir.function",
    "Range": "weft.ir.expr",
    "ScheduleError": "weft.support.errors",
    "StringImm": "weft.ir.expr",
    "TensorIntrin": "weft.tir.tensor_intrinsic",
    "build": "weft.driver.build",
    "trace": "weft.tir.traced_call",
}
_PLANNED = {
    "Prefetch": "code generation for GPUs",
}
__getattr__, __dir__ = module_getattr(
    __name__,
    _NAMES,
    ("analysis", "buffer", "expr", "function", "ir_builder", "op", "schedule", "stmt",
     "stmt_functor", "transform"),
    _PLANNED,
)  # fmt: skip
