"""Records for the page of ``weft viz``: a small network, a hostile one, a large one.

They follow the contract of ``weft.viz.html.page``. What they say is invented, but consistent: line
numbers of links exist, buffers fit the arena, calls name kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

Record = dict[str, Any]


class Layer(NamedTuple):
    """One fused group: its operators, its result, the index of the layers that it reads."""

    name: str
    operators: tuple[str, ...]
    shape: tuple[int, ...]
    reads: tuple[int, ...]
    weights: tuple[tuple[str, int], ...]
    us: float
    peak: float
    bandwidth: float


# Layer -1 is the input.
CNN = (
    Layer(
        "fused_conv2d_add_relu",
        ("conv2d", "add", "relu"),
        (1, 16, 28, 28),
        (-1,),
        (("stem.weight", 1728), ("stem.bias", 64)),
        7.1,
        0.42,
        0.18,
    ),
    Layer(
        "fused_conv2d1_add1_relu1",
        ("conv2d", "add", "relu"),
        (1, 16, 28, 28),
        (0,),
        (("block.0.weight", 9216), ("block.0.bias", 64)),
        21.4,
        0.88,
        0.11,
    ),
    Layer(
        "fused_conv2d1_add1_add2_relu1",
        ("conv2d", "add", "add", "relu"),
        (1, 16, 28, 28),
        (1, 0),
        (("block.2.weight", 9216), ("block.2.bias", 64)),
        24.9,
        0.79,
        0.2,
    ),
    Layer("max_pool2d", ("max_pool2d",), (1, 16, 14, 14), (2,), (), 4.2, 0.02, 0.64),
    Layer("reshape", ("reshape",), (1, 3136), (3,), (), 0.9, 0.0, 0.55),
    Layer(
        "fused_matmul_add_relu",
        ("matmul", "add", "relu"),
        (1, 128),
        (4,),
        (("head.0.weight", 1605632), ("head.0.bias", 512)),
        61.3,
        0.09,
        0.93,
    ),
    Layer(
        "fused_matmul1_add",
        ("matmul", "add"),
        (1, 10),
        (5,),
        (("head.2.weight", 5120), ("head.2.bias", 40)),
        1.4,
        0.05,
        0.12,
    ),
    Layer("softmax", ("softmax",), (1, 10), (6,), (), 0.8, 0.01, 0.01),
)
INPUT = (1, 3, 28, 28)


class Texts:
    """Texts by hash, each kept once."""

    def __init__(self) -> None:
        self.all: dict[str, str] = {}

    def add(self, text: str) -> str:
        """The hash of a text, which is kept."""
        name = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
        self.all[name] = text
        return name


def tensor_type(shape: Iterable[int]) -> str:
    """The type of a float32 tensor as the page has it."""
    return f"float32[{', '.join(map(str, shape))}]"


def size_of(shape: tuple[int, ...]) -> int:
    """Bytes of a float32 tensor."""
    total = 4
    for extent in shape:
        total *= extent
    return total


def _sinfo(shape: tuple[int, ...]) -> str:
    return f'R.Tensor(({", ".join(map(str, shape))}), dtype="float32")'


def _relax(layers: tuple[Layer, ...], stage: str) -> str:
    """The text of `main`: with operators, with one call for each, or with one for each group."""
    lines = [
        "# from tvm.script import relax as R",
        "",
        "@R.function",
        f"def main(x: {_sinfo(INPUT)}) -> {_sinfo(layers[-1].shape)}:",
        "    with R.dataflow():",
    ]
    values = {-1: "x"}
    count = 0
    for index, layer in enumerate(layers):
        inputs = [values[i] for i in layer.reads]
        constants = [f'metadata["relax.expr.Constant"][{count + i}]' for i in (0, 1)]
        if stage == "fused":
            call = f"({', '.join([*inputs, *constants[: len(layer.weights)]])})"
            value = f"R.call_tir(cls.{layer.name}, {call}, out_sinfo={_sinfo(layer.shape)})"
            lines.append(f"        lv{index} = {value}")
            values[index] = f"lv{index}"
            continue
        value = inputs[0]
        for step, operator in enumerate(layer.operators):
            second = inputs[1:] if (step, len(inputs)) == (2, 2) else constants[step : step + 1]
            arguments = [value, *(second if operator in ("conv2d", "matmul", "add") else [])]
            name = f"lv{index}_{step}"
            if stage == "imported":
                prefix = "R." if operator in ("add", "reshape", "matmul") else "R.nn."
                lines.append(
                    f"        {name}: {_sinfo(layer.shape)} = "
                    f"{prefix}{operator}({', '.join(arguments)})"
                )
            else:
                lines.append(
                    f"        {name} = R.call_tir(cls.{operator}{index}, "
                    f"({', '.join(arguments)},), out_sinfo={_sinfo(layer.shape)})"
                )
            value = name
        values[index] = value
    lines += [
        f"        R.output({values[len(layers) - 1]})",
        f"    return {values[len(layers) - 1]}",
    ]
    return "\n".join(lines) + "\n"


def _loops(layer: Layer) -> tuple[list[str], list[dict[str, Any]]]:
    """A scheduled program of seven loops and what the page says of them."""
    reduce = layer.weights[0][1] // 64 if layer.weights else 9
    head = [
        "# from tvm.script import tir as T",
        "",
        "@T.prim_func(private=True)",
        f'def {layer.name}(x: T.Buffer({INPUT}, "float32"), '
        f'out: T.Buffer({layer.shape}, "float32")):',
        '    T.func_attr({"tir.is_scheduled": 1, "tir.noalias": T.bool(True)})',
        '    # with T.block("root"):',
        f'    local = T.alloc_buffer({layer.shape}, scope="local")',
    ]
    # Variable, text, extent, iterations, kind, depth, bytes and operations of one execution.
    nest = (
        ("i_j_fused", "T.parallel(28)", "28", 28, "parallel", 0, 50176 * reduce, 25088 * reduce),
        ("k_0", "range(n)", "n", 2, "serial", 1, 1792 * reduce, 896 * reduce),
        ("ax_init", "T.unroll(14)", "14", 14, "unrolled", 2, 896, 0),
        ("lane_init", "T.vectorized(16)", "16", 16, "vectorized", 3, 64, 0),
        ("r", f"range({reduce})", str(reduce), reduce, "serial", 2, 896 * reduce, 448 * reduce),
        ("ax", "T.unroll(14)", "14", 14, "unrolled", 3, 896, 448),
        ("lane", "T.vectorized(16)", "16", 16, "vectorized", 4, 64, 32),
    )
    lines, loops = list(head), []
    for var, text, extent, trip, kind, depth, size, flops in nest:
        lines.append(f"{'    ' * (depth + 1)}for {var} in {text}:")
        loops.append(
            {
                "var": var,
                "extent": extent,
                "trip": trip,
                "kind": kind,
                "depth": depth,
                "line": len(lines),
                "bytes": size,
                "flops": flops,
            }
        )
        if var.startswith("lane"):
            pad = "    " * (depth + 2)
            axis = "ax_init" if "init" in var else "ax"
            update = "T.float32(0.0)" if "init" in var else "local[vi, vj] + x[vi, vk] * w[vk, vj]"
            lines += [
                f'{pad}with T.block("{"init" if "init" in var else "update"}"):',
                f'{pad}    vi, vj = T.axis.remap("SS", [i_j_fused, {axis}])',
                f"{pad}    T.writes(local[vi, vj])",
                f"{pad}    local[vi, vj] = {update}",
            ]
    lines.append("    for j in T.vectorized(16):")
    lines.append("        out[0, j] = T.max(local[0, j], T.float32(0.0))")
    return lines, loops


def _kernel(layer: Layer, texts: Texts) -> Record:
    scheduled, loops = _loops(layer)
    init, update = (loop["line"] + 4 for loop in (loops[3], loops[6]))
    lowered = [
        *scheduled[:5],
        '    with T.decl_buffer((14, 16), scope="local") as local:',
        "        for i_j_fused in T.parallel(28):",
    ]
    before = [f"define internal void @{layer.name}(ptr noalias %x, ptr noalias %out) {{", "entry:"]
    llvm = [
        f"define void @{layer.name}(ptr %x, ptr %out) #0 !dbg !4 {{",
        "entry:",
        "  br label %loop1",
    ]
    assembly = [f"{layer.name}:", "\tpushq\t%rbp", "\tmovq\t%rsp, %rbp", ".LBB0_1:"]
    links = []
    for row in range(14):
        lowered.append(f"            local[{row}, 0:16] = T.Broadcast(T.float32(0.0), 16)")
        llvm.append(
            f"  %acc{row} = phi <16 x float> [ zeroinitializer, %entry ], [ %sum{row}, %loop1 ]"
        )
        assembly.append(f"\tvxorps\t%xmm{row}, %xmm{row}, %xmm{row}")
        links.append([init, len(lowered), 0, len(llvm), len(assembly)])
    lowered.append(f"            for r in range({loops[4]['extent']}):")
    for row in range(14):
        lowered.append(
            f"                local[{row}, 0:16] = local[{row}, 0:16] + "
            f"T.Broadcast(x[i_j_fused, r + {row}], 16) * w[r, 0:16]"
        )
        for instruction in (
            f"  %load{row} = load <16 x float>, ptr %p{row}, align 64, !dbg !7",
            f"  %mul{row} = fmul contract <16 x float> %load{row}, %w",
            f"  %sum{row} = fadd contract <16 x float> %acc{row}, %mul{row}",
        ):
            llvm.append(instruction)
            before.append(instruction)
            links.append([update, len(lowered), len(before), len(llvm), len(assembly) + 1])
        assembly.append(f"\tvfmadd231ps\t{4 * row}(%rax,%r10,4){{1to16}}, %zmm14, %zmm{row}")
    llvm += ["  br i1 %more, label %loop1, label %done", "done:", "  ret void", "}"]
    before += ["  ret void", "}"]
    assembly += ["\taddq\t$64, %r10", "\tjne\t.LBB0_1", "\tpopq\t%rbp", "\tretq"]
    return {
        "name": layer.name,
        "scheduled": texts.add("\n".join(scheduled)),
        "lowered": texts.add("\n".join(lowered)),
        "llvm_before": texts.add("\n".join(before)),
        "llvm": texts.add("\n".join(llvm)),
        "assembly": texts.add("\n".join(assembly)),
        "links": sorted(links),
        "loops": loops,
        "vector_bits": 512,
        "registers": 29,
        "spills": 3 if layer.name == "softmax" else 0,
        "weights": [
            {"parameter": f"w{at}", "weight": name, "kind": "packed" if size > 9000 else "as given"}
            for at, (name, size) in enumerate(layer.weights)
        ],
        "schedule": _schedule(scheduled, texts),
    }


def _schedule(scheduled: list[str], texts: Texts) -> Record:
    """Four steps that lead to the scheduled program, and two rules that said no."""
    plain = [
        *scheduled[:7],
        "    for i, j, r in T.grid(28, 448, 9):",
        '        with T.block("update"):',
        '            vi, vj, vk = T.axis.remap("SSR", [i, j, r])',
        "            local[vi, vj] = local[vi, vj] + x[vi, vk] * w[vk, vj]",
    ]
    split = [*plain[:7], "    for i, j_0, j_1, r in T.grid(28, 28, 16, 9):", *plain[8:]]
    parallel = [
        *plain[:7],
        "    for i in T.parallel(28):",
        "        for j_0, j_1, r in T.grid(28, 16, 9):",
        *(f"    {line}" for line in plain[8:]),
    ]
    steps = (
        ("j_0, j_1 = sch.split(loop=j, factors=[None, 16])", split),
        ("sch.parallel(loop=i)", parallel),
        ("sch.annotate(block_or_loop=i, ann_key='weft.team', ann_val=2)", None),
        ("sch.decompose_reduction(block=update, loop=r)", scheduled),
    )
    return {
        "rule": "Convolution",
        "refused": [
            {"rule": "Winograd", "reason": "3 by 3, but 16 channels are fewer than 64"},
            {"rule": "Pointwise", "reason": "the block update reduces over r"},
        ],
        "start": texts.add("\n".join(plain)),
        "steps": [
            {"text": text, "script": None if lines is None else texts.add("\n".join(lines))}
            for text, lines in steps
        ],
    }


def _graph(layers: tuple[Layer, ...], name: str, after: int, is_grouped: bool) -> Record:
    nodes = [
        {
            "id": 0,
            "label": "x",
            "op": "",
            "type": tensor_type(INPUT),
            "kind": "input",
            "group": None,
            "constants": 0,
        }
    ]
    edges = []
    ends = {-1: 0}
    for index, layer in enumerate(layers):
        value = [ends[i] for i in layer.reads]
        for step, operator in enumerate(layer.operators):
            number = len(nodes)
            nodes.append(
                {
                    "id": number,
                    "label": f"lv{number}",
                    "op": operator,
                    "type": tensor_type(layer.shape),
                    "kind": "call",
                    "group": index if is_grouped else None,
                    "constants": int(step < len(layer.weights)),
                }
            )
            edges.append([value[0], number, nodes[value[0]]["type"]])
            if step == 2 and len(layer.reads) == 2:
                edges.append([value[1], number, nodes[value[1]]["type"]])
            value[0] = number
        ends[index] = value[0]
    last = len(nodes)
    nodes.append(
        {
            "id": last,
            "label": "result",
            "op": "",
            "type": tensor_type(layers[-1].shape),
            "kind": "output",
            "group": None,
            "constants": 0,
        }
    )
    edges.append([last - 1, last, tensor_type(layers[-1].shape)])
    groups = [{"id": i, "name": layer.name, "kernel": layer.name} for i, layer in enumerate(layers)]
    return {
        "name": name,
        "after": after,
        "nodes": nodes,
        "edges": edges,
        "groups": groups if is_grouped else [],
    }


def _passes(
    layers: tuple[Layer, ...], texts: Texts, kernels: list[Record]
) -> tuple[list[Record], list[Record]]:
    mains = {stage: texts.add(_relax(layers, stage)) for stage in ("imported", "legal", "fused")}
    scheduled = {kernel["name"]: kernel["scheduled"] for kernel in kernels}
    plain = {kernel["name"]: kernel["schedule"]["start"] for kernel in kernels}
    lowered = {kernel["name"]: kernel["lowered"] for kernel in kernels}
    states = [
        {"functions": {"main": mains["imported"]}},
        {"functions": {"main": mains["legal"]}},
        {"functions": {"main": mains["fused"], **plain}},
        {"functions": {"main": mains["fused"], **scheduled}},
        {"functions": lowered},
    ]
    rows = (
        ("zero_pipeline", "graph", 0, 58.9, 0, 2),
        ("relax.NormalizeBindings", "graph", 1, 0.4, 0, 0),
        ("relax.FoldConstant", "graph", 1, 2.8, 0, 0),
        ("relax.LegalizeOps", "graph", 1, 31.0, 0, 1),
        ("relax.AnnotateTIROpPattern", "graph", 1, 5.2, 1, 1),
        ("relax.FuseOps", "graph", 2, 4.4, 1, 1),
        ("relax.FuseTIR", "graph", 2, 12.6, 1, 2),
        ("relax.DeadCodeElimination", "graph", 1, 0.8, 2, 2),
        ("dlight.ApplyDefaultSchedule", "graph", 0, 44.7, 2, 3),
        ("tir.LowerInitBlock", "lower", 0, 1.2, 3, 3),
        ("tir.ConvertBlocksToOpaque", "lower", 0, 3.1, 3, 4),
        ("tir.Simplify", "lower", 0, 9.4, 4, 4),
    )
    return [
        {"name": name, "phase": phase, "depth": depth, "ms": ms, "before": before, "after": after}
        for name, phase, depth, ms, before, after in rows
    ], states


def _memory(layers: tuple[Layer, ...]) -> Record:
    """Buffers in the first gap that lasts, as a simple planner has them."""
    buffers: list[Record] = []
    for index, layer in enumerate(layers[:-1]):
        users = [later for later, other in enumerate(layers) if index in other.reads]
        size, offset = size_of(layer.shape), 0
        for other in sorted(buffers, key=lambda buffer: buffer["offset"]):
            if other["last"] >= index and other["offset"] < offset + size:
                offset = max(offset, other["offset"] + other["bytes"])
        buffers.append(
            {
                "name": f"lv{index}",
                "bytes": size,
                "offset": offset,
                "first": index,
                "last": max(users),
                "producer": layer.name,
                "users": [layers[i].name for i in users],
            }
        )
    live = max(
        sum(b["bytes"] for b in buffers if b["first"] <= step <= b["last"])
        for step in range(len(layers))
    )
    kinds = {1605632: "packed", 9216: "packed", 1728: "transformed", 5120: "copied"}
    return {
        "arena_bytes": max(b["offset"] + b["bytes"] for b in buffers),
        "live_bound_bytes": live,
        "steps": [layer.name for layer in layers],
        "buffers": buffers,
        "weights": [
            {"name": name, "bytes": size, "kind": kinds.get(size, "as given"), "kernel": layer.name}
            for layer in layers
            for name, size in layer.weights
        ],
    }


def _profile(layers: tuple[Layer, ...], has_activity: bool) -> Record:
    calls, activity, at = [], [], 0.0
    for index, layer in enumerate(layers):
        threads = 2 if layer.us > 5 else 1
        gflop = 60.0 * layer.peak * layer.us / 1e6
        calls.append(
            {
                "kernel": layer.name,
                "index": index,
                "us": layer.us,
                "gflop": gflop or None,
                "bytes": 20e3 * layer.bandwidth * layer.us,
                "share_of_peak": layer.peak,
                "share_of_bandwidth": layer.bandwidth,
                "threads": threads,
                "wasted_us": layer.us * (1 - max(layer.peak, layer.bandwidth)),
            }
        )
        for thread in range(threads):
            activity.append(
                {
                    "thread": thread,
                    "kernel": layer.name,
                    "begin_us": at + 0.2 * thread,
                    "end_us": at + layer.us * (1 - 0.07 * thread),
                }
            )
        at += layer.us + 0.15
    return {
        "threads": 2,
        "runs": 200,
        "peak_gflops": 60.0,
        "bandwidth_gbs": 20.0,
        "calls": calls,
        "activity": activity if has_activity else None,
    }


def _compile(kernels: list[Record]) -> Record:
    return {
        "phases": [
            {"name": "import", "seconds": 0.08},
            {"name": "graph passes", "seconds": 0.21},
            {"name": "default schedules", "seconds": 0.17},
            {"name": "lower", "seconds": 0.26},
            {"name": "LLVM", "seconds": 0.68},
            {"name": "pack weights", "seconds": 0.02},
        ],
        "cache": [
            {
                "kernel": kernel["name"],
                "hit": at % 3 != 0,
                "reason": "same program and target" if at % 3 else "first seen on this processor",
            }
            for at, kernel in enumerate(kernels)
        ],
    }


def _report(layers: tuple[Layer, ...]) -> list[Record]:
    return [
        {
            "topic": "weights",
            "text": "head.0.weight packed into panels of 16 columns",
            "kernel": "fused_matmul_add_relu",
        },
        {
            "topic": "algorithms",
            "text": "direct convolution, 14 by 16 accumulators in registers",
            "kernel": layers[0].name,
        },
        {
            "topic": "looked for and not found",
            "text": "no pair of layers is quantized",
            "kernel": None,
        },
        {"topic": "one thread", "text": "runs on one thread: 40 elements", "kernel": "softmax"},
    ]


def _record(layers: tuple[Layer, ...], title: str, has_activity: bool = True) -> Record:
    texts = Texts()
    kernels = [_kernel(layer, texts) for layer in layers]
    passes, states = _passes(layers, texts, kernels)
    memory, profile = _memory(layers), _profile(layers, has_activity)
    pairs = [
        (reader, index)
        for index, layer in enumerate(layers)
        for reader in layer.reads[:1]
        if reader >= 0
    ]
    reasons = (
        "the consumer reduces, and a group has one reduction",
        "the value has two readers",
        "the layouts differ: blocks of 16 channels against rows",
    )
    return {
        "version": 1,
        "title": title,
        "target": "llvm -mcpu=znver4 -num-cores=2",
        "created": "2026-11-28T20:00:00Z",
        "summary": {
            "kernels": len(kernels),
            "passes": len(passes),
            "weight_bytes": sum(w["bytes"] for w in memory["weights"]),
            "arena_bytes": memory["arena_bytes"],
            "compile_seconds": 1.42,
            "call_us": sum(call["us"] for call in profile["calls"]),
        },
        "texts": texts.all,
        "states": states,
        "passes": passes,
        "graphs": [
            _graph(layers, "imported", -1, False),
            _graph(layers, "after fusion", 6, True),
            _graph(layers, "final", 8, True),
        ],
        "fusion": [
            {"producer": producer, "consumer": consumer, "reason": reasons[at % len(reasons)]}
            for at, (producer, consumer) in enumerate(pairs)
        ],
        "kernels": kernels,
        "memory": memory,
        "profile": profile,
        "compile": _compile(kernels),
        "report": _report(layers),
    }


def cnn() -> Record:
    """A small convolutional network with one residual connection, as one compiles it."""
    return _record(CNN, "FashionMNIST CNN")


def large(groups: int = 133) -> Record:
    """A network with about 400 nodes, in ``groups`` groups, and residual connections."""
    layers = [CNN[0]]
    for index in range(1, groups):
        pattern = CNN[1] if index % 3 else CNN[2]
        reads = (index - 1, index - 3) if index % 3 == 0 else (index - 1,)
        layers.append(
            pattern._replace(
                name=f"{pattern.name}_{index}",
                reads=reads,
                us=3.0 + (index * 37) % 50,
            )
        )
    return _record(tuple(layers), "a network of 400 operators", has_activity=False)


HOSTILE_NAMES = (
    "</script><script>document.title='taken'</script>",
    '<img src="x" onerror="document.title=\'taken\'">',
    "\"'`\\ & <b>bold</b> &amp; \u2028 \U0001f600 \udc80 \x00 \t \n two lines",
    "x" * 10_000,
    "%&=#kernel=1",
    "__proto__",
    "",
)


def hostile() -> Record:
    """The small network with names that try to be markup, and much that is empty or null."""
    layers = tuple(
        layer._replace(name=name) for layer, name in zip(CNN, HOSTILE_NAMES, strict=False)
    )
    record = _record(layers, HOSTILE_NAMES[0])
    record["target"] = HOSTILE_NAMES[1]
    record["summary"]["call_us"] = None
    record["graphs"].append(
        {"name": HOSTILE_NAMES[0], "after": None, "nodes": [], "edges": [], "groups": []}
    )
    record["graphs"][0]["edges"].clear()
    record["graphs"][1]["edges"].append([999, 0, None])
    for graph in record["graphs"]:
        for node, name in zip(graph["nodes"], HOSTILE_NAMES, strict=False):
            node.update(label=name, op=name, type=name)
    record["passes"].append(
        {
            "name": HOSTILE_NAMES[3],
            "phase": "lower",
            "depth": 90,
            "ms": None,
            "before": None,
            "after": 1,
        }
    )
    first, second, third = record["kernels"][:3]
    first.update(
        scheduled=None,
        lowered="absent",
        llvm=None,
        links=[],
        loops=[],
        registers=None,
        vector_bits=None,
        spills=None,
    )
    second.update(links=[[10**6] * 5, None], schedule=None)
    third["loops"][0].update(trip=None, bytes=None, flops=None, extent=HOSTILE_NAMES[2])
    record["texts"][third["assembly"]] = "\n".join([*HOSTILE_NAMES, "y" * 100_000])
    record["memory"]["buffers"].append(
        {
            "name": HOSTILE_NAMES[1],
            "bytes": 0,
            "offset": 0,
            "first": 0,
            "last": 0,
            "producer": None,
            "users": [],
        }
    )
    record["profile"]["calls"][0].update(
        gflop=None, bytes=None, share_of_peak=None, wasted_us=None, share_of_bandwidth=None
    )
    record["profile"].update(peak_gflops=None, bandwidth_gbs=None, activity=[])
    record["report"] += [{"topic": HOSTILE_NAMES[1], "text": HOSTILE_NAMES[0], "kernel": "absent"}]
    return record


def empty() -> Record:
    """A record in which nothing was recorded."""
    return {
        "version": 1,
        "title": "nothing",
        "target": "llvm",
        "created": "",
        "summary": {},
        "texts": {},
        "states": [],
        "passes": [],
        "graphs": [],
        "fusion": [],
        "kernels": [],
        "memory": {
            "arena_bytes": 0,
            "live_bound_bytes": 0,
            "steps": [],
            "buffers": [],
            "weights": [],
        },
        "profile": None,
        "compile": {"phases": [], "cache": []},
        "report": [{"topic": "time", "text": "no times: no inputs were given", "kernel": None}],
    }


def long_text() -> Record:
    """A kernel of which the assembly has 100,000 lines, and a pass that changes one line."""
    texts = Texts()
    lines = "\n".join(f"\tvaddps\t%zmm{at % 32}, %zmm0, %zmm1" for at in range(100_000))
    before = [f"    x{at} = T.float32({at})" for at in range(100)]
    after = [*before[:50], before[50].replace("float32", "float16"), *before[51:]]
    states = [{"functions": {"long": texts.add("\n".join(text))}} for text in (before, after)]
    change = {"name": "one", "phase": "lower", "depth": 0, "ms": 1, "before": 0, "after": 1}
    kernel = {"name": "long", "assembly": texts.add(lines)}
    return {
        **empty(),
        "kernels": [kernel],
        "texts": texts.all,
        "states": states,
        "passes": [change],
    }
