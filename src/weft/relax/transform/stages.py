"""The parts of a graph's pipeline that are the same for all processors; backends add their own."""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.relax.transform.fusion.fuse_ops import FuseOps
from weft.relax.transform.fusion.fuse_tir import FuseTIR
from weft.relax.transform.fusion.name_extents import NameExtents
from weft.relax.transform.graph.canonicalize_bindings import CanonicalizeBindings
from weft.relax.transform.graph.convert_to_dataflow import ConvertToDataflow
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.decompose_ops import DecomposeOpsForInference
from weft.relax.transform.graph.fold_batch_norm_to_conv2d import FoldBatchnormToConv2D
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.hoist_loop_invariants import HoistLoopInvariants
from weft.relax.transform.graph.lambda_lift import LambdaLift
from weft.relax.transform.graph.normalize import Normalize
from weft.relax.transform.graph.scale_and_shift_norms import ScaleAndShiftNorms
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.relax.transform.legalize.legalize_ops import LegalizeOps

NORMS: tuple[Pass, ...] = (
    Normalize(),  # functions that users built by hand get struct info and leaf arguments
    HoistLoopInvariants(),  # while loops see the values around them
    LambdaLift(),  # passes rewrite functions of the module: loops are among them from here on
    ConvertToDataflow(),  # branches and bodies of loops are rewritten and fused as other code is
    FoldBatchnormToConv2D(keep_training=True),  # while both are operators
    ScaleAndShiftNorms(),  # after those that are folded into convolutions
    DecomposeOpsForInference(keep_training=True),  # makes element-wise operators of other norms
    CanonicalizeBindings(),  # a norm is the first item of a tuple, which fusion would stop at
)
"""For a graph as it is imported: norms with known statistics become arithmetic."""

KERNELS: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    FoldConstant(),  # legalisation may leave new calls on constants
    RewriteDataflowReshape(),  # before fusion: kernels that only copy become views
    AnnotateTIROpPattern(),  # says how each kernel reads and writes, which FuseOps goes by
    FuseOps(),  # calls that can share a kernel become a function
    FuseTIR(),  # such a function becomes one kernel
    DeadCodeElimination(),  # removes kernels that have been fused, and unused bindings
    NameExtents(),  # once kernels are complete: their extents need not be those of other kernels
)
"""Lowers operators to fused kernels."""
