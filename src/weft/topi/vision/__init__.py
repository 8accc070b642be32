"""Operators of object detection."""

from weft.topi.vision.nms import all_class_non_max_suppression
from weft.topi.vision.roi_align import roi_align
from weft.topi.vision.roi_pool import roi_pool
