"""Every view of the page, clicked through, for records small, large, hostile and empty."""

from __future__ import annotations

import json

import pytest

from tests.lib import viz_records

TABS = ("graph", "passes", "kernels", "memory", "time", "report")
RECORDS = ("cnn", "large", "hostile", "empty")


@pytest.mark.parametrize("record", RECORDS)
def test_every_tab_shows_by_a_click(show, record):
    shown = show(record)
    for name in TABS:
        shown.tab.locator(f"#tab-{name}").click()
        shown.wait(name)
        assert shown.tab.locator(f"#panel-{name}").is_visible()
        assert shown.count("[role=tabpanel]") == 1
        assert shown.tab.locator("[role=tab][aria-selected=true]").inner_text().lower() == name
        shown.check()


@pytest.mark.parametrize("record", ["cnn", "hostile"])
def test_every_control_can_be_clicked(show, record):
    """Each button and row of each view, in the order of the page; what vanished is left out."""
    shown = show(record)
    for name in TABS:
        shown.open(f"#{name}")
        controls = shown.tab.locator("main button:visible, main [role=option]:visible")
        for at in range(min(controls.count(), 40)):
            if at < controls.count() and controls.nth(at).is_visible():
                controls.nth(at).dispatch_event("click")
                shown.tab.wait_for_timeout(10)
        shown.check()


# Graph


def test_groups_are_boxes_with_their_nodes_shapes_and_times(show):
    shown = show("cnn")
    record = viz_records.cnn()
    graph = record["graphs"][1]
    assert shown.count(".cluster") + shown.count(".node.alone") == len(graph["groups"]) == 8
    assert shown.count(".node.alone") == 3  # of one operator
    assert shown.count(".node") == len(graph["nodes"])
    assert shown.texts(".cluster-title .note")[3] == "61.3 µs"
    assert "1×16×28×28" in shown.texts(".edge .small")
    colours = shown.tab.eval_on_selector_all(
        ".cluster > rect, .alone > rect", "all => all.map(e => getComputedStyle(e).fill)"
    )
    assert len(set(colours)) >= 7  # by time, and the times differ


def test_a_group_leads_to_its_kernel(show):
    shown = show("cnn")
    shown.tab.locator(".cluster").nth(1).locator("rect").click(position={"x": 8, "y": 60})
    assert shown.tab.locator(".side h2").inner_text() == "fused_conv2d1_add1_relu1"
    assert "21.4 µs" in shown.tab.locator(".side").inner_text()
    shown.tab.get_by_text("Open its kernel").click()
    shown.wait("kernels")
    assert shown.tab.locator(".kernel-head h2").inner_text() == "fused_conv2d1_add1_relu1"


def test_why_two_groups_were_not_fused(show):
    shown = show("cnn")
    shown.tab.locator(".refusal").first.click()
    assert "one reduction" in shown.tab.locator(".side .answer").inner_text()
    producer, consumer = shown.tab.locator(".side .why select").all()
    assert producer.input_value() == "0"
    assert consumer.input_value() == "1"
    producer.select_option("1")
    shown.tab.locator(".side .why select").nth(1).select_option("2")
    assert shown.tab.locator(".side .answer").inner_text() == "the value has two readers"
    shown.tab.locator(".side .why select").nth(1).select_option("7")
    assert shown.tab.locator(".side .answer").inner_text().startswith("No reason was recorded")
    first, third = (shown.tab.locator(".cluster").nth(at).locator("rect") for at in (0, 2))
    first.dispatch_event("click")
    third.dispatch_event("click", {"shiftKey": True})
    assert shown.address() == "graph=after fusion&group=0&why=2"


def test_the_imported_graph_has_no_groups(show):
    shown = show("cnn", "#graph=imported")
    assert shown.count(".cluster") == 0
    assert shown.count(".node") == 20
    assert shown.texts(".toolbar > .note")[0] == "20 nodes"
    shown.tab.locator(".segmented button", has_text="final").click()
    shown.tab.wait_for_selector(".cluster")
    assert shown.address() == "graph=final"


