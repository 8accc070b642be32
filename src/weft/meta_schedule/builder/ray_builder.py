"""The builder that compiles on the machines of a Ray cluster."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final

from weft.driver import cluster
from weft.meta_schedule.builder.base import Builder, BuilderInput, BuilderResult
from weft.meta_schedule.builder.local_builder import LocalBuilder, trial_folder

_NAME: Final = "kernels.bin"


class RayBuilder(Builder):
    """Has each machine of a cluster compile by a builder of its own; the files come here.

    A machine that is lost loses what it was compiling, which another compiles; what takes two
    machines with it has failed.

    Args:
        make: called on each machine: gives the builder there.
        address, kind, timeout_sec: as ``address``, ``kind`` and ``seconds`` of
            ``weft.driver.cluster.Machines``.

    Needs the package ray (``pip install 'weft-compiler[ray]'``).
    """

    def __init__(
        self,
        make: Callable[[], Builder] = LocalBuilder,
        *,
        address: str = "auto",
        kind: str | None = None,
        timeout_sec: float = 600.0,
    ) -> None:
        self._machines = cluster.Machines(
            partial(BuilderThere, make),
            address=address,
            kind=kind,
            jobs_at_once=None,
            seconds=timeout_sec,
        )

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        futures = [self._machines.submit("build", BuilderInput(*item)) for item in build_inputs]
        return [_result(future) for future in futures]

    def close(self) -> None:
        """Let the machines go; they go by themselves with the builder, too."""
        self._machines.close()


class BuilderThere:
    """On a machine: its builder, whose files are read and removed.

    Args:
        make: gives the builder.
    """

    def __init__(self, make: Callable[[], Builder]) -> None:
        self._builder = make()

    def build(self, build_input: BuilderInput) -> tuple[bytes | None, str | None]:
        """The content of the file of a module, or why there is none."""
        [(path, error)] = self._builder.build([build_input])
        if path is None:
            return None, error
        content = Path(path).read_bytes()
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        return content, None


def _result(future: Future[tuple[bytes | None, str | None]]) -> BuilderResult:
    try:
        content, error = future.result()
    except Exception as problem:  # noqa: BLE001 - whatever went wrong there is the result
        return BuilderResult(None, f"RayBuilder: {type(problem).__name__}: {problem}")
    if content is None:
        return BuilderResult(None, error)
    path = Path(tempfile.mkdtemp(prefix="trial-", dir=trial_folder())) / _NAME
    path.write_bytes(content)
    return BuilderResult(str(path), None)
