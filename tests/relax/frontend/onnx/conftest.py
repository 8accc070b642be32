"""Every test of this folder needs the package onnx."""

import pytest

pytest.importorskip("onnx")
