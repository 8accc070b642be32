"""Ensembles of decision trees as packages train them, beside ONNX Runtime, for 1 to 2,000 rows.

    python -m benchmarks.forests [--only TEXT] [--target "llvm -mcpu=haswell"]

Needs scikit-learn, skl2onnx, LightGBM, XGBoost and onnxmltools. One thread, weft and ONNX Runtime
in turn; processor time, of which the lowest counts. A cell is weft's microseconds and how many
times as long ONNX Runtime takes. All programs take any number of rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import weft
from benchmarks.kernels import lowest
from benchmarks.options import chosen, status_of
from weft.runtime.threads.parallel import set_num_threads

TURNS: Final = 3
FEATURES: Final = 20
ROWS: Final = (1, 10, 100, 2000)


@dataclass(frozen=True)
class Case:
    """A kind of ensemble, and how its trained form becomes a model of ONNX."""

    name: str
    train: Callable[[np.ndarray, np.ndarray], Any]
    export: Callable[[Any, np.ndarray], Any]


def _by_sklearn(trained: Any, table: np.ndarray) -> Any:
    return to_onnx(trained, table[:1], options={"zipmap": False})


def _by_lightgbm(trained: Any, table: np.ndarray) -> Any:
    kind = [("x", FloatTensorType([None, table.shape[1]]))]
    return onnxmltools.convert_lightgbm(trained, initial_types=kind, zipmap=False)


def _by_xgboost(trained: Any, table: np.ndarray) -> Any:
    return onnxmltools.convert_xgboost(
        trained, initial_types=[("x", FloatTensorType([None, table.shape[1]]))]
    )


CASES: Final = (
    Case(
        "LightGBM, 200 trees of 31 leaves",
        lambda x, y: lightgbm.LGBMClassifier(n_estimators=200, verbose=-1).fit(x, y),
        _by_lightgbm,
    ),
    Case(
        "XGBoost, 200 trees of depth 6",
        lambda x, y: xgboost.XGBClassifier(n_estimators=200).fit(x, y),
        _by_xgboost,
    ),
    Case(
        "boosting, 100 trees of depth 3",
        lambda x, y: GradientBoostingClassifier(random_state=0).fit(x, y),
        _by_sklearn,
    ),
    Case(
        "forest, 100 trees of depth 5",
        lambda x, y: RandomForestClassifier(100, max_depth=5, random_state=0).fit(x, y),
        _by_sklearn,
    ),
    Case(
        "forest, 100 trees of any depth",
        lambda x, y: RandomForestClassifier(100, random_state=0).fit(x, y),
        _by_sklearn,
    ),
)


def table_of(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Random features, and three classes that follow from four of them."""
    table = np.random.default_rng(0).standard_normal((rows, FEATURES)).astype("float32")
    classes = (table[:, 0] * table[:, 1] + table[:, 2] > 0).astype(int) + (table[:, 3] > 0)
    return table, classes


def calls_of(case: Case, target: str) -> Callable[[np.ndarray], list[Callable[[], Any]]]:
    """From rows to a call by weft and one by ONNX Runtime, of one trained ensemble."""
    table, classes = table_of(max(ROWS))
    proto = case.export(case.train(table, classes), table)
    compiled = weft.compile(proto, target=target, hot_shapes=0)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return lambda rows: [lambda: compiled(rows), lambda: session.run(None, {name: rows})]


def main() -> None:
    """Measure and print one line for each ensemble."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="ensembles with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    options = parser.parse_args()
    set_num_threads(1)
    print(f"{'':34}" + "".join(f"{rows:>11} rows" for rows in ROWS))
    for case in chosen(CASES, options.only):
        calls = calls_of(case, f"{options.target} -num-cores=1")
        cells = []
        for rows in ROWS:
            pair = calls(table_of(max(ROWS))[0][:rows])
            turns = [[lowest(call) for call in pair] for _ in range(TURNS)]
            own, peer = (min(times) for times in zip(*turns, strict=True))
            cells.append(f"{own * 1e6:7.0f} us {peer / own:4.1f}x")
        print(f"{case.name:34}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
