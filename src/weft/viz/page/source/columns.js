/** The texts of one kernel side by side; a line's relatives in the others are marked. */

import { grouped } from "./data.js";
import { h, missing } from "./dom.js";
import { bytes, compact, flops, number } from "./format.js";
import { TextView } from "./lines.js";
import { Links } from "./links.js";

export const COLUMNS = {
  scheduled: "Scheduled", lowered: "Lowered", llvm_before: "LLVM before", llvm: "LLVM",
  assembly: "Assembly",
};
const SIGNS = { parallel: "∥", vectorized: "⇉", unrolled: "⊞", serial: "" };
const TICKS = 300;

const inWords = (loop) => `${loop.var}: ${loop.kind}, extent ${loop.extent}, `
  + `${loop.trip === null ? "iterations not known" : `${number(loop.trip)} iterations`}; `
  + `each time: ${bytes(loop.bytes)}, ${flops(loop.flops)}`;

/** The loops that a line begins: one, or those of a grid. */
function loopMargin(loops) {
  if (!loops) return h("span", { class: "loop" });
  const all = loops.map((loop) => loop.extent || "?").join("·");
  const extents = all.length > 6 ? `${all.slice(0, 5)}…` : all;
  const [{ kind }] = loops;
  return h("span", { class: `loop ${kind}`, title: loops.map(inWords).join("\n") },
    h("b", {}, `${SIGNS[kind] ?? ""}×${extents}`));
}

function loopNote(loops) {
  const loop = loops[loops.length - 1]; // the inner one of a grid
  const parts = [loop.trip === null || String(loop.trip) === loop.extent ? ""
    : `${compact(loop.trip)} times`, loop.flops ? flops(loop.flops) : "",
  loop.bytes ? bytes(loop.bytes) : ""].filter(Boolean);
  return parts.length ? h("span", { class: "loop-note" }, parts.join(" · ")) : null;
}

export class Columns {
  /**
   * `pin(column, line)` hears which line a user wants to keep marked, line 0 for none;
   * `tell(text)` what belongs to the line that is marked.
   */
  constructor(model, pin, tell) {
    this.model = model;
    this.pin = pin;
    this.tell = tell;
    this.element = h("div", { class: "texts" });
    this.views = new Map();
    this.marked = {};
    this.from = null;
    this.pinned = null;
  }

  /** The texts `names` of a kernel. */
  show(kernel, names) {
    this.kernel = kernel;
    this.links = new Links(kernel.links);
    this.loops = grouped(kernel.loops, (loop) => loop.line);
    this.pinned = null;
    this.marked = {};
    this.views.clear();
    this.names = names;
    this.element.replaceChildren(...names.map((name) => this.#column(name)));
    this.#share(null);
  }

  /** Give the columns their widths; one of them may be wide. */
  #share(wide) {
    this.wide = wide;
    const share = (name) => (name === wide ? 3 : name === "scheduled" ? 1.3 : 1);
    this.element.style.gridTemplateColumns = this.names
      .map((name) => `minmax(0, ${share(name)}fr)`).join(" ");
  }

  #column(name) {
    const text = this.model.text(this.kernel[name]);
    const heading = COLUMNS[name];
    if (text === null) {
      return h("section", { class: "text-column" }, h("h3", {}, heading),
        missing("Not recorded.", "The kernel has no such text, or it was taken from the cache."));
    }
    const view = new TextView(`${heading} of ${this.kernel.name}`, name, {
      mouseover: (line) => this.#hover(name, line),
      mouseleave: () => this.#hover(name, 0),
      click: (line) => this.#click(name, line),
      keydown: (line, event) => this.#key(name, event),
    });
    if (name === "scheduled" && this.loops.size) view.element.classList.add("with-loops");
    view.marks = (line) => this.#mark(name, line);
    view.setText(text);
    const ruler = h("div", { class: "ruler", "aria-hidden": "true" });
    this.views.set(name, { view, ruler });
    return h("section", { class: "text-column" },
      h("h3", {}, h("button", {
        type: "button", class: "heading", title: "Wider, or as the others",
        on: { click: () => this.#share(this.wide === name ? null : name) },
      }, heading), h("span", { class: "note" }, ` ${view.texts.length} lines`),
        h("button", {
          type: "button", class: "quiet push", title: `Copy ${heading}`,
          on: { click: (event) => this.#copy(text, event.currentTarget) },
        }, "copy")),
      h("div", { class: "text-frame" }, view.element, ruler));
  }

  async #copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "not allowed here";
    }
  }

