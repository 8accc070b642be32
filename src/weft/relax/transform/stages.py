"""Stages of a graph's pipeline that no processor decides: backends put their own around them."""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.relax.transform.fusion.fuse_ops import FuseOps
from weft.relax.transform.fusion.fuse_tir import FuseTIR
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.graph.decompose_ops import DecomposeOpsForInference
from weft.relax.transform.graph.fold_batch_norm_to_conv2d import FoldBatchnormToConv2D
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.graph.normalize import Normalize
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.relax.transform.legalize.legalize_ops import LegalizeOps

NORMS: tuple[Pass, ...] = (
    Normalize(),  # what users built by hand gets struct info and leaf arguments
    FoldBatchnormToConv2D(keep_training=True),  # while both are operators
    DecomposeOpsForInference(keep_training=True),  # the norms left, as elementwise operators
)
"""A graph as it is imported: norms that know their statistics become arithmetic."""

KERNELS: tuple[Pass, ...] = (
    LegalizeOps(),  # every operator that has a legalisation becomes a call_tir
    FoldConstant(),  # what legalisation took apart
    RewriteDataflowReshape(),  # before fusion: a kernel that only copies is a view
    AnnotateTIROpPattern(),  # what FuseOps goes by: how each kernel reads and writes
    FuseOps(),  # calls that may share a kernel become a function of their own
    FuseTIR(),  # and such a function one kernel
    DeadCodeElimination(),  # functions that only legalised operators used, unused bindings
)
"""From operators to fused kernels."""
