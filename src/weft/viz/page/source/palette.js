/** The search over all that the page names (/), and the help (?). */

import { h } from "./dom.js";
import { nameOf } from "./graph_view.js";

const MOST = 60;
const LINES = 20; // lines of texts that are listed

function entries(model) {
  const graph = model.graphs.find((item) => item.groups.length) ?? model.graphs[0];
  return [
    ...model.kernels.map((kernel) => ["kernel", kernel.name, { kernel: kernel.name }]),
    ...(graph ? graph.groups.map((group) => ["group", group.name,
      { tab: "graph", graph: graph.name, group: group.id }]) : []),
    ...model.graphs.flatMap((item) => item.nodes.map((node) => ["node",
      `${[...new Set([nameOf(node), node.label])].join(" ")} · ${item.name}`,
      { tab: "graph", graph: item.name, node: node.id }])),
    ...model.passes.map((pass) => ["pass", `${pass.index} ${pass.name}`,
      { tab: "passes", pass: pass.index }]),
    ...model.memory.buffers.map((buffer, index) => ["buffer", buffer.name,
      { tab: "memory", buffer: index }]),
    ...model.memory.weights.map((weight) => ["weight", weight.name,
      weight.kernel === null ? { tab: "memory" } : { kernel: weight.kernel }]),
  ].map(([kind, name, state]) => ({ kind, name, low: name.toLowerCase(), state }));
}

/** Lines of the texts of the kernel that is shown. */
function textMatches(model, kernelName, wanted) {
  const kernel = model.kernel.get(kernelName);
  if (!kernel || wanted.length < 3) return [];
  const result = [];
  for (const column of ["scheduled", "lowered", "llvm", "assembly", "llvm_before"]) {
    const lines = (model.text(kernel[column]) ?? "").split("\n");
    for (let at = 0; at < lines.length && result.length < LINES; at += 1) {
      if (!lines[at].toLowerCase().includes(wanted)) continue;
      result.push({
        kind: column, name: `${at + 1}: ${lines[at].trim().slice(0, 200)}`,
        state: { tab: "kernels", kernel: kernel.name, view: column === "llvm_before"
          ? "scheduled,llvm_before" : undefined, line: `${column}:${at + 1}` },
      });
    }
  }
  return result;
}

export class Palette {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.all = null;
    this.found = [];
    this.at = 0;
    this.input = h("input", {
      type: "text", placeholder: "kernel, operator, pass, buffer, weight, text of this kernel",
      "aria-label": "search", role: "combobox", "aria-expanded": "true",
      "aria-controls": "found", autocomplete: "off", spellcheck: "false",
      on: { input: () => this.#search(), keydown: (event) => this.#key(event) },
    });
    this.results = h("ul", { id: "found", role: "listbox", "aria-label": "results" });
    this.element = h("dialog", { class: "palette", "aria-label": "search",
      on: { click: (event) => (event.target === this.element ? this.element.close() : null) },
    }, this.input, this.results);
  }

  open() {
    this.all ??= entries(this.model);
    this.input.value = "";
    this.#search();
    this.element.showModal();
    this.input.focus();
  }

  #search() {
    const wanted = this.input.value.trim().toLowerCase();
    const words = wanted.split(/\s+/);
    const hits = this.all.filter((item) => words.every((word) => item.low.includes(word)
      || item.kind.startsWith(word)));
    this.found = [...hits.slice(0, MOST),
      ...textMatches(this.model, this.page.state().kernel, wanted)];
    this.at = 0;
    this.#draw();
  }

  #draw() {
    this.results.replaceChildren(...(this.found.length ? this.found.map((item, index) => h("li", {
      role: "option", id: `found-${index}`, "aria-selected": String(index === this.at),
      on: { click: () => this.#take(index) },
    }, h("span", { class: "tag" }, item.kind), h("span", { class: "name" }, item.name)))
      : [h("li", { class: "missing" }, "Nothing has this name.")]));
    this.input.setAttribute("aria-activedescendant", `found-${this.at}`);
    this.results.children[this.at]?.scrollIntoView?.({ block: "nearest" });
  }

  #take(index) {
    const item = this.found[index];
    if (!item) return;
    this.element.close();
    this.page.go({ tab: item.state.tab ?? "kernels", ...item.state });
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.at = Math.max(0, Math.min(this.found.length - 1, this.at + step));
      this.#draw();
    } else if (event.key === "Enter") {
      this.#take(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }
}

const KEYS = [
  ["1 … 6", "Graph, Passes, Kernels, Memory, Time, Report"],
  ["/", "search kernels, operators, passes, buffers, weights and the shown kernel's texts"],
  ["↑ ↓", "the next of a list; Home, End and Page keys, too"],
  ["← →", "the tab beside (on the tabs); move the graph (on the graph)"],
  ["+ − 0", "the graph larger, smaller, whole"],
  ["Enter", "in a text: keep the first line marked; ↑ ↓ move the mark, Escape takes it away"],
  ["Shift + click", "on a second group: why were these two not fused?"],
  ["t", "light or dark"],
  ["?", "this help"],
];

/** The dialog that lists the keys. */
export function helpDialog() {
  const dialog = h("dialog", { class: "help", "aria-label": "help",
    on: { click: (event) => (event.target === dialog ? dialog.close() : null) } },
  h("h2", {}, "Keys"),
  h("table", {}, KEYS.map(([key, text]) => h("tr", {}, h("th", { scope: "row" },
    key.split(" ").map((piece) => [h("kbd", {}, piece), " "])), h("td", {}, text)))),
  h("p", {}, "Every state has its address: copy it from the address line, the back button"
    + " returns. The page holds all its data and loads nothing."),
  h("form", { method: "dialog" }, h("button", {}, "Close")));
  return dialog;
}
