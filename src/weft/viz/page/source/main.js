/** The page of `weft viz`: header, tabs, keys; each tab is built when it is first shown. */

import { decode, modelOf } from "./data.js";
import { h, missing, s } from "./dom.js";
import { bytes, microseconds, seconds } from "./format.js";
import { Palette, helpDialog } from "./palette.js";
import { Router } from "./route.js";
import { GraphTab, title as graphTitle } from "./tab_graph.js";
import { KernelsTab, title as kernelsTitle } from "./tab_kernels.js";
import { MemoryTab, title as memoryTitle } from "./tab_memory.js";
import { PassesTab, title as passesTitle } from "./tab_passes.js";
import { ReportTab, title as reportTitle } from "./tab_report.js";
import { TimeTab, title as timeTitle } from "./tab_time.js";
import { nextTheme, startTheme } from "./theme.js";

const TABS = [
  ["graph", graphTitle, GraphTab], ["passes", passesTitle, PassesTab],
  ["kernels", kernelsTitle, KernelsTab], ["memory", memoryTitle, MemoryTab],
  ["time", timeTitle, TimeTab], ["report", reportTitle, ReportTab],
];

function logo() {
  const threads = [4, 9, 14].flatMap((at, row) => [
    s("path", { class: "warp", d: `M${at},1V17` }),
    s("path", { class: "weft", d: row % 2 ? `M1,${at}H6.5M11.5,${at}H17`
      : `M1,${at}H1.5M6.5,${at}H11.5M16.5,${at}H17` }),
  ]);
  return s("svg", { class: "logo", viewBox: "0 0 18 18", "aria-hidden": "true" }, threads);
}

class Page {
  constructor(model) {
    this.model = model;
    this.tabs = new Map();
    this.last = new Map(); // tab -> the state it was left in
    this.first = model.graphs.length ? "graph" : model.kernels.length ? "kernels" : "report";
    this.router = new Router((state) => this.#show(state));
    this.palette = new Palette(model, this);
    this.help = helpDialog();
    this.main = h("main", {});
    this.bar = h("div", { class: "tabs", role: "tablist", "aria-label": "views" },
      TABS.map(([id, text], index) => h("button", {
        type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`,
        "aria-selected": "false", title: `${text} (${index + 1})`,
        on: { click: () => this.open(id) },
      }, text)));
    this.bar.addEventListener("keydown", (event) => this.#tabKey(event));
    document.body.append(this.#header(), this.main, this.palette.element, this.help);
    document.addEventListener("keydown", (event) => this.#key(event));
    document.title = `${model.title} · weft viz`;
  }

  #header() {
    const { title, target, created, summary, kernels } = this.model;
    const fact = (name, value) => h("span", { class: "summary" }, h("b", {}, value), ` ${name}`);
    const button = (text, label, act) => h("button", {
      type: "button", class: "quiet", title: label, "aria-label": label, on: { click: act },
    }, text);
    return h("header", { class: "top" },
      h("div", { class: "brand" }, logo(), h("h1", { title }, title),
        h("span", { class: "target", title: created }, target),
        h("div", { class: "summaries" },
          summary.call === null ? null : fact("a call", microseconds(summary.call)),
          fact(kernels.length === 1 ? "kernel" : "kernels", String(kernels.length)),
          summary.weights === null ? null : fact("weights", bytes(summary.weights)),
          summary.arena === null ? null : fact("arena", bytes(summary.arena)),
          summary.compile === null ? null : fact("to compile", seconds(summary.compile)))),
      h("nav", {}, this.bar, h("div", { class: "tools" },
        h("button", { type: "button", class: "search", on: { click: () => this.palette.open() } },
          "Search ", h("kbd", {}, "/")),
        button("◐", "Light or dark (t)", nextTheme),
        button("?", "Help (?)", () => this.help.showModal()))));
  }

  start() {
    this.router.start();
  }

  /** What tabs call. */
  go(state) {
    this.router.go(state);
  }

  replace(state) {
    this.router.replace(state);
    this.last.set(state.tab, state);
  }

  state() {
    return this.router.state;
  }

  /** A tab in the state it was left in. */
  open(id) {
    this.go(this.last.get(id) ?? { tab: id });
  }

  #tab(id) {
    if (!this.tabs.has(id)) {
      const [, text, Tab] = TABS.find(([name]) => name === id);
      const tab = new Tab(this.model, this);
      const panel = h("section", {
        class: "panel", role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`,
        "aria-label": text,
      }, tab.element);
      this.main.append(panel);
      this.tabs.set(id, { tab, panel });
    }
    return this.tabs.get(id);
  }

  async #show(state) {
    const id = state.tab ?? this.first;
    this.last.set(id, { tab: id, ...state });
    for (const [name] of TABS) {
      const isOn = name === id;
      const button = this.bar.querySelector(`#tab-${name}`);
      button.setAttribute("aria-selected", String(isOn));
      button.tabIndex = isOn ? 0 : -1;
    }
    document.body.dataset.shown = "";
    try {
      const { tab, panel } = this.#tab(id);
      for (const other of this.tabs.values()) other.panel.hidden = other.panel !== panel;
      await tab.show(state);
    } catch (problem) {
      this.#fail(id, problem);
      throw problem;
    }
    if ((this.state().tab ?? this.first) === id) document.body.dataset.shown = id;
  }

  #fail(id, problem) {
    const text = `${problem}`;
    const note = h("div", { class: "failure", role: "alert" },
      missing(`The view ${id} could not be drawn.`, "The other views work. Please report: "),
      h("pre", {}, text));
    (this.tabs.get(id)?.panel ?? this.main).append(note);
  }

  #tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const ids = TABS.map(([id]) => id);
    const at = ids.indexOf(this.state().tab ?? this.first);
    const id = ids[(at + step + ids.length) % ids.length];
    this.open(id);
    this.bar.querySelector(`#tab-${id}`).focus();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // The field of a dialog may keep the focus for a moment after the dialog has closed.
    const field = event.target.closest?.("input, select, textarea, dialog");
    if (field && field.checkVisibility()) return;
    const tab = TABS[Number(event.key) - 1];
    if (tab) this.open(tab[0]);
    else if (event.key === "/") this.palette.open();
    else if (event.key === "?") this.help.showModal();
    else if (event.key === "t") nextTheme();
    else return;
    event.preventDefault();
  }
}

async function begin() {
  const holder = document.getElementById("data");
  startTheme();
  try {
    const page = new Page(modelOf(await decode(holder.textContent)));
    document.getElementById("loading")?.remove();
    page.start();
  } catch (problem) {
    document.getElementById("loading")?.replaceChildren(
      missing("The record of this page could not be read.", `${problem}`));
    throw problem;
  }
}

begin();
