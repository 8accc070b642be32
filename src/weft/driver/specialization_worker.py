"""A process that compiles a model for single sizes: ``work`` is all that it does.

``weft.driver.specialization`` starts it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.codegen.llvm.worker import end_with_the_parent
from weft.driver import model_cache
from weft.driver.compile import compile_imported
from weft.driver.model_source import ModelSource, additions_of
from weft.support.errors import TVMError

_NICENESS: Final = 10


def work(job: Mapping[str, object]) -> None:
    """Compile the source of ``job`` for its extents, and store the model under its key."""
    threading.Thread(target=end_with_the_parent, args=(0,), daemon=True).start()
    os.nice(_NICENESS)
    source, extents = Path(str(job["source"])), job["extents"]
    assert isinstance(extents, dict)
    try:
        model_source = ModelSource.from_bytes(source.read_bytes())
        if model_source.additions != additions_of(model_source.target):
            sys.exit("the model was compiled with additions to weft that this process lacks")
        bound = model_source.bound(extents)
        with bound.pass_context():
            model = compile_imported(bound.imported, bound.target, bound.pipelines)
        model_cache.store(str(job["key"]), model)
    except (TVMError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