def test_many_groups_are_closed_and_open_by_a_click(show):
    shown = show("large")
    assert shown.count(".cluster") == 0
    assert shown.count(".node.closed") == 133
    shown.tab.locator(".node.closed").nth(2).dispatch_event("click")
    shown.tab.wait_for_selector(".cluster")
    assert shown.count(".node.closed") == 132
    assert shown.tab.locator(".side h2").inner_text() == shown.texts(".cluster-title .title")[0]
    shown.tab.locator(".toolbar button", has_text="Open all groups").click()
    shown.tab.locator(".cluster").nth(132).wait_for()
    assert shown.count(".node") == 445
    shown.tab.locator(".toolbar button", has_text="Close all groups").click()
    shown.tab.locator(".cluster").first.wait_for(state="detached")


def test_nodes_without_edges_stand_in_rows(show):
    shown = show("hostile", "#graph=imported")
    boxes = [node.bounding_box() for node in shown.tab.locator(".node > rect").all()]
    assert len(boxes) == 19
    assert len({round(box["y"]) for box in boxes}) > 3
    corners = {(round(box["x"]), round(box["y"])) for box in boxes}
    assert len(corners) == len(boxes)


# Passes


def test_passes_that_changed_something_are_marked(show):
    shown = show("cnn", "#passes")
    names = ".listbox .option .name"
    changed = [p["name"] for p in viz_records.cnn()["passes"] if p["before"] != p["after"]]
    assert shown.texts(names) == changed
    shown.tab.locator(".check input").uncheck()
    assert len(shown.texts(names)) == 12
    assert shown.texts(".listbox .dot").count("●") == len(changed)


def test_a_pass_shows_what_it_changed_in_the_text(show):
    shown = show("cnn", "#pass=6&function=main")
    text = shown.tab.locator(".counts").inner_text()
    assert text.startswith("+10 −20")  # eight calls for eighteen, the result's name twice
    assert any("cls.fused_matmul_add_relu" in line for line in shown.texts(".line.added code"))
    assert any("cls.relu0" in line for line in shown.texts(".line.removed code"))
    assert "9 functions of 9 changed" in shown.tab.locator(".head").inner_text()
    shown.tab.locator(".chip", has_text="softmax").click()
    assert shown.texts(".line.removed") == []
    assert any("def softmax" in line for line in shown.texts(".line.added code"))


def test_equal_lines_are_folded_and_open_again(show):
    shown = show("long_text", "#pass=0")
    folds = shown.tab.locator(".line.fold button")
    assert folds.all_inner_texts() == ["⋯ 47 equal lines", "⋯ 46 equal lines"]
    assert shown.count(".line") == 2 + 3 + 2 + 3
    assert shown.texts(".line mark") == ["32", "16"]  # the part of the line that changed
    folds.nth(1).click()
    assert folds.count() == 1
    assert shown.texts(".line code")[-1] != "    x53 = T.float32(53)"


def test_a_pass_shows_what_it_changed_in_the_graph(show):
    shown = show("cnn", "#pass=6&view=graph&function=main")
    assert shown.count(".node.added") == 8
    assert shown.count(".node.removed") == 18
    assert shown.count(".node.input:not(.added):not(.removed)") == 1
    shown.tab.locator(".chip", has_text="softmax").click()
    assert "loop program" in shown.tab.locator(".detail .missing").inner_text()


def test_schedule_steps_one_by_one(show):
    shown = show("cnn", "#schedule=fused_conv2d_add_relu")
    assert "Convolution" in shown.tab.locator(".rules").inner_text()
    assert "16 channels are fewer than 64" in shown.tab.locator(".rules").inner_text()
    assert any("j_0, j_1, r in T.grid(28, 28, 16, 9)" in t for t in shown.texts(".line.added"))
    shown.tab.get_by_text("next →").click()
    assert any("T.parallel(28)" in text for text in shown.texts(".line.added"))
    shown.tab.get_by_text("next →").click()
    assert shown.texts(".line.added, .line.removed") == []
    assert shown.texts(".detail .counts") == ["The program is as it was."]
    shown.tab.get_by_text("next →").click()
    assert shown.address() == "schedule=fused_conv2d_add_relu&step=4"
    assert shown.tab.get_by_text("next →").is_disabled()


# Kernels


PLACES = (0, 1, 3, 4)  # of the texts that are shown first, in a link


