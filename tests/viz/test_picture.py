"""Pictures: the data obeys its contract, texts and links are there, memory is a plan, times."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

import weft
from tests.lib.picture_models import convolutional, layered
from tests.lib.picture_schema import check_picture
from weft import relax, te, tir
from weft.codegen.llvm.compile import translated
from weft.codegen.llvm.debug_lines import DebugLines
from weft.codegen.llvm.emit import emit_module
from weft.driver.pipeline import lower_tir
from weft.driver.recording import Recording, recording
from weft.ir.transform import PassContext
from weft.script import ir
from weft.script import relax as R
from weft.script import tir as T
from weft.script.printed import Printed
from weft.support.errors import IRValueError, UnsupportedError
from weft.target.host import llvm_options
from weft.viz.assembly import facts_of
from weft.viz.clocked import Run
from weft.viz.collect import Call
from weft.viz.loops import accesses_of
from weft.viz.picture import Picture, picture_of
from weft.viz.report import report_rows
from weft.viz.timing import activity_of


@T.prim_func
def doubled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)


def image():
    return np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype("float32")


@pytest.fixture(scope="module")
def network() -> Picture:
    """A convolutional network with a call of it."""
    picture = picture_of(convolutional(), title="network")
    picture.call = Call((image(),))
    return picture


@pytest.fixture(scope="module")
def symbolic() -> Picture:
    """Two layers of any number of rows, called with 12."""
    picture = picture_of(layered(tir.Var("n", "int64")), title="layers")
    picture.call = Call((np.ones((12, 256), "float32"),))
    return picture


@pytest.mark.parametrize("name", ["network", "symbolic"])
def test_the_data_obeys_the_contract(name, request):
    picture = request.getfixturevalue(name)
    check_picture(json.loads(picture.json()))


def test_functions_alone_have_a_picture():
    data = picture_of(doubled).data
    check_picture(data)
    assert data["profile"] is None
    assert [kernel["name"] for kernel in data["kernels"]] == ["doubled"]
    assert any("called from Python" in row["text"] for row in data["report"])


@pytest.mark.parametrize("name", ["network", "symbolic"])
def test_every_kernel_has_all_texts_and_links_between_them(name, request):
    data = request.getfixturevalue(name).data
    assert data["kernels"]
    for kernel in data["kernels"]:
        texts = [kernel[form] for form in ("scheduled", "lowered", "llvm_before", "llvm")]
        assert None not in [*texts, kernel["assembly"]], kernel["name"]
        instructions = {link[4] for link in kernel["links"] if link[4]}
        assembly = data["texts"][kernel["assembly"]].split("\n")
        launch = [at for at, line in enumerate(assembly) if line.endswith(".part:")]
        loops = assembly[: launch[0]] if launch else assembly  # no statement starts the threads
        code = [at for at, line in enumerate(loops, 1) if line.startswith("\t")]
        assert len(instructions & {*code}) > 0.6 * len(code), kernel["name"]
        with_origin = [link for link in kernel["links"] if link[1] and link[0]]
        assert len(with_origin) == len([link for link in kernel["links"] if link[1]])


def test_a_link_leads_from_a_product_to_its_instruction():
    data = picture_of(doubled).data
    (kernel,) = data["kernels"]
    lines = {
        form: data["texts"][kernel[form]].split("\n")
        for form in ("scheduled", "lowered", "llvm_before", "llvm")
    }
    [at] = [i for i, line in enumerate(lines["scheduled"], 1) if "A[vi] * " in line]
    links = [link for link in kernel["links"] if link[0] == at]
    for place, form in ((2, "llvm_before"), (3, "llvm")):
        assert any("fmul" in lines[form][link[place] - 1] for link in links if link[place])
    assert {lines["lowered"][link[1] - 1].strip() for link in links} == {
        "B[i] = A[i] * T.float32(2.0)"
    }


def test_debug_locations_do_not_change_the_code(network):
    target = weft.target.Target("llvm")
    for name, func in network.record.kernels().items():
        with target:
            module = lower_tir()(weft.IRModule({name: func.with_attr("global_symbol", name)}))
        lowered = Printed.of(module[name], name)
        assert lowered.text in module[name].script(name=name)
        texts = [
            emit_module(weft.IRModule({name: lowered.marked()}), target, debug=DebugLines())[0],
            emit_module(module, target)[0],
        ]
        first, second = [
            translated(text, llvm_options(target), "assembly").decode() for text in texts
        ]
        assert instructions(first) == instructions(second), name
        assert ".loc" in first
        assert ".loc" not in second


def instructions(assembly):
    return [
        line.split("#")[0].strip() for line in assembly.split("\n") if re.match(r"\s+[a-z]", line)
    ]


def test_memory_rectangles_do_not_overlap(network):
    memory = network.data["memory"]
    assert memory["buffers"]
    assert 0 < memory["live_bound_bytes"] <= memory["arena_bytes"]
    for a, b in itertools.combinations(memory["buffers"], 2):
        if a["first"] <= b["last"] and b["first"] <= a["last"]:
            apart = a["offset"] + a["bytes"], b["offset"] + b["bytes"]
            assert apart[0] <= b["offset"] or apart[1] <= a["offset"], (a, b)
    for buffer in memory["buffers"]:
        assert memory["steps"][buffer["first"]] == buffer["producer"]
        assert memory["steps"][buffer["last"]] in [buffer["producer"], *buffer["users"]]


def test_symbolic_memory_is_that_of_the_call(symbolic):
    memory = symbolic.data["memory"]
    assert sorted(buffer["bytes"] for buffer in memory["buffers"]) == [12 * 10 * 4, 12 * 128 * 4]


def test_weights_say_what_became_of_them(network):
    kinds = {weight["kernel"]: weight["kind"] for weight in network.data["memory"]["weights"]}
    [convolution] = [kinds[name] for name in kinds if name.startswith("fused_conv2d_add_relu")]
    assert convolution in ("transformed", "packed")  # by the processor's vectors
    assert kinds["matmul11"] == "as given"
    layers = picture_of(layered(100)).data
    kinds = {weight["kernel"]: weight["kind"] for weight in layers["memory"]["weights"]}
    [packed] = [kernel for kernel in layers["kernels"] if kernel["name"].startswith("fused_")]
    assert kinds[packed["name"]] == "packed"
    assert "packed" in [row["kind"] for row in packed["weights"]]
    total = sum(weight["bytes"] for weight in network.data["memory"]["weights"])
    assert network.data["summary"]["weight_bytes"] == total


def test_a_table_of_which_rows_are_taken_moves_the_rows_only():
    table, rows = te.placeholder((5000, 16), name="table"), te.placeholder((3,), "int64", "rows")
    taken = te.compute((3, 16), lambda i, j: table[rows[i], j], name="taken")
    accesses = accesses_of(te.create_prim_func([table, rows, taken]))
    assert {data.name: count for data, count in accesses.items()} == {
        "table": 48, "rows": 48, "taken": 48,
    }  # fmt: skip
    x = relax.Var("x", relax.TensorStructInfo((3,), "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        weights = relax.const(np.ones((5000, 16), "float32"))
        builder.emit_func_output(builder.emit(relax.op.take(weights, x, axis=0)))
    picture = picture_of(builder.get())
    picture.call = Call((np.array([1, 2, 3], "int64"),))
    (call,) = picture.data["profile"]["calls"]
    assert call["bytes"] <= 2 * 3 * 16 * 4 + 3 * 8


def test_the_report_adds_up_the_calls_of_a_kernel():
    calls = [
        {"kernel": "often", "us": 3.0, "wasted_us": 2.0, "threads": 2},
        {"kernel": "once", "us": 4.0, "wasted_us": None, "threads": 2},
        {"kernel": "often", "us": 3.0, "wasted_us": 1.0, "threads": 2},
    ]
    record = Recording(weft.target.Target("llvm"), PassContext())
    rows = report_rows(record, {"weights": []}, [], {"calls": calls})
    assert [row["text"] for row in rows if row["topic"] == "time"] == [
        "often takes longest: 6.0 us, 60 % of all kernels",
        "often wastes most: 3.0 us more than its operations take at the peak, or its bytes in a "
        "copy",
    ]


def test_a_model_of_many_steps_is_measured():
    """Each step is nested in the one before it, deeper than Python's own limit."""
    x = relax.Var("x", relax.TensorStructInfo((2, 2), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(400):
                value = builder.emit(relax.op.matmul(value, x))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    picture = picture_of(builder.get())
    picture.call = Call((np.eye(2, dtype="float32"),))
    assert len(picture.data["profile"]["calls"]) == 400


def test_neighbours_that_did_not_fuse_have_a_reason(network):
    groups = {
        group["name"]
        for graph in network.data["graphs"] if graph["name"] == "after fusion"
        for group in graph["groups"]
    }  # fmt: skip
    assert any(name.startswith("fused_conv2d") for name in groups)
    pairs = {(row["producer"], row["consumer"]): row["reason"] for row in network.data["fusion"]}
    assert {name for pair in pairs for name in pair} <= groups
    [reason] = [
        reason for (producer, consumer), reason in pairs.items()
        if producer.startswith("fused_conv2d") and consumer.startswith("max_pool2d")
    ]  # fmt: skip
    assert "only element-wise followers" in reason


def test_a_graph_has_operators_types_and_edges(network):
    graph = network.data["graphs"][0]
    calls = [node["op"] for node in graph["nodes"] if node["kind"] == "call"]
    assert calls == [
        "nn.conv2d", "add", "nn.relu", "nn.max_pool2d", "reshape", "matmul", "nn.relu", "matmul",
    ]  # fmt: skip
    assert [edge[:2] for edge in graph["edges"]] == [(i, i + 1) for i in range(9)]
    assert graph["edges"][0][2] == "float32[1, 1, 28, 28]"
    assert [node["constants"] for node in graph["nodes"]] == [0, 1, 1, 0, 0, 0, 1, 0, 1, 0]


def test_groups_lead_to_their_kernels(network):
    graph = next(g for g in network.data["graphs"] if g["name"] == "after fusion")
    kernels = {kernel["name"] for kernel in network.data["kernels"]}
    by_group = {group["name"]: group["kernel"] for group in graph["groups"]}
    assert by_group.pop("reshape") is None  # it became a view
    assert set(by_group.values()) == kernels


def test_the_report_names_the_slowest_kernel_and_those_that_spill(network):
    rows = network.data["report"]
    slowest = max(network.data["profile"]["calls"], key=lambda call: call["us"])["kernel"]
    assert [row["kernel"] for row in rows if "takes longest" in row["text"]] == [slowest]
    spilling = {kernel["name"] for kernel in network.data["kernels"] if kernel["spills"]}
    assert {row["kernel"] for row in rows if row["topic"] == "spills"} == spilling


def test_schedules_say_what_fitted_and_what_did_not(network):
    for kernel in network.data["kernels"]:
        schedule = kernel["schedule"]
        assert schedule["rule"].startswith("Default")
        assert "Winograd" in [row["rule"] for row in schedule["refused"]]
        scripts = [step["script"] for step in schedule["steps"] if step["script"]]
        assert schedule["steps"]
        assert scripts
        last = network.data["texts"][scripts[-1]]
        assert "T.vectorized" in last


def test_a_program_that_fails_gives_its_reason():
    with recording() as record:
        weft.compile(layered(), cache=False)
    reasons = [reason for attempt in record.attempts for _, reason in attempt.refused]
    assert "the function is not of its form" in reasons


def test_passes_that_changed_nothing_keep_the_state(network):
    rows = {row["name"]: row for row in network.data["passes"]}
    assert rows["LegalizeOps"]["before"] != rows["LegalizeOps"]["after"]
    assert rows["UseWinograd"]["before"] == rows["UseWinograd"]["after"]
    assert rows["tir.VectorizeLoop"]["phase"] == "lower"
    assert rows["tir.VectorizeLoop"]["before"] != rows["tir.VectorizeLoop"]["after"]


def test_each_call_of_a_kernel_has_a_native_time_and_its_threads(network):
    profile, steps = network.data["profile"], network.data["memory"]["steps"]
    assert [call["kernel"] for call in profile["calls"]] == steps
    assert all(call["us"] > 0 for call in profile["calls"])
    assert [call["index"] for call in profile["calls"]] == list(range(len(steps)))
    assert {row["kernel"] for row in profile["activity"]} == set(steps)
    for row in profile["activity"]:
        assert 0 <= row["begin_us"] < row["end_us"]
        assert 0 <= row["thread"] < profile["threads"]


def test_operations_of_a_product_are_counted(symbolic):
    calls = symbolic.data["profile"]["calls"]
    product = next(call for call in calls if "matmul" in call["kernel"])
    assert product["gflop"] == pytest.approx(12 * 128 * (2 * 256 + 1) / 1e9)


def test_a_clocked_host_computes_the_same(network):
    before = network.model(image())
    network.data
    np.testing.assert_array_equal(network.model(image()), before)


def test_recording_changes_no_code():
    plain = weft.compile(layered(), cache=False)
    with recording():
        recorded = weft.compile(layered(), cache=False)
    assert recorded.code.code == plain.code.code


def test_cache_hits_are_told(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    rows = [picture_of(layered()).data["compile"]["cache"] for _ in range(2)]
    assert not any(row["hit"] for row in rows[0])
    assert all(row["hit"] for row in rows[1])
    assert "no function of this content" in rows[0][0]["reason"]
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    assert "caches are off" in picture_of(layered()).data["compile"]["cache"][0]["reason"]


def test_a_model_shows_itself_in_a_notebook(tmp_path):
    model = weft.compile(layered())
    picture = model.viz(np.ones((20, 256), "float32"))
    assert "<iframe" in picture._repr_html_()
    assert picture.data["profile"]["calls"]
    page = picture.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert model.viz().data["profile"] is None


def test_measuring_changes_no_state_of_the_model():
    torch = pytest.importorskip("torch")

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count.add_(1)
            return x * self.count

    counter, x = Counter(), torch.ones(4)
    model = weft.compile(counter, (x,))
    model(x)
    assert model.viz(x).data["profile"]["calls"]
    assert counter.count.item() == 1
    assert model(x).tolist() == [2.0] * 4


@pytest.mark.parametrize("rank", [0, 2])
def test_a_model_that_runs_as_bytecode_says_why_it_has_no_times(rank):
    x = relax.Var("x", relax.TensorStructInfo((4,) * rank, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nonzero(x)))
    picture = picture_of(builder.get())
    picture.call = Call((np.ones((4,) * rank, "float32"),))
    check_picture(picture.data)
    [reason] = [row["text"] for row in picture.data["report"] if row["topic"] == "time"]
    assert "it runs as bytecode" in reason


def test_a_model_for_another_processor_is_shown_without_times():
    target = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=cortex-a72"
    picture = picture_of(layered(), target=target)
    picture.call = Call((np.ones((20, 256), "float32"),))
    check_picture(picture.data)
    assert picture.data["profile"] is None
    assert {kernel["vector_bits"] for kernel in picture.data["kernels"]} == {128}
    [reason] = [row["text"] for row in picture.data["report"] if row["topic"] == "time"]
    assert "aarch64" in reason


def test_branches_are_in_the_graph():
    @ir.ir_module
    class Branch:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor(
            (4,), "float32"
        ):
            if c:
                y = R.add(x, x)
                r = R.nn.relu(y)
            else:
                z = R.multiply(x, x)
                r = R.exp(z)
            return r

    picture = picture_of(Branch)
    check_picture(picture.data)
    operators = {node["op"] for node in picture.data["graphs"][0]["nodes"]}
    assert {"add", "nn.relu", "multiply", "exp"} <= operators


def test_a_file_without_its_module_shows_what_it_holds(tmp_path):
    weft.compile(layered()).save(tmp_path / "m.weft")
    picture = weft.load(tmp_path / "m.weft").viz(np.ones((20, 256), "float32"))
    check_picture(picture.data)
    assert picture.data["summary"]["weight_bytes"] > 0
    assert picture.data["summary"]["compile_seconds"] is None
    assert any("def main" in text for text in picture.data["texts"].values())


PRODUCT = re.compile(r"\t(?:vfn?m\w+|fml[as])\t")


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump (binutils)")
def test_kernels_of_a_file_are_disassembled(tmp_path):
    model = weft.compile(layered(100), cache=False)
    model.save(tmp_path / "m.weft")
    told = {}
    for picture in (model.viz(), weft.load(tmp_path / "m.weft").viz()):
        texts = picture.data["texts"]
        for kernel in picture.data["kernels"]:
            products = len(PRODUCT.findall(texts[kernel["assembly"]]))
            facts = kernel["vector_bits"], kernel["registers"], kernel["spills"]
            told.setdefault(kernel["name"], []).append((products, *facts))
    assert told
    for name, (of_llvm, of_file) in told.items():
        assert of_llvm == of_file, name
        assert of_llvm[0] > 0


def test_a_file_says_why_there_is_no_assembly(tmp_path, monkeypatch):
    weft.compile(layered()).save(tmp_path / "m.weft")
    monkeypatch.setattr("shutil.which", lambda program: None)
    data = weft.load(tmp_path / "m.weft").viz().data
    check_picture(data)
    assert data["kernels"] == []
    assert any("there is no objdump on PATH" in row["text"] for row in data["report"])


def test_drawings_are_svg_with_a_shape_for_each_thing(network):
    shapes = {
        network.arena: ("<rect", len(network.data["memory"]["buffers"])),
        network.roofline: (
            "<circle",
            len([c for c in network.data["profile"]["calls"] if c["gflop"] and c["bytes"]]),
        ),
        network.loops("te_layout_transform1"): ("<rect", None),
    }
    for drawing, (shape, count) in shapes.items():
        root = ElementTree.fromstring(drawing._repr_svg_())
        assert root.tag.endswith("svg")
        assert count is None or drawing.svg.count(shape) == count
    kernel = next(k for k in network.data["kernels"] if k["name"] == "te_layout_transform1")
    assert network.loops("te_layout_transform1").svg.count("<rect") == len(kernel["loops"])


def test_drawings_that_there_are_not_are_refused(network):
    with pytest.raises(IRValueError, match="there is no kernel 'pool'; there are .*fused_conv2d"):
        network.loops("pool")
    with pytest.raises(UnsupportedError, match="no times were measured"):
        _ = picture_of(layered()).roofline


def test_spills_are_counted_for_each_system():
    stored = "\tvmovups\t%zmm1, 64(%rsp)\n\tvaddps\t%zmm1, %zmm2, %zmm3\n\tstr\tq4, [sp, #16]\n"
    assert facts_of(stored, "x86_64-unknown-linux-gnu").spills == 1
    assert facts_of(stored, "aarch64-unknown-linux-gnu").spills == 1
    assert facts_of(stored, "x86_64-unknown-linux-gnu").vector_bits == 512


def test_parts_outside_of_every_call_are_left_out():
    run = Run(np.array([[1000, 2000]]), np.array([[5, 100, 200], [5, 1100, 1900]]))
    (row,) = activity_of(["sum"], run)
    assert (row["thread"], row["begin_us"], row["end_us"]) == (0, 0.1, 0.9)
