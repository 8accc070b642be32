"""The public names of weft.ir, weft.tir and weft.relax that programs for TVM 0.20 use most."""

from __future__ import annotations

import importlib

import pytest

from weft.support.errors import IRAttributeError

SUPPORTED = {
    "weft.ir": """
        Array Attrs DictAttrs BaseExpr BaseFunc FloatImm FuncType GlobalInfo GlobalVar IRModule
        IntImm Map Node Object Op PointerType PrimExpr PrimType Range RelaxExpr SourceName Span
        TupleType Type VDevice DummyGlobalInfo assert_structural_equal
        get_first_structural_mismatch load_json register_op_attr save_json structural_equal
        structural_hash instrument transform make_node
        IRModule.script IRModule.show IRModule.get_global_var IRModule.get_global_vars
        IRModule.update IRModule.update_func IRModule.update_global_info IRModule.from_expr
        IRModule.functions_items IRModule.replace_global_vars IRModule.with_attr IRModule.get_attr
        IRModule.with_attrs IRModule.without_attr Op.get Op.list_op_names Op.reset_attr
        Range.from_min_extent
    """,
    "weft.ir.transform": """
        ApplyPassToFunction Pass PassContext PassContext.current PassInfo PrintIR Sequential
        module_pass PassContext.list_configs PassContext.override_instruments
    """,
    "weft.ir.instrument": """
        DumpIR PassInstrument PassPrintingInstrument PassTimingInstrument PrintAfterAll
        PrintBeforeAll pass_instrument
    """,
    "weft.tir": """
        Add Allocate AllocateConst And AssertStmt AttrStmt Block BlockRealize Broadcast Buffer
        BufferLoad BufferRealize BufferRegion BufferStore Call Cast CommReducer DeclBuffer Div EQ
        Evaluate FloatImm FloorDiv FloorMod For ForKind GE GT IfThenElse IntImm IterVar LE LT Let
        LetStmt MatchBufferRegion Max Min Mod Mul NE Not Or PrimExpr PrimFunc ProducerLoad Ramp
        Range Reduce ScheduleError Select SeqStmt Shuffle SizeVar StringImm Sub Var While
        abs acos add address_of all any asin atan atan2 bitwise_and bitwise_not bitwise_or
        bitwise_xor build call_extern call_intrin call_llvm_intrin call_llvm_pure_intrin
        call_packed ceil ceildiv clz comm_reducer const copysign cos cosh decl_buffer div erf exp
        exp10 exp2 floor floordiv floormod fmod hypot if_then_else indexdiv indexmod infinity
        isfinite isinf isnan isnullptr ldexp likely log log10 log1p log2 max max_value min
        min_value multiply nearbyint nextafter popcount pow power q_multiply_shift reinterpret ret
        round rsqrt shift_left shift_right sigmoid sin sinh sqrt subtract sum tan tanh trunc
        truncdiv truncmod undef vscale
        analysis ir_builder stmt_functor transform
        Buffer.vload Buffer.vstore Buffer.access_ptr Buffer.get_flattened_buffer Buffer.offset_of
        Buffer.READ Buffer.WRITE ForKind.SERIAL ForKind.PARALLEL ForKind.VECTORIZED
        ForKind.UNROLLED ForKind.THREAD_BINDING IterVar.DataPar IterVar.CommReduce
        IterVar.ThreadIndex PrimFunc.specialize PrimFunc.with_attr PrimFunc.without_attr
        PrimFunc.with_body PrimFunc.script PrimFunc.show Var.astype NE.astype
        Schedule Trace Instruction InstructionKind BlockRV LoopRV ExprRV ScheduleState StmtSRef
        BlockScope Dependency TensorIntrin IndexMap schedule
        Schedule.get_block Schedule.mod Schedule.get_loops Schedule.split Schedule.reorder
        Schedule.transform_layout Schedule.compute_at Schedule.get Schedule.rfactor
        ScheduleState.get_sref ScheduleState.mod Schedule.cache_read
        Schedule.cache_write Schedule.reverse_compute_inline Schedule.enter_postproc
        Schedule.reverse_compute_at Schedule.decompose_reduction Schedule.sample_perfect_tile
        Schedule.compute_inline Schedule.fuse Schedule.transform_block_layout Schedule.vectorize
        Schedule.annotate Schedule.bind Schedule.parallel Schedule.tensorize Schedule.get_sref
        Schedule.sample_categorical ScheduleState.replace Schedule.blockize Schedule.copy
        Schedule.loop_partition Schedule.rolling_buffer Schedule.storage_align Schedule.reindex
        Schedule.unannotate Schedule.decompose_padding Schedule.get_child_blocks
        Schedule.get_consumers Schedule.merge Schedule.annotate_buffer_access Schedule.set_scope
        Trace.simplified Schedule.set_axis_separator Schedule.reindex_cache_read
        Schedule.reindex_cache_write Schedule.reorder_block_iter_var Schedule.unroll
        Schedule.unsafe_hide_buffer_access Schedule.unsafe_set_dtype Schedule.get_output_blocks
        Schedule.get_producers Schedule.pad_einsum ScheduleState.get_block_scope
        Schedule.add_unit_loop Schedule.cache_index Schedule.read_at
        Schedule.sample_compute_location Schedule.work_on
        Trace.apply_to_schedule Trace.as_json IndexMap.from_func IndexMap.is_equivalent_to
        IndexMap.inverse Trace.apply_json_to_schedule InstructionKind.get TensorIntrin.register
    """,
    "weft.relax": """
        Binding BindingBlock BlockBuilder Call Constant DataTypeImm DataflowBlock DataflowVar Expr
        ExternFunc FuncStructInfo Function GlobalVar If MatchCast ObjectStructInfo PrimStructInfo
        PrimValue PyExprMutator PyExprVisitor SeqExpr ShapeExpr ShapeStructInfo StringImm
        StructInfo TensorStructInfo Tuple TupleGetItem TupleStructInfo VMExecutable Var VarBinding
        VirtualMachine build call_dps_packed call_pure_packed call_tir const extern get_pipeline
        get_shape_of register_pipeline analysis op transform
        BlockBuilder.add_func BlockBuilder.call_te BlockBuilder.dataflow BlockBuilder.emit
        BlockBuilder.emit_func_output BlockBuilder.emit_normalized BlockBuilder.emit_output
        BlockBuilder.emit_te BlockBuilder.finalize BlockBuilder.function BlockBuilder.get
        BlockBuilder.match_cast BlockBuilder.normalize BlockBuilder.update_func
        Function.bind_params Function.bind_symbolic_vars Function.with_attr
        FuncStructInfo.opaque_func VMExecutable.export_library VirtualMachine.invoke_stateful
        VirtualMachine.get_outputs VirtualMachine.save_function VirtualMachine.set_input
        VirtualMachine.time_evaluator
    """,
}
COMING = {
    "weft.tir": "Prefetch",
    "weft.tir.transform": "InferFragment SplitHostDevice",
    "weft.relax": "training",
    "weft.relax.transform": "Gradient FewShotTuning",
}