def test_lines_of_a_kernel_are_linked_through_all_texts(show):
    shown = show("cnn", "#kernel=fused_conv2d_add_relu")
    record = viz_records.cnn()["kernels"][0]
    columns = shown.tab.locator(".text-column")
    assert columns.locator("h3 .heading").all_inner_texts() == [
        "Scheduled", "Lowered", "LLVM", "Assembly",
    ]  # fmt: skip
    rows = [row for row in record["links"] if row[4] == 24]
    columns.nth(3).locator("[data-line='24']").hover()
    for place in range(4):
        marked = columns.nth(place).locator(".line.related, .line.from")
        lines = {int(line.get_attribute("data-line")) for line in marked.all()}
        assert lines == {row[PLACES[place]] for row in rows}
    columns.nth(3).locator("[data-line='24']").click()
    assert shown.address() == "kernel=fused_conv2d_add_relu&line=assembly:24"
    told = "To line 24 of Assembly belong 1 of Scheduled, 1 of Lowered, 3 of LLVM"
    assert shown.tab.locator("[role=status]:visible").inner_text() == told
    columns.nth(3).locator("[data-line='1']").hover()
    assert columns.nth(0).locator(".line.related").count() == 1  # what was clicked stays
    columns.nth(3).locator("[data-line='24']").click()
    assert columns.nth(0).locator(".line.related").count() == 0


def test_instructions_of_one_line_are_linked_before_and_after_optimisation(show):
    shown = show("cnn", "#kernel=fused_conv2d_add_relu&view=llvm_before,assembly")
    rows = viz_records.cnn()["kernels"][0]["links"]
    instruction = next(row for row in rows if row[2])
    related = [row for row in rows if row[1] == instruction[1]]
    before, assembly = shown.tab.locator(".text-column").all()
    before.locator(f"[data-line='{instruction[2]}']").hover()
    for column, place in ((before, 2), (assembly, 4)):
        marked = column.locator(".line.related, .line.from").all()
        lines = {int(line.get_attribute("data-line")) for line in marked}
        assert lines == {row[place] for row in related}


def test_loops_stand_in_the_margin(show):
    shown = show("cnn", "#kernel=fused_conv2d_add_relu&view=scheduled")
    record = viz_records.cnn()["kernels"][0]
    badges = [text for text in shown.texts(".text .loop b") if text]
    assert badges == ["∥×28", "×n", "⊞×14", "⇉×16", "×27", "⊞×14", "⇉×16"]
    assert shown.texts(".loop-note")[:3] == [
        "677 kFLOP · 1.35 MB",
        "2 times · 24.2 kFLOP · 48.4 kB",
        "896 B",
    ]
    shown.tab.locator(".loops summary", has_text="loops").click()
    assert shown.count(".loops tr") == 1 + len(record["loops"])
    assert {"512 bits", "29", "0"} <= set(shown.texts(".fact b"))


def test_a_kernel_names_its_weights(show):
    shown = show("cnn", "#kernel=fused_matmul_add_relu")
    shown.tab.get_by_text("weights: head.0.weight and 1 more").click()
    assert shown.texts(".loops[open] td") == [
        "w0", "head.0.weight", "packed", "w1", "head.0.bias", "as given",
    ]  # fmt: skip


def test_columns_are_chosen_and_missing_texts_said(show):
    shown = show("cnn", "#kernel=softmax&view=llvm_before,assembly")
    assert shown.texts(".text-column .heading") == ["LLVM before", "Assembly"]
    shown.tab.locator(".toolbar button", has_text="Lowered").click()
    assert shown.address() == "kernel=softmax&view=lowered,llvm_before,assembly"
    assert "spills3" in shown.texts(".fact.warn")
    name = viz_records.HOSTILE_NAMES[0]
    hostile = show("hostile")
    hostile.open("#kernel=" + hostile.tab.evaluate("encodeURIComponent", name) + "&view=llvm")
    assert "Not recorded" in hostile.tab.locator(".text-column").inner_text()
    assert "Lines are not linked" in hostile.tab.locator(".kernel-head").inner_text()


def test_long_texts_have_few_elements(show):
    shown = show("long_text", "#kernel=long&view=assembly")
    text = shown.tab.locator(".text")
    assert "100000 lines" in shown.tab.locator(".text-column h3").inner_text()
    assert shown.count(".line") < 200
    text.evaluate("element => { element.scrollTop = element.scrollHeight; }")
    shown.tab.wait_for_selector("[data-line='100000']")
    assert shown.count(".line") < 200


# Memory


