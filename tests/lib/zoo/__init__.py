"""The zoo: architectures that people deploy, small, with random weights.

One table serves the test of the zoo (``-m slow``) and the benchmarks. A row makes a model of the
library's own class with fewer layers and narrower ones where its configuration allows, since what
is tested is the architecture: which operators it uses, and how they are put together. Images are as
small as a model takes them.
"""

from __future__ import annotations

from typing import Final

from tests.lib.zoo.architecture import Architecture, import_torchvision, settle, stir
from tests.lib.zoo.images import IMAGES
from tests.lib.zoo.language import LANGUAGE
from tests.lib.zoo.signals import SIGNALS
from tests.lib.zoo.written_out import WRITTEN_OUT

ZOO: Final = (*IMAGES, *LANGUAGE, *SIGNALS, *WRITTEN_OUT)
"""All architectures, by what they take."""


def find(name: str) -> Architecture:
    """The architecture of a name; KeyError if there is none."""
    return {item.name: item for item in ZOO}[name]


__all__ = ["ZOO", "Architecture", "find", "import_torchvision", "settle", "stir"]