@pytest.mark.parametrize(
    ("module", "name"), [(m, name) for m, names in SUPPORTED.items() for name in names.split()]
)
def test_the_name_is_there(module, name):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert found is not None


@pytest.mark.parametrize(
    ("module", "name"), [(m, name) for m, names in COMING.items() for name in names.split()]
)
def test_a_name_that_is_to_come_says_so(module, name):
    owner = importlib.import_module(module)
    with pytest.raises(
        IRAttributeError, match=rf"{name} is a name of TVM 0\.20 that weft does not"
    ):
        getattr(owner, name)
    assert not hasattr(owner, name)
    assert name not in dir(owner)


@pytest.mark.parametrize(
    ("module", "name", "nearest"),
    [
        ("weft.ir", "IRModul", "IRModule"),
        ("weft.tir", "BufferLod", "BufferLoad"),
        ("weft.relax", "VirtualMachin", "VirtualMachine"),
        ("weft.tir.transform", "Simplifi", "Simplify"),
    ],
)
def test_a_name_that_never_was_gets_the_nearest(module, name, nearest):
    with pytest.raises(IRAttributeError, match=f"did you mean {nearest}"):
        getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", [*SUPPORTED])
def test_dir_lists_names_that_resolve(module):
    owner = importlib.import_module(module)
    for name in dir(owner):
        assert getattr(owner, name) is not None or name.startswith("__")
