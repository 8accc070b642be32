/** Kernels: each at every stage, from the schedule to machine code, line beside line. */

import { COLUMNS, Columns, columnChoice, loopTable, weightTable } from "./columns.js";
import { bar, h, kernelName, link, missing } from "./dom.js";
import { bytes, flops, microseconds, number, percent } from "./format.js";
import { ListBox } from "./listbox.js";
import { format } from "./route.js";

export const title = "Kernels";

const ROW = 26;
const NARROW = 1000; // pixels of a window in which four texts are no use

function fact(name, value, kind = "") {
  return h("div", { class: `fact ${kind}` }, h("span", {}, name), h("b", {}, value));
}

export class KernelsTab {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    const time = (kernel) => model.times.get(kernel.name)?.us ?? 0;
    this.kernels = [...model.kernels].sort((a, b) => time(b) - time(a));
    const most = Math.max(...model.kernels.map(time), 0) || 1;
    this.list = new ListBox("kernels", ROW, (kernel) => [
      kernelName(kernel.name),
      h("span", { class: "ms" }, bar(time(kernel) / most,
        model.times.has(kernel.name) ? microseconds(time(kernel)) : "–")),
    ], (kernel) => page.go({ tab: "kernels", kernel: kernel.name, view: this.state.view }));
    this.list.setItems(this.kernels);
    this.columns = new Columns(model, (column, line) => this.#pin(column, line),
      (text) => this.#tell(text));
    this.told = h("span", { class: "note", role: "status" });
    this.head = h("div", { class: "kernel-head" });
    this.element = h("div", { class: "page-tab" }, h("div", { class: "split with-list" },
      h("div", { class: "column" }, this.list.element),
      h("div", { class: "detail" }, this.head, this.columns.element)));
    this.shown = "";
  }

  #names(kernel) {
    const asked = (this.state.view ?? "").split(",").filter((name) => name in COLUMNS);
    if (asked.length) return asked;
    const usual = window.innerWidth < NARROW ? ["scheduled", "assembly"]
      : ["scheduled", "lowered", "llvm", "assembly"];
    const recorded = usual.filter((name) => this.model.text(kernel[name]) !== null);
    return recorded.length ? recorded : ["scheduled"];
  }

  #pin(column, line) {
    this.page.replace({
      tab: "kernels", kernel: this.kernel.name, view: this.state.view,
      line: line ? `${column}:${line}` : undefined,
    });
    this.state = this.page.state();
  }

  show(state) {
    this.state = state;
    const kernel = this.model.kernel.get(state.kernel) ?? this.kernels[0];
    if (!kernel) {
      this.element.replaceChildren(missing("No kernels were recorded.",
        "The model calls none, or it was compiled without being recorded."));
      return;
    }
    this.kernel = kernel;
    this.list.select(this.kernels.indexOf(kernel));
    const names = this.#names(kernel);
    const shown = `${names.join()} ${kernel.name}`;
    if (shown !== this.shown) {
      this.shown = shown;
      this.#fillHead(names);
      this.columns.show(kernel, names);
    }
    const [column, line] = (state.line ?? "").split(":");
    this.columns.mark(column in COLUMNS ? column : "scheduled", Number(line) || 0);
  }

  #fillHead(names) {
    const { kernel } = this;
    const isKnown = !this.state.kernel || this.model.kernel.has(this.state.kernel);
    const go = (view) => this.page.go({
      tab: "kernels", kernel: kernel.name, view: view.length ? view.join(",") : undefined,
    });
    this.head.replaceChildren(
      h("header", { class: "head" }, h("h2", { class: "name" }, kernel.name),
        link(format({ tab: "passes", schedule: kernel.name }), "How it was scheduled →"),
        link(format({ tab: "graph", graph: this.#graphName(), kernel: kernel.name }),
          "In the graph →")),
      ...(isKnown ? [] : [missing(`There is no kernel ${this.state.kernel}`,
        "in this record; the first is shown.")]),
      h("div", { class: "facts" }, this.#facts()),
      h("div", { class: "toolbar" }, columnChoice(names, go),
        this.told,
        weightTable(kernel) ?? "", loopTable(kernel) ?? ""));
  }

  #tell(text) {
    this.told.textContent = text || (this.kernel.links.length
      ? "Point at a line for those that belong to it; click to keep them"
      : "Lines are not linked: no debug locations were recorded");
  }

  #graphName() {
    const holds = (graph) => graph.groups.some((group) => group.kernel === this.kernel.name);
    return (this.model.graphs.find(holds) ?? this.model.graphs[0])?.name;
  }

  #facts() {
    const { kernel } = this;
    const time = this.model.times.get(kernel.name);
    const known = (name, value, kind) => (value === null ? fact(name, "not recorded", "quiet")
      : fact(name, number(value), kind));
    return [
      fact("time", time ? microseconds(time.us) : "not measured", time ? "" : "quiet"),
      ...(time ? [
        fact("share of the model", percent(time.us / (this.model.totalTime || 1))),
        fact("of the peak", percent(time.peak)), fact("of the bandwidth", percent(time.bandwidth)),
        fact("computes", flops(time.gflop === null ? null : time.gflop * 1e9)),
        fact("moves", bytes(time.bytes)),
      ] : []),
      kernel.vectorBits === null ? fact("vectors", "not recorded", "quiet")
        : fact("vectors", kernel.vectorBits ? `${kernel.vectorBits} bits` : "none",
          kernel.vectorBits ? "" : "warn"),
      known("vector registers", kernel.registers),
      known("spills", kernel.spills, kernel.spills ? "warn" : "good"),
    ];
  }
}
