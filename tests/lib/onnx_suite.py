"""ONNX's own backend suite (``onnx.backend.test``) on weft: one case at a time, with its reason.

``benchmarks/onnx_backend.py`` prints the score, ``tests/relax/frontend/onnx`` compares it with the
table of cases that do not pass.
"""

from __future__ import annotations

import os
import re
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

from weft.relax.frontend.onnx.backend import WeftBackend

LIGHT: Final = re.compile(
    r"test_(bvlc_alexnet|densenet121|inception_v\d|resnet50|shufflenet|squeezenet|vgg19|zfnet512)$"
)
"""Whole networks; their convolutions take seconds to minutes each."""

UNDEFINED: Final = re.compile(r"test_cast(like)?_FLOAT(16)?_to_U?INT[24](_expanded)?$")
"""Floats beyond the integers' range, which the standard leaves undefined.

What the suite expects of them is what the installed ml_dtypes does: version 0.5 keeps the low
bits, as weft does, 0.7 gives 0.
"""


def suite_cases(pattern: str = "") -> dict[str, Callable[[], None]]:
    """The suite's cases for the CPU whose results are defined, by name (without ``_cpu``)."""
    import onnx.backend.test

    wanted = re.compile(pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes what it expects, infinities too
        runner = onnx.backend.test.BackendTest(WeftBackend, __name__)
    found: dict[str, Callable[[], None]] = {}
    for case_class in runner.test_cases.values():
        for name in dir(case_class):
            short = name.removesuffix("_cpu")
            of_cpu = short != name and name.startswith("test_")
            if of_cpu and wanted.search(short) and not UNDEFINED.match(short):
                found[short] = _bound(case_class, name)
    return dict(sorted(found.items()))


def _bound(case_class: Any, name: str) -> Callable[[], None]:
    def run() -> None:
        getattr(case_class(name), name)()

    return run


def why_it_fails(case: Callable[[], None]) -> str:
    """Run a case: nothing if it passes, else the class and the first lines of its error."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        before = os.environ.get("ONNX_MODELS")
        os.environ["ONNX_MODELS"] = folder  # where the suite writes the inputs of whole networks
        try:
            case()
        except unittest.SkipTest as skipped:
            return f"skipped: {skipped}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the case's reason
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return f"{type(error).__name__}: {' | '.join(lines[:4])}"[:400]
        finally:
            if before is None:
                del os.environ["ONNX_MODELS"]
            else:
                os.environ["ONNX_MODELS"] = before
    return ""


def slices(names: list[str], index: int, count: int) -> Iterator[str]:
    """Every ``count``-th name from ``index`` on."""
    yield from names[index::count]