def test_the_arena_shows_who_writes_and_who_reads(show):
    shown = show("cnn", "#memory")
    assert shown.count(".buffer") == 7
    assert shown.texts(".line-name") == ["arena and live bound 151 kB"]
    shown.tab.locator(".buffer").nth(1).hover()
    side = shown.tab.locator("#panel-memory .side")
    assert side.locator("h2").inner_text() == "lv1"
    assert "fused_conv2d1_add1_relu1" in side.locator("dl").inner_text()
    assert side.locator("ul").inner_text() == "fused_conv2d1_add1_add2_relu1"
    assert shown.count(".buffer.reader") == 1
    shown.tab.locator(".buffer").nth(2).click()
    assert shown.address() == "memory&buffer=2"
    assert shown.count(".sorted tbody tr") == len(viz_records.cnn()["memory"]["weights"])
    assert "packed 1.62 MB, 3 weights" in shown.tab.locator(".stack-legend").inner_text()


# Time


def test_kernels_are_sorted_by_wasted_time_and_by_what_is_clicked(show):
    shown = show("cnn", "#time")
    calls = viz_records.cnn()["profile"]["calls"]
    by = {
        key: [call["kernel"] for call in sorted(calls, key=lambda call: -call[key])]
        for key in ("wasted_us", "us")
    }
    rows = shown.tab.locator("table.sorted tbody tr td:first-child")
    assert rows.all_inner_texts() == by["wasted_us"]
    shown.tab.locator("table.sorted th button", has_text="time").first.click()
    assert rows.all_inner_texts() == by["us"]
    assert shown.count(".point") == 7  # those that compute
    assert shown.count(".span") == len(viz_records.cnn()["profile"]["activity"])
    assert shown.texts(".lane-name") == ["thread 0", "thread 1"]
    assert {"peak 60 GFLOP/s", "20 GB/s"} <= set(shown.texts(".roof text"))


def test_the_trace_is_saved_in_the_format_of_chrome(show):
    shown = show("cnn", "#time")
    with shown.tab.expect_download() as happened:
        shown.tab.get_by_text("Save as a Chrome trace").click()
    with open(happened.value.path(), encoding="utf-8") as file:
        trace = json.load(file)
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    activity = viz_records.cnn()["profile"]["activity"]
    assert [(e["name"], e["tid"], e["ts"]) for e in spans] == [
        (a["kernel"], a["thread"], a["begin_us"]) for a in activity
    ]
    assert happened.value.suggested_filename == "trace.json"
    shown.requests.clear()  # the saved blob


def test_compile_time_and_cache(show):
    shown = show("cnn", "#time&view=compile")
    assert "Compile time: 1.42 s" in shown.texts(".card h3")
    assert shown.texts(".phases td.name")[4] == "LLVM"
    assert shown.texts(".sorted .tag").count("miss") == 3
    assert "Object cache: 5 of 8 kernels were there" in shown.texts(".card h3")


def test_why_nothing_was_measured(show):
    shown = show("empty", "#time")
    assert shown.tab.locator(".card").inner_text().splitlines()[-1].endswith("no inputs were given")
    assert shown.open("#time&view=compile").texts(".card .missing") == [
        "Not recorded.",
        "No kernel asked the cache.",
    ]


# Report


def test_the_report_answers_the_usual_questions(show):
    shown = show("cnn", "#report")
    answers = dict(
        zip(shown.texts(".answers th"), shown.texts(".answers td:nth-child(2)"), strict=True)
    )
    assert len(answers) == 10
    assert answers["Which kernel is slowest, and why?"].startswith("fused_matmul_add_relu, 61.3 µs")
    assert "memory is its limit" in answers["Which kernel is slowest, and why?"]
    assert answers["Is an inner loop spilled?"] == "in 1 kernel, most in softmax: 3"
    passes = "5 of 12 changed the program; the longest of these was dlight.ApplyDefaultSchedule"
    assert answers["What did the passes change?"].startswith(passes)
    assert answers["What runs on one thread?"].startswith("4 kernels")
    views = "kernels time graph passes memory time memory time kernels time".split()
    for at, name in enumerate(views):
        shown.open("#report")
        shown.tab.locator(".answers a").nth(at).click()
        shown.wait(name)
    shown.open("#report")
    assert "no pair of layers is quantized" in shown.tab.locator(".cards").inner_text()
    assert show("empty", "#report").texts(".answers td:nth-child(2)") == ["not recorded"] * 10
