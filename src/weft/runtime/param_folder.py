"""``tvm.contrib.tvmjs``: folders of weights, as MLC's language models are published.

``ndarray-cache.json`` lists files ("shards"), and for each the weights in it: name, shape, dtype,
format, place and number of bytes. The format ``f32-to-bf16`` has the upper halves of float32
numbers, rounded. ``ndarray-cache-b16.json`` lists the same as bfloat16 arrays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.runtime.device import Device, cpu
from weft.runtime.ndarray import NDArray, array, empty, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import ArtifactError, IRValueError, TVMError
from weft.support.files import write_whole

INDEX: Final = "ndarray-cache.json"
INDEX_OF_BFLOATS: Final = "ndarray-cache-b16.json"
_HALF: Final = "f32-to-bf16"
_MEGABYTE: Final = 1 << 20

Params = Mapping[str, Any] | Iterable[tuple[str, Any]]


def dump_ndarray_cache(
    params: Params,
    cache_dir: str | Path,
    encode_format: str = _HALF,
    meta_data: Mapping[str, object] | Callable[[], Mapping[str, object]] | None = None,
    shard_cap_mb: int = 32,
    show_progress: bool = True,  # noqa: ARG001 - of TVM's signature
    update_if_exists: bool = False,
) -> None:
    """Write weights to a folder.

    Args:
        params: arrays by name: a mapping, or pairs of a name and an array.
        cache_dir: the folder, which is made if it is not there.
        encode_format: ``"f32-to-bf16"`` halves the bytes of float32 arrays; ``"raw"`` does not.
        meta_data: what ``load_ndarray_cache`` gives beside the arrays, or a function of it.
        shard_cap_mb: files end before they have so many megabytes.
        show_progress: TVM prints names with it.
        update_if_exists: keep the weights that are there already and are not among ``params``.
    """
    if encode_format not in ("raw", _HALF):
        raise IRValueError(f"encode_format: expected 'raw' or {_HALF!r}, got {encode_format!r}")
    folder = Path(cache_dir)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = dict(params.items() if isinstance(params, Mapping) else params)
    if update_if_exists and (folder / INDEX).exists():
        kept, old_meta = load_ndarray_cache(folder)
        pairs = {**kept, **pairs}
        meta_data = old_meta if meta_data is None else meta_data
    meta = meta_data() if callable(meta_data) else meta_data or {}
    shards = _write_shards(pairs, folder, encode_format, shard_cap_mb * _MEGABYTE)
    _write_index(folder / INDEX, meta, shards)
    halves = [
        record
        for shard in shards
        for record in shard["records"]
        if (record["format"], record["dtype"]) == (_HALF, "float32")
    ]
    for record in halves:
        record.update(format="raw", dtype="bfloat16")
    if halves:
        _write_index(folder / INDEX_OF_BFLOATS, meta, shards)


def _write_index(path: Path, meta: object, shards: list[dict[str, Any]]) -> None:
    text = json.dumps({"metadata": meta, "records": shards}, indent=4)
    write_whole(path, text.encode(), durable=False)


def _write_shards(
    params: Mapping[str, Any], folder: Path, encode_format: str, limit: int
) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    content = bytearray()

    def finish() -> None:
        if records:
            name = f"params_shard_{len(shards)}.bin"
            write_whole(folder / name, bytes(content), durable=False)
            digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
            shards.append({
                "dataPath": name, "format": "raw-shard", "nbytes": len(content),
                "records": list(records), "md5sum": digest,
            })  # fmt: skip
            records.clear()
            content.clear()

    for name, given in params.items():
        value = given if isinstance(given, NDArray) else array(given)
        dtype, numbers = str(value.dtype), np.ascontiguousarray(value.numpy())
        is_half = encode_format == _HALF and dtype == "float32"
        data = (_upper_halves(numbers) if is_half else numbers).tobytes()
        if len(content) + len(data) > limit:
            finish()
        records.append({
            "name": name, "shape": list(value.shape), "dtype": dtype, "format": encode_format,
            "nbytes": len(data), "byteOffset": len(content),
        })  # fmt: skip
        content += data
    finish()
    return shards


def _upper_halves(numbers: np.ndarray) -> np.ndarray:
    """The upper halves of float32 numbers, rounded to the nearest, ties to even."""
    bits = numbers.view("uint32").astype("uint64")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    halves = np.where(np.isfinite(numbers), rounded, bits >> 16 | np.isnan(numbers))
    return np.asarray(halves, "uint16")


def load_ndarray_cache(
    cachepath: str | Path, device: Device | None = None
) -> tuple[dict[str, NDArray], dict[str, Any]]:
    """The weights of a folder (or of the list in it) by name, and its ``metadata``.

    Raises ArtifactError where the list and the files do not agree.
    """
    path = Path(cachepath)
    path = path if path.suffix == ".json" else path / INDEX
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        weights: dict[str, NDArray] = {}
        for shard in content["records"]:
            data = _shard(shard, path.parent)
            for record in shard["records"]:
                weights[str(record["name"])] = _read(record, data, device or cpu())
        return weights, dict(content["metadata"])
    except (KeyError, TypeError, ValueError, AttributeError, TVMError) as error:
        if isinstance(error, ArtifactError):
            raise
        what = f"{type(error).__name__}: {error}"
        raise ArtifactError(
            f"load_ndarray_cache: {path.name} is no list of weights: {what}"
        ) from error


def _shard(shard: Mapping[str, Any], folder: Path) -> bytes:
    name = str(shard["dataPath"])
    if Path(name).name != name:
        raise ArtifactError(f"load_ndarray_cache: expected a file of the folder, got {name!r}")
    content = (folder / name).read_bytes()
    if shard["format"] != "raw-shard" or shard["nbytes"] != len(content):
        raise ArtifactError(
            f"load_ndarray_cache: {name}: expected {shard['nbytes']} bytes of a raw-shard, got "
            f"{len(content)} of a {shard['format']}"
        )
    return content


def _read(record: Mapping[str, Any], content: bytes, device: Device) -> NDArray:
    dtype, shape = DataType(record["dtype"]), tuple(int(extent) for extent in record["shape"])
    is_half = record["format"] == _HALF and dtype == "float32"
    storage = np.dtype("uint16") if is_half else storage_dtype(dtype)
    start, size = int(record["byteOffset"]), int(record["nbytes"])
    expected = int(np.prod(shape, dtype="int64")) * storage.itemsize
    if size != expected or start < 0 or start + size > len(content) or min(shape, default=0) < 0:
        raise ArtifactError(
            f"load_ndarray_cache: {record['name']}: expected {expected} bytes of {dtype}"
            f"{list(shape)}, got {size} from {start} of {len(content)}"
        )
    numbers = np.frombuffer(content, storage, expected // storage.itemsize, start).reshape(shape)
    if is_half:
        numbers = (numbers.astype("uint32") << 16).view("float32")
    return empty(shape, dtype, device).copyfrom(numbers)
