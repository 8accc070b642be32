/** Passes: what each did to the text and to the graph, what it took; schedules step by step. */

import { Canvas } from "./canvas.js";
import { compare, counts, folded } from "./diff.js";
import { bar, h, missing, segmented } from "./dom.js";
import { drawGraph, sized } from "./draw_graph.js";
import { count, milliseconds } from "./format.js";
import { layout } from "./layout.js";
import { DiffView } from "./lines.js";
import { ListBox } from "./listbox.js";
import { compareGraphs, graphOfText, neighbourhood } from "./relax_graph.js";
import { Schedules } from "./schedules.js";

export const title = "Passes";

const ROW = 26;
const WHOLE = 150; // nodes up to which a graph is drawn whole

/** The functions of a pass: {name, before, after: texts or null, mark}, changed ones first. */
function functionsOf(model, pass) {
  const [before, after] = [model.functions(pass.before), model.functions(pass.after)];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const rows = names.map((name) => ({
    name, before: model.text(before.get(name)), after: model.text(after.get(name)),
    mark: !before.has(name) ? "added" : !after.has(name) ? "removed"
      : before.get(name) === after.get(name) ? "" : "changed",
  }));
  return rows.sort((a, b) => Boolean(b.mark) - Boolean(a.mark));
}

export class PassesTab {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.most = Math.max(...model.passes.map((pass) => pass.ms ?? 0), 0) || 1;
    this.onlyChanged = true;
    this.list = new ListBox("passes", ROW, (pass) => this.#row(pass),
      (pass) => page.go({ tab: "passes", pass: pass.index, view: this.state.view }));
    this.detail = h("div", { class: "detail" });
    this.schedules = new Schedules(model, page);
    this.tools = h("div", { class: "toolbar" });
    this.split = h("div", { class: "split with-wide-list" },
      h("div", { class: "column" }, this.#filter(), this.list.element), this.detail);
    this.body = h("div", { class: "fill" });
    this.element = h("div", { class: "page-tab" }, this.tools, this.body);
    this.diff = new DiffView("what differs", "script");
    this.canvas = new Canvas("the graph before and after the pass");
    this.#fillList();
  }

  #row(pass) {
    return [
      h("span", { class: `index ${pass.phase}`, title: pass.phase }, String(pass.index)),
      h("span", { class: `grow name${pass.changed ? "" : " quiet"}`, title: pass.name,
        style: { "padding-left": `${Math.min(pass.depth, 6) * 12}px` } }, pass.name),
      h("span", { class: "ms" }, bar((pass.ms ?? 0) / this.most, milliseconds(pass.ms))),
      h("span", { class: "dot", title: pass.changed ? "changed the module" : "changed nothing" },
        pass.changed ? "●" : ""),
    ];
  }

