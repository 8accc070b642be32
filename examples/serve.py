"""Serves a classifier of images: ``MODEL=net.weft uvicorn --factory serve:application``, FastAPI.

``POST /predict`` takes ``{"image": [[...], ...]}``, 28 rows of 28 numbers, and answers
``{"scores": [...]}``. When the file is replaced, later calls run the new one. ``Served`` needs no
web server; docs/use/serve.md explains what it does and why.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import numpy as np

import weft.runtime
from weft.error import TVMError


class Served:
    """A model from a file, which is loaded again when it was replaced. Any thread may call it.

    Args:
        path: a ``.weft`` file.
        example: inputs of a call, by which a model that was just loaded is warmed up.
        num_threads: threads of one call; 1 where as many callers as cores are usual.
    """

    def __init__(
        self, path: str | Path, example: tuple[np.ndarray, ...], num_threads: int | None = None
    ) -> None:
        self.path, self.example, self.num_threads = Path(path), example, num_threads
        self._loading = threading.Lock()
        self._current = self._load()

    def _load(self):
        version = self._version()  # before the file is read: a later one is then seen as new
        model = weft.runtime.load(self.path, num_threads=self.num_threads)
        model(*self.example)
        return version, model

    def _version(self) -> tuple[int, int]:
        """Tells files of one name apart: ``save`` writes a new file and renames it."""
        status = self.path.stat()
        return status.st_ino, status.st_mtime_ns

    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        """A call of the newest file. While one thread loads it, others call the old model."""
        if self._current[0] != self._version() and self._loading.acquire(blocking=False):
            try:
                self._renew()
            finally:
                self._loading.release()
        return self._current[1](*inputs)

    def _renew(self) -> None:
        version = self._version()
        try:
            self._current = self._load()
        except TVMError:  # a file that cannot be loaded leaves the old model in its place
            logging.getLogger(__name__).exception("%s: the old model stays", self.path)
            self._current = version, self._current[1]


def application():
    """The web application for the model that MODEL names: float32 images (1, 1, 28, 28)."""
    from fastapi import FastAPI, HTTPException  # noqa: PLC0415 - Served needs no web server

    served = Served(os.environ["MODEL"], (np.zeros((1, 1, 28, 28), "float32"),))
    app = FastAPI()

    @app.post("/predict")
    def predict(body: dict[str, list[list[float]]]) -> dict[str, list[float]]:
        # not `async def`: FastAPI then runs each request in a thread of its own
        try:
            image = np.asarray(body["image"], "float32").reshape(1, 1, 28, 28)
        except (KeyError, ValueError) as error:
            raise HTTPException(422, f"image: expected 28 rows of 28 numbers ({error})") from error
        return {"scores": served(image)[0].tolist()}

    return app
