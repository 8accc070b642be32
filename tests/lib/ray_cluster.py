"""A Ray cluster of two nodes on this machine, and what its jobs do in tests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weft.runtime.module import Module


@contextlib.contextmanager
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes with one processor each; the second has the resource ``second``."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # read when ray is imported
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        cluster.add_node(num_cpus=1, resources={"second": 1})
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


class Clerk:
    """A part that does simple jobs."""

    def node(self) -> str:
        """The node of the cluster that it works on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def refuse(self) -> None:
        """Raise an error of its own."""
        raise KeyError("not on my list")

    def die_once(self, file: str) -> str:
        """End the process, unless the file is there, which is then created."""
        if not os.path.exists(file):
            Path(file).touch()
            os._exit(1)
        return self.node()

    def rest(self) -> None:
        """Do nothing for longer than a test may take."""
        time.sleep(3600)

    def die(self) -> None:
        """End the process."""
        os._exit(1)


def seconds_by_code(module: Module, device: object, config: object, args: Sequence[Any]) -> Any:
    """Made-up seconds of a program, which depend on its code alone."""
    del device, config, args
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.bin"
        module.export_library(str(path))
        digest = hashlib.sha1(path.read_bytes()).digest()
    return [1e-6 * (1 + digest[0])]