  #filter() {
    const changed = this.model.passes.filter((pass) => pass.changed).length;
    const box = h("input", {
      type: "checkbox", checked: true, on: {
        change: () => {
          this.onlyChanged = box.checked;
          this.#fillList();
          this.#mark();
        },
      },
    });
    return h("label", { class: "check" }, box,
      ` only the ${changed} of ${this.model.passes.length} that changed something`);
  }

  #fillList() {
    this.shown = this.model.passes.filter((pass) => pass.changed || !this.onlyChanged);
    this.list.setItems(this.shown);
  }

  /** The first pass that did something itself: one that others follow within it only calls them. */
  #first() {
    const isInner = (pass) => !(passes[pass.index + 1]?.depth > pass.depth);
    const { passes } = this.model;
    return this.shown.find((pass) => pass.changed && isInner(pass)) ?? this.shown[0];
  }

  #mark() {
    this.list.select(this.shown.indexOf(this.pass));
  }

  async show(state) {
    this.state = state;
    const isSchedule = "schedule" in state || state.view === "schedules";
    this.tools.replaceChildren(segmented("what", [
      ["passes", "Passes"], ["schedules", "Schedules", "the steps of each kernel's schedule"],
    ], isSchedule ? "schedules" : "passes", (choice) => this.page.go(
      choice === "passes" ? { tab: "passes", pass: this.pass?.index ?? 0 }
        : { tab: "passes", view: "schedules" })));
    if (isSchedule) {
      this.body.replaceChildren(this.schedules.element);
      this.schedules.show(state);
      return;
    }
    this.body.replaceChildren(this.split);
    const { passes } = this.model;
    this.pass = passes[Number(state.pass)] ?? this.#first() ?? passes[0];
    if (!this.pass) {
      this.detail.replaceChildren(missing("No passes were recorded.",
        "What was shown had been compiled before."));
      return;
    }
    this.#mark();
    await this.#fillDetail();
  }

  async #fillDetail() {
    const { pass } = this;
    const functions = functionsOf(this.model, pass);
    const changed = functions.filter((row) => row.mark);
    const view = this.state.view === "graph" ? "graph" : "text";
    const chosen = functions.find((row) => row.name === this.state.function) ?? functions[0];
    const go = (change) => this.page.go({
      tab: "passes", pass: pass.index, view, function: this.state.function, ...change,
    });
    const body = h("div", { class: "fill" });
    this.detail.replaceChildren(
      h("header", { class: "head" }, h("h2", { class: "name" }, `${pass.index} · ${pass.name}`),
        h("span", { class: `tag ${pass.phase}` }, pass.phase),
        h("span", { class: "note" }, `${milliseconds(pass.ms)}, `, changed.length
          ? `${count(changed.length, "function")} of ${functions.length} changed`
          : "changed nothing")),
      h("div", { class: "toolbar" },
        segmented("view", [["text", "Text"], ["graph", "Graph"]], view, (choice) => go(
          { view: choice })),
        this.#chips(functions, chosen, go)),
      body);
    if (!chosen) {
      body.append(missing("No text was recorded", "for this pass."));
    } else if (view === "graph") {
      await this.#fillGraph(body, chosen);
    } else {
      this.#fillText(body, chosen);
    }
  }

  #chips(functions, chosen, go) {
    if (functions.length > 12) {
      return h("label", { class: "chips" }, "function ", h("select", {
        on: { change: (event) => go({ function: event.target.value }) },
      }, functions.map((row) => h("option", { value: row.name, selected: row === chosen },
        `${row.mark ? `${row.mark}: ` : ""}${row.name}`))));
    }
    return h("div", { class: "chips", role: "group", "aria-label": "function" },
      functions.map((row) => h("button", {
        type: "button", class: `chip ${row.mark}`, "aria-pressed": String(row === chosen),
        title: `${row.name}: ${row.mark || "as it was"}`,
        on: { click: () => go({ function: row.name }) },
      }, row.name)));
  }

  #fillText(body, row) {
    if (row.before === null && row.after === null) {
      body.append(missing("The text was not recorded", "for this function."));
      return;
    }
    const compared = compare(row.before ?? "", row.after ?? "");
    const { added, removed } = counts(compared);
    body.append(
      h("p", { class: "note counts" }, h("span", { class: "plus" }, `+${added}`), " ",
        h("span", { class: "minus" }, `−${removed}`), ` of ${count(compared.length, "line")}`),
      this.diff.element);
    this.diff.setLines(compared, added || removed ? folded(compared) : compared);
  }

  async #fillGraph(body, row) {
    const [before, after] = [row.before, row.after].map((text) => (text === null ? []
      : graphOfText(text)));
    if (before === null || after === null) {
      body.append(missing("No graph:", "this function is a loop program. Its text shows what"
        + " changed."));
      return;
    }
    const both = compareGraphs(before, after);
    const shown = both.nodes.length > WHOLE ? neighbourhood(both) : both;
    const amount = (status) => both.nodes.filter((node) => node.status === status).length;
    body.append(h("p", { class: "note counts" },
      h("span", { class: "plus" }, `+${amount("added")}`), " ",
      h("span", { class: "minus" }, `−${amount("removed")}`),
      ` of ${count(both.nodes.length, "node")}`,
      shown === both ? "" : "; only what changed and its neighbours is drawn"),
    this.canvas.element);
    const view = {
      clusters: [], nodes: shown.nodes.map((node) => sized({
        ...node, cluster: null, lines: [node.op, node.type].filter(Boolean),
        class: `${node.kind} ${node.status}`, title: `${node.op} ${node.type} ${node.status}`,
      })),
      edges: shown.edges.map((edge) => ({ ...edge, type: "", class: edge.status })),
    };
    const places = await layout(view);
    const nothing = () => {};
    drawGraph(this.canvas.content, view, places, { node: nothing, cluster: nothing });
    this.canvas.setSize(places.width, places.height);
    this.canvas.begin();
  }
}
