"""Lowering of object detection."""

from __future__ import annotations

from weft import topi
from weft.relax.transform.legalize.rule import table, with_attrs

TABLE = table(
    {
        "vision.all_class_non_max_suppression": with_attrs(
            topi.vision.all_class_non_max_suppression
        ),
        "vision.roi_align": with_attrs(
            topi.vision.roi_align, "pooled_size", "spatial_scale", "sample_ratio", "aligned",
            "layout", "mode",
        ),
    }
)  # fmt: skip
