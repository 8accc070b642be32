/** Time: kernels by what they waste, the roofline, threads, and what compiling took. */

import { activity, chromeTrace, spansOf } from "./activity.js";
import { sum } from "./data.js";
import { bar, card, h, link, missing, segmented } from "./dom.js";
import { count, microseconds, number, percent, seconds } from "./format.js";
import { roofline } from "./roofline.js";
import { format } from "./route.js";
import { SortedTable } from "./table.js";

export const title = "Time";

const HUES = 8;
const VIEWS = [["run", "One run"], ["compile", "The compile"]];

export class TimeTab {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.tools = h("div", { class: "toolbar" });
    this.body = h("div", { class: "cards" });
    this.element = h("div", { class: "page-tab scrolls" }, this.tools, this.body);
    this.address = null;
    const names = [...model.times.keys()];
    this.hues = new Map(names.map((name, index) => [name, `var(--hue-${index % HUES})`]));
  }

  show(state) {
    const view = state.view === "compile" ? "compile" : "run";
    this.tools.replaceChildren(
      segmented("view", VIEWS, view, (choice) => this.page.go({ tab: "time", view: choice })),
      view === "run" && this.model.profile ? this.#export() : "");
    if (view !== this.view) this.body.replaceChildren(...this.#cards(view));
    this.view = view;
    for (const element of this.body.querySelectorAll("[data-kernel]")) {
      element.classList.toggle("selected", element.getAttribute("data-kernel") === state.kernel);
    }
  }

  #cards(view) {
    if (view === "compile") return [this.#phases(), this.#cache()];
    const { profile } = this.model;
    if (!profile || !profile.calls.length) {
      const reasons = this.model.report.filter((row) => row.topic === "time");
      return [card("Times of the kernels", missing("Not measured.",
        reasons.length ? "" : "The record has no times, and does not say why."),
      ...reasons.map((row) => h("p", {}, row.text)))];
    }
    return [this.#facts(), this.#kernels(), this.#roofline(), this.#activity()];
  }

  #export() {
    if (this.address === null) {
      const text = chromeTrace(this.model);
      this.address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    }
    return h("a", { class: "button push", href: this.address, download: "trace.json",
      title: "for chrome://tracing and ui.perfetto.dev" }, "Save as a Chrome trace");
  }

  #facts() {
    const { profile } = this.model;
    const fact = (name, value) => h("div", { class: "fact" }, h("span", {}, name),
      h("b", {}, value));
    const times = [...this.model.times.values()];
    const gflop = sum(times.map((time) => time.gflop));
    return h("div", { class: "facts" },
      fact("kernels together", microseconds(this.model.totalTime)),
      fact("calls", number(profile.calls.length)),
      fact("wasted", microseconds(sum(times.map((time) => time.wasted)))),
      fact("speed", gflop ? number((gflop * 1e6) / this.model.totalTime, "GFLOP/s") : "–"),
      fact("peak", profile.peak === null ? "–" : number(profile.peak, "GFLOP/s")),
      fact("bandwidth", profile.bandwidth === null ? "–" : number(profile.bandwidth, "GB/s")),
      fact("threads", number(profile.threads)), fact("runs measured", number(profile.runs)));
  }

  #kernels() {
    const rows = [...this.model.times.values()];
    const most = (key) => Math.max(...rows.map((row) => row[key] ?? 0), 0) || 1;
    const [longest, wasted] = [most("us"), most("wasted")];
    const named = (row) => (this.model.kernel.has(row.kernel)
      ? link(format({ kernel: row.kernel }), row.kernel) : row.kernel);
    const share = (name, key, title) => ({
      name, title, value: (row) => row[key],
      cell: (row) => (row[key] === null ? h("span", { class: "note" }, "not measured")
        : bar(row[key], percent(row[key]), row[key] > 0.5 ? "good" : "")),
    });
    const table = new SortedTable("kernels by wasted time", [
      { name: "kernel", value: (row) => row.kernel, kind: "name", cell: named },
      { name: "time", value: (row) => row.us, cell: (row) => bar(row.us / longest,
        microseconds(row.us), "time") },
      { name: "calls", value: (row) => row.calls },
      { name: "wasted", value: (row) => row.wasted,
        title: "beyond what the peak or the bandwidth would take",
        cell: (row) => (row.wasted === null ? h("span", { class: "note" }, "not measured")
          : bar(row.wasted / wasted, microseconds(row.wasted), "waste")) },
      share("of the peak", "peak", "share of the processor's multiply-add peak"),
      share("of the bandwidth", "bandwidth", "share of the measured memory bandwidth"),
      { name: "threads", value: (row) => row.threads, text: (row) => number(row.threads) },
    ], 3);
    table.setRows(rows);
    return card("Kernels by wasted time", table.element);
  }

  #choose(kernel) {
    this.page.go({ tab: "kernels", kernel });
  }

  #roofline() {
    const frame = h("div", { class: "chart-frame" });
    const draw = () => frame.clientWidth && frame.replaceChildren(roofline(this.model.profile,
      this.model.times, frame.clientWidth, 380, (kernel) => this.#choose(kernel)));
    new ResizeObserver(draw).observe(frame);
    return card("Roofline", frame);
  }

  #activity() {
    const { spans, isRecorded } = spansOf(this.model.profile);
    const frame = h("div", { class: "chart-frame" });
    const draw = () => frame.clientWidth && frame.replaceChildren(activity(spans,
      frame.clientWidth, (kernel) => this.hues.get(kernel) ?? "var(--hue-0)",
      (kernel) => this.#choose(kernel)));
    new ResizeObserver(draw).observe(frame);
    return card("Threads in one run", isRecorded ? "" : missing("Threads were not recorded;",
      "these are the calls one after the other."), frame);
  }

  #phases() {
    const { phases } = this.model;
    if (!phases.length) return card("Compile time", missing("Not recorded."));
    const total = sum(phases.map((phase) => phase.seconds)) || 1;
    const most = Math.max(...phases.map((phase) => phase.seconds)) || 1;
    return card(`Compile time: ${seconds(total)}`,
      h("table", { class: "phases" }, phases.map((phase) => h("tr", {},
        h("td", { class: "name" }, phase.name),
        h("td", { class: "wide" }, bar(phase.seconds / most, seconds(phase.seconds), "time")),
        h("td", { class: "real" }, percent(phase.seconds / total))))));
  }

  #cache() {
    const { cache } = this.model;
    if (!cache.length) return card("Object cache", missing("No kernel asked the cache."));
    const hits = cache.filter((row) => row.hit).length;
    const table = new SortedTable("cache", [
      { name: "kernel", value: (row) => row.kernel, kind: "name",
        cell: (row) => (this.model.kernel.has(row.kernel)
          ? link(format({ kernel: row.kernel }), row.kernel) : row.kernel) },
      { name: "answer", value: (row) => (row.hit ? "hit" : "miss"),
        cell: (row) => h("span", { class: `tag ${row.hit ? "good" : "warn"}` },
          row.hit ? "hit" : "miss") },
      { name: "reason", value: (row) => row.reason },
    ], 1);
    table.setRows(cache);
    return card(`Object cache: ${hits} of ${count(cache.length, "kernel")} were there`,
      table.element);
  }
}