  #mark(name, line) {
    const hue = this.links.hue(name, line);
    const isOn = this.marked[name]?.has(line);
    const isFrom = this.from && this.from.name === name && this.from.line === line;
    const mark = { class: `${isOn ? "related" : ""} ${isFrom ? "from" : ""}` };
    if (hue >= 0) mark.stripe = `var(--hue-${hue})`;
    if (name === "scheduled" && this.loops.size) {
      const loops = this.loops.get(line);
      mark.margin = loopMargin(loops);
      mark.note = loops ? loopNote(loops) : null;
    }
    return mark;
  }

  #relate(name, line) {
    this.from = line ? { name, line } : null;
    const related = line ? this.links.related(name, line) : {};
    this.marked = {};
    for (const [column, lines] of Object.entries(related)) this.marked[column] = new Set(lines);
    for (const [column, { view, ruler }] of this.views) {
      view.restyle();
      const isLong = view.element.scrollHeight > view.element.clientHeight;
      const lines = isLong ? [...(this.marked[column] ?? [])].slice(0, TICKS) : [];
      ruler.replaceChildren(...lines.map((at) => h("span", {
        style: { top: `${((at - 0.5) / view.texts.length) * 100}%` },
      })));
    }
    this.tell(line ? this.#inWords(name, line, related) : "");
    return related;
  }

  #inWords(name, line, related) {
    const others = Object.entries(related)
      .filter(([column]) => column !== name && this.views.has(column))
      .map(([column, lines]) => `${lines.length} of ${COLUMNS[column]}`);
    const has = others.length ? `belong ${others.join(", ")}` : "nothing else belongs";
    return `To line ${line} of ${COLUMNS[name]} ${has}`;
  }

  #hover(name, line) {
    if (this.pinned) return;
    if (line === (this.from?.line ?? 0) && (!this.from || this.from.name === name)) return;
    this.#relate(name, line);
  }

  #click(name, line) {
    if (!line) return;
    const isSame = this.pinned && this.pinned.name === name && this.pinned.line === line;
    this.mark(name, isSame ? 0 : line);
    this.pin(name, isSame ? 0 : line);
  }

  /** Keep a line and its relatives marked, and show them in every column. */
  mark(name, line) {
    this.pinned = line ? { name, line } : null;
    const related = this.#relate(name, line);
    for (const [column, { view }] of this.views) {
      const lines = related[column] ?? [];
      if (lines.length) view.reveal(column === name ? line : lines[0]);
    }
  }

  #key(name, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { view } = this.views.get(name);
    const pinned = this.pinned && this.pinned.name === name ? this.pinned.line : 0;
    const top = Math.floor(view.element.scrollTop / view.window.rowHeight) + 1;
    let line = null;
    if (event.key === "Enter") line = pinned ? 0 : top;
    else if (pinned && event.key === "ArrowDown") line = Math.min(view.texts.length, pinned + 1);
    else if (pinned && event.key === "ArrowUp") line = Math.max(1, pinned - 1);
    else if (pinned && event.key === "Escape") line = 0;
    if (line === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.mark(name, line);
    this.pin(name, line);
  }
}

/** The buttons that choose which texts stand side by side. */
export function columnChoice(names, choose) {
  return h("div", { class: "segmented", role: "group", "aria-label": "texts" },
    Object.entries(COLUMNS).map(([name, text]) => h("button", {
      type: "button", "aria-pressed": String(names.includes(name)),
      on: {
        click: () => choose(names.includes(name) ? names.filter((item) => item !== name)
          : Object.keys(COLUMNS).filter((item) => item === name || names.includes(item))),
      },
    }, text)));
}

/** The weights that a kernel takes: its parameter, the model's name, what became of it. */
export function weightTable({ weights }) {
  if (!weights.length) return null;
  const [first] = weights[0].weight.split(" ");
  const rest = weights.length > 1 ? ` and ${weights.length - 1} more` : "";
  return h("details", { class: "loops" }, h("summary", {}, `weights: ${first}${rest}`),
    h("table", {}, h("tr", {}, ["parameter", "weight", "kind"].map((name) => h("th", {}, name))),
      weights.map((row) => h("tr", {}, h("td", { class: "name" }, row.parameter),
        h("td", { class: "name" }, row.weight), h("td", {}, row.kind)))));
}

/** The loops as a table, for those that look for the counts alone. */
export function loopTable(kernel) {
  if (!kernel.loops.length) return null;
  const head = ["loop", "kind", "extent", "iterations", "bytes each time",
    "operations each time"];
  return h("details", { class: "loops" }, h("summary", {}, `${kernel.loops.length} loops`),
    h("table", {}, h("tr", {}, head.map((name) => h("th", {}, name))),
      kernel.loops.map((loop) => h("tr", {},
        h("td", { class: "name", style: { "padding-left": `${8 + loop.depth * 12}px` } }, loop.var),
        h("td", {}, h("span", { class: `loop ${loop.kind}` },
          h("b", {}, `${SIGNS[loop.kind] ?? ""} ${loop.kind}`))),
        h("td", {}, loop.extent), h("td", { class: "real" }, number(loop.trip)),
        h("td", { class: "real" }, bytes(loop.bytes)),
        h("td", { class: "real" }, flops(loop.flops))))));
}

