/** A text by lines with numbers, colours and marks, drawn as far as one sees it. */

import { h } from "./dom.js";
import { changedPart } from "./diff.js";
import { pieces } from "./highlight.js";
import { Windowed } from "./windowed.js";

const ROW = 18; // pixels; .line in text.css
const MARKED = 0.6; // beyond this share of a line, a mark says no more than its colour

const painted = (text, language) =>
  pieces(text, language).map(([kind, piece]) => (kind ? h("span", { class: `t-${kind}` }, piece)
    : piece));

/** A text: `marks(line)` may give {class, stripe, margin, note} for a line (from 1). */
export class TextView {
  constructor(label, language, listeners = {}) {
    this.language = language;
    this.texts = [];
    this.marks = () => ({});
    this.element = h("div", {
      class: "text", role: "region", tabindex: "0", "aria-label": label,
    });
    this.window = new Windowed(this.element, ROW, (index) => this.#row(index));
    const lineOf = (event) => {
      const row = event.target.closest(".line");
      return row ? Number(row.getAttribute("data-line")) : 0;
    };
    for (const [event, listener] of Object.entries(listeners)) {
      this.element.addEventListener(event, (happened) => listener(lineOf(happened), happened));
    }
  }

  setText(text) {
    this.texts = text.split("\n");
    if (this.texts[this.texts.length - 1] === "") this.texts.pop();
    const longest = this.texts.reduce((most, line) => Math.max(most, line.length), 0);
    this.window.sizer.style.minWidth = `calc(${longest}ch + var(--gutter, 5ch))`;
    this.element.scrollTop = 0;
    this.window.setCount(this.texts.length);
  }

  refresh() {
    this.window.refresh();
  }

  /** Give the visible lines the classes that `marks` says now. */
  restyle() {
    for (const row of this.window.rows.children) {
      row.className = `line ${this.marks(Number(row.getAttribute("data-line"))).class ?? ""}`;
    }
  }

  reveal(line) {
    this.window.reveal(line - 1, true);
  }

  #row(index) {
    const mark = this.marks(index + 1);
    return h("div", { class: `line ${mark.class ?? ""}`, "data-line": String(index + 1) },
      h("span", { class: "gutter" },
        h("span", { class: "stripe", style: mark.stripe ? { "--stripe": mark.stripe } : {} }),
        h("span", { class: "number" }, String(index + 1)), mark.margin ?? null),
      h("code", {}, painted(this.texts[index], this.language)), mark.note ?? null);
  }
}

/** The lines of a comparison (diff.js); a fold opens by a click or by Enter. */
export class DiffView {
  constructor(label, language) {
    this.language = language;
    this.entries = [];
    this.element = h("div", {
      class: "text diff", role: "region", tabindex: "0", "aria-label": label,
    });
    this.window = new Windowed(this.element, ROW, (index) => this.#row(index));
  }

  setLines(compared, folds) {
    this.compared = compared;
    this.entries = folds;
    const longest = compared.reduce((most, line) => Math.max(most, line.text.length), 0);
    this.window.sizer.style.minWidth = `calc(${longest}ch + 13ch)`;
    this.element.scrollTop = 0;
    this.window.setCount(folds.length);
  }

  #open(index) {
    const { from, to } = this.entries[index];
    this.entries = [
      ...this.entries.slice(0, index), ...this.compared.slice(from, to),
      ...this.entries.slice(index + 1),
    ];
    this.window.setCount(this.entries.length);
  }

  /** The line that this one replaced, or that replaced it: the same place of the other run. */
  #partner(index) {
    const { kind } = this.entries[index];
    let start = index;
    while (start > 0 && this.entries[start - 1].kind === kind) start -= 1;
    let end = index;
    while (end < this.entries.length && this.entries[end].kind === kind) end += 1;
    if (kind === "-") {
      const other = this.entries[end + index - start];
      return other && other.kind === "+" ? other.text : null;
    }
    let before = start;
    while (before > 0 && this.entries[before - 1].kind === "-") before -= 1;
    const other = this.entries[before + index - start];
    return before < start && before + index - start < start ? other.text : null;
  }

  #content(entry, index) {
    const partner = entry.kind === " " ? null : this.#partner(index);
    if (partner === null) return painted(entry.text, this.language);
    const [start, end] = changedPart(entry.text, partner);
    if (end - start > MARKED * entry.text.trim().length) return painted(entry.text, this.language);
    return [
      painted(entry.text.slice(0, start), this.language),
      h("mark", {}, entry.text.slice(start, end)),
      painted(entry.text.slice(end), this.language),
    ];
  }

  #row(index) {
    const entry = this.entries[index];
    if (entry.fold) {
      return h("div", { class: "line fold" }, h("button", {
        type: "button", on: { click: () => this.#open(index) },
      }, `⋯ ${entry.fold} equal lines`));
    }
    const name = { "+": "added", "-": "removed", " ": "" }[entry.kind];
    return h("div", { class: `line ${name}` },
      h("span", { class: "gutter" },
        h("span", { class: "number" }, entry.before ? String(entry.before) : ""),
        h("span", { class: "number" }, entry.after ? String(entry.after) : ""),
        h("span", { class: "sign" }, entry.kind === "-" ? "−" : entry.kind)),
      h("code", {}, this.#content(entry, index)));
  }
}
