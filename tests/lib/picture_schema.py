"""Checks that the data of a page has its form (docs/design/0022-pictures.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Number = (int, float)
Optional = type(None)
SUMMARY = {
    "kernels": int, "passes": int, "weight_bytes": int, "arena_bytes": int,
    "compile_seconds": (*Number, Optional), "call_us": (*Number, Optional),
}  # fmt: skip
PASS = {"name": str, "phase": str, "depth": int, "ms": Number, "before": int, "after": int}
NODE = {
    "id": int, "label": str, "op": str, "type": str, "kind": str, "group": (int, Optional),
    "constants": int,
}  # fmt: skip
GROUP = {"id": int, "name": str, "kernel": (str, Optional)}
KERNEL = {
    "name": str, "scheduled": (str, Optional), "lowered": (str, Optional),
    "llvm_before": (str, Optional), "llvm": (str, Optional), "assembly": (str, Optional),
    "links": list, "loops": list, "vector_bits": (int, Optional), "registers": (int, Optional),
    "spills": (int, Optional), "weights": list, "schedule": dict,
}  # fmt: skip
LOOP = {
    "var": str, "extent": str, "trip": (int, Optional), "kind": str, "depth": int, "line": int,
    "bytes": (int, Optional), "flops": (*Number, Optional),
}  # fmt: skip
SCHEDULE = {"rule": (str, Optional), "refused": list, "start": (str, Optional), "steps": list}
BUFFER = {
    "name": str, "bytes": int, "offset": int, "first": int, "last": int, "producer": str,
    "users": list,
}  # fmt: skip
KERNEL_WEIGHT = {"parameter": str, "weight": str, "kind": str}
WEIGHT = {"name": str, "bytes": int, "kind": str, "kernel": (str, Optional)}
CALL = {
    "kernel": str, "index": int, "us": Number, "gflop": (*Number, Optional),
    "bytes": (int, Optional), "share_of_peak": (*Number, Optional),
    "share_of_bandwidth": (*Number, Optional), "wasted_us": (*Number, Optional), "threads": int,
}  # fmt: skip
ACTIVITY = {"thread": int, "kernel": str, "begin_us": Number, "end_us": Number}
CACHE = {"kernel": str, "hit": bool, "reason": str}
REPORT = {"topic": str, "text": str, "kernel": (str, Optional)}
FUSION = {"producer": str, "consumer": str, "reason": str}
TOP = {
    "version": int, "title": str, "target": str, "created": str, "summary": dict, "texts": dict,
    "states": list, "passes": list, "graphs": list, "fusion": list, "kernels": list,
    "memory": dict, "profile": (dict, Optional), "compile": dict, "report": list,
}  # fmt: skip
TEXTS = ("scheduled", "lowered", "llvm_before", "llvm", "assembly")
LINKED = ("scheduled", "lowered", "llvm_before", "llvm", "assembly")


def check_record(record: Mapping[str, Any], form: Mapping[str, Any], where: str) -> None:
    """The record has exactly these keys, each of its type."""
    assert set(record) == set(form), f"{where}: {set(record) ^ set(form)}"
    for key, kind in form.items():
        assert isinstance(record[key], kind), f"{where}.{key} is {record[key]!r}"


def check_all(rows: list[Mapping[str, Any]], form: Mapping[str, Any], where: str) -> None:
    """Every row has the form."""
    for at, row in enumerate(rows):
        check_record(row, form, f"{where}[{at}]")


def check_picture(data: Mapping[str, Any]) -> None:
    """The data obeys the contract; ids, texts and lines that it names are there."""
    check_record(data, TOP, "data")
    check_record(data["summary"], SUMMARY, "summary")
    texts, names = data["texts"], {kernel["name"] for kernel in data["kernels"]}
    for state in data["states"]:
        assert set(state) == {"functions"}
        assert set(state["functions"].values()) <= texts.keys()
    check_all(data["passes"], PASS, "passes")
    for row in data["passes"]:
        assert row["phase"] in ("graph", "lower")
        assert {row["before"], row["after"]} <= set(range(len(data["states"])))
    for graph in data["graphs"]:
        _check_graph(graph, len(data["passes"]), names)
    check_all(data["fusion"], FUSION, "fusion")
    check_all(data["kernels"], KERNEL, "kernels")
    for kernel in data["kernels"]:
        _check_kernel(kernel, texts)
    _check_memory(data["memory"])
    if data["profile"] is not None:
        check_all(data["profile"]["calls"], CALL, "calls")
        check_all(data["profile"]["activity"] or [], ACTIVITY, "activity")
        assert {call["kernel"] for call in data["profile"]["calls"]} <= names
    check_all(data["compile"]["phases"], {"name": str, "seconds": Number}, "phases")
    check_all(data["compile"]["cache"], CACHE, "cache")
    check_all(data["report"], REPORT, "report")


def _check_graph(graph: Mapping[str, Any], passes: int, kernels: set[str]) -> None:
    assert set(graph) == {"name", "after", "nodes", "edges", "groups"}
    assert -1 <= graph["after"] < passes
    check_all(graph["nodes"], NODE, "nodes")
    check_all(graph["groups"], GROUP, "groups")
    nodes, groups = [node["id"] for node in graph["nodes"]], {g["id"] for g in graph["groups"]}
    assert nodes == list(range(len(nodes)))
    assert {node["group"] for node in graph["nodes"]} <= {*groups, None}
    assert {node["kind"] for node in graph["nodes"]} <= {"input", "call", "output"}
    assert {group["kernel"] for group in graph["groups"]} <= {*kernels, None}
    for source, target, kind in graph["edges"]:
        assert source in nodes
        assert target in nodes
        assert isinstance(kind, str)


def _check_kernel(kernel: Mapping[str, Any], texts: Mapping[str, str]) -> None:
    for form in TEXTS:
        assert kernel[form] is None or kernel[form] in texts
    lengths = [
        0 if kernel[form] is None else texts[kernel[form]].count("\n") + 1 for form in LINKED
    ]
    for link in kernel["links"]:
        assert len(link) == len(LINKED)
        assert all(0 <= line <= length for line, length in zip(link, lengths, strict=True)), link
    assert kernel["links"] == sorted(kernel["links"])
    check_all(kernel["loops"], LOOP, "loops")
    check_all(kernel["weights"], KERNEL_WEIGHT, "weights")
    for loop in kernel["loops"]:
        assert loop["kind"] in ("serial", "parallel", "vectorized", "unrolled")
        line = texts[kernel["scheduled"]].split("\n")[loop["line"] - 1]
        assert loop["line"] > 0
        assert line.strip().startswith("for "), line
    schedule = kernel["schedule"]
    check_record(schedule, SCHEDULE, "schedule")
    check_all(schedule["refused"], {"rule": str, "reason": str}, "refused")
    check_all(schedule["steps"], {"text": str, "script": (str, Optional)}, "steps")
    for digest in [schedule["start"], *[step["script"] for step in schedule["steps"]]]:
        assert digest is None or digest in texts


def _check_memory(memory: Mapping[str, Any]) -> None:
    assert set(memory) == {"arena_bytes", "live_bound_bytes", "steps", "buffers", "weights"}
    check_all(memory["buffers"], BUFFER, "buffers")
    check_all(memory["weights"], WEIGHT, "weights")
    assert {weight["kind"] for weight in memory["weights"]} <= {
        "as given", "packed", "transformed", "copied",
    }  # fmt: skip
    for buffer in memory["buffers"]:
        assert 0 <= buffer["first"] <= buffer["last"] < len(memory["steps"])
        assert buffer["offset"] + buffer["bytes"] <= memory["arena_bytes"]
