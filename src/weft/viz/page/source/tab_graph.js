/** Graph: the model as imported, after fusion and at the end; groups coloured by their time. */

import { Canvas } from "./canvas.js";
import { h, link, missing, segmented } from "./dom.js";
import { drawGraph } from "./draw_graph.js";
import { bytes, count, microseconds, percent, shape } from "./format.js";
import { MANY_GROUPS, nameOf, refusals, viewOf } from "./graph_view.js";
import { layout } from "./layout.js";
import { format } from "./route.js";

export const title = "Graph";

const kernelLink = (name) => link(format({ kernel: name }), name, { class: "name" });

function facts(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export class GraphTab {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.closed = new Map(); // graph -> ids of its closed groups
    this.canvas = new Canvas("the graph: drag, wheel, arrows and + − 0 move it");
    this.toolbar = h("div", { class: "toolbar" });
    this.side = h("aside", { class: "side", "aria-label": "what is selected" });
    this.element = h("div", { class: "page-tab" }, this.toolbar,
      h("div", { class: "split with-side" }, this.canvas.element, this.side));
    this.drawn = null;
  }

  async show(state) {
    this.state = state;
    const { graphs } = this.model;
    if (!graphs.length) {
      this.element.replaceChildren(missing("No graph was recorded.",
        "A single loop program has none: see Kernels."));
      return;
    }
    const preferred = graphs.find((graph) => graph.groups.length) ?? graphs[0];
    const graph = graphs.find((item) => item.name === state.graph) ?? preferred;
    if (!this.closed.has(graph)) {
      const ids = graph.groups.length > MANY_GROUPS ? graph.groups.map((group) => group.id) : [];
      this.closed.set(graph, new Set(ids));
    }
    const isNew = graph !== this.drawn;
    this.graph = graph;
    this.#fillToolbar();
    if (isNew) await this.#draw();
    this.#mark(isNew);
  }

  #go(change) {
    this.page.go({ tab: "graph", graph: this.graph.name, ...change });
  }

  #fillToolbar() {
    const { graphs } = this.model;
    const choices = graphs.map((graph) => [graph.name, graph.name,
      `${count(graph.nodes.length, "node")}, ${count(graph.groups.length, "group")}`]);
    const closed = this.closed.get(this.graph);
    const toggle = (all) => async () => {
      this.closed.set(this.graph, new Set(all ? this.graph.groups.map((group) => group.id) : []));
      this.#fillToolbar();
      await this.#draw();
      this.#mark(true);
    };
    this.toolbar.replaceChildren(
      segmented("which graph", choices, this.graph.name, (name) => this.page.go(
        { tab: "graph", graph: name })),
      this.graph.groups.length ? h("button", {
        type: "button", on: { click: toggle(closed.size === 0) },
      }, closed.size ? "Open all groups" : "Close all groups") : "",
      h("span", { class: "note" }, [count(this.graph.nodes.length, "node"),
        this.graph.groups.length ? count(this.graph.groups.length, "group") : ""]
        .filter(Boolean).join(" in ")),
      this.#legend());
  }

  #legend() {
    if (!this.model.profile) {
      return h("span", { class: "note push" }, "not measured: groups have no colour");
    }
    const most = Math.max(...[...this.model.times.values()].map((time) => time.us), 0);
    return h("span", { class: "legend push" }, "time of a group", h("span", { class: "ramp" }),
      h("span", { class: "note" }, `0 to ${microseconds(most)}`));
  }

  async #draw() {
    const view = viewOf(this.model, this.graph, this.closed.get(this.graph));
    const graph = this.graph;
    const begin = performance.now();
    const places = await layout(view);
    if (graph !== this.graph) return; // another one was chosen meanwhile
    this.element.dataset.layoutMs = (performance.now() - begin).toFixed(0);
    this.drawn = graph;
    this.view = view;
    this.places = places;
    drawGraph(this.canvas.content, view, places, {
      node: (node, event) => this.#choose(node, event),
      cluster: (cluster, event) => this.#chooseGroup(cluster.id, event),
      refusal: (edge) => this.#go({ group: edge.producer, why: edge.consumer }),
    });
    const first = view.nodes.find((node) => node.class.includes("input")) ?? view.nodes[0];
    this.canvas.setSize(places.width, places.height, places.nodes.get(first?.id));
  }

  #choose(node, event) {
    if (node.closed) this.#open(node.group);
    else if (node.group !== undefined) this.#chooseGroup(node.group, event); // it is alone
    else if (node.cluster !== null && event.shiftKey) this.#chooseGroup(node.cluster, event);
    else this.#go({ node: node.id });
  }

  #chooseGroup(id, event) {
    const { group } = this.state;
    if (event.shiftKey && group !== undefined && String(group) !== String(id)) {
      this.#go({ group, why: id });
    } else {
      this.#go({ group: id });
    }
  }

  async #open(id) {
    this.closed.get(this.graph).delete(id);
    this.#fillToolbar();
    await this.#draw();
    this.#go({ group: id });
    this.#mark(true);
  }

  #selected() {
    const { node, group, kernel } = this.state;
    const same = (key) => (item) => String(item.id) === String(key);
    const found = node === undefined ? undefined : this.graph.nodes.find(same(node));
    const ofKernel = kernel && this.graph.groups.find((item) => item.kernel === kernel);
    const box = group === undefined ? ofKernel : this.graph.groups.find(same(group));
    return { node: found ?? null, group: box ?? null };
  }

  #mark(isNew) {
    const { node, group } = this.#selected();
    const own = node ? node.id : null;
    const inClosed = this.view.nodes.filter((item) => item.group !== undefined
      && (item.group === node?.group || item.group === group?.id)).map((item) => item.id);
    for (const element of this.canvas.content.querySelectorAll(".node, .cluster")) {
      const id = element.getAttribute("data-id");
      const isNode = element.classList.contains("node");
      element.classList.toggle("selected", isNode
        ? inClosed.some((one) => String(one) === id) || (own !== null && id === String(own))
        : Boolean(group) && id === String(group.id));
    }
    const place = this.places.nodes.get(own) ?? this.places.nodes.get(inClosed[0]);
    const box = group && this.places.clusters.get(group.id);
    if (place) this.canvas.centre(place.x, place.y);
    else if (box) this.canvas.centre(box.x + box.width / 2, box.y + box.height / 2);
    else if (isNew) this.canvas.begin();
    this.#fillSide(node, group);
  }

  #fillSide(node, group) {
    const parts = node ? this.#ofNode(node) : group ? this.#ofGroup(group) : this.#ofNone();
    this.side.replaceChildren(...parts);
  }

  #ofNone() {
    return [
      h("h2", {}, "Nothing selected"),
      h("p", {}, "Click a group for its kernel and its time, a node for its tensors. Shift and a"
        + " click on a second group, or a ≠ on an edge, tells why the two were not fused."),
      this.#whyForm(null, null),
    ];
  }

  #ofNode(node) {
    const group = this.graph.groups.find((item) => item.id === node.group);
    const label = (id) => {
      const other = this.graph.nodes.find((item) => item.id === id);
      return link(format({ tab: "graph", graph: this.graph.name, node: id }),
        nameOf(other));
    };
    const inputs = this.graph.edges.filter((edge) => edge.to === node.id);
    const outputs = this.graph.edges.filter((edge) => edge.from === node.id);
    const row = (edge, other) => h("li", {}, label(other), " ",
      h("span", { class: "note" }, shape(edge.type)));
    return [
      h("h2", { class: "name" }, nameOf(node)),
      facts([["Value", node.label], ["Operator", node.op], ["Type", node.type],
        ["Kind", node.kind], ["Weights", node.constants ? String(node.constants) : ""]]),
      group ? h("p", {}, "In group ", link(format({
        tab: "graph", graph: this.graph.name, group: group.id,
      }), group.name)) : null,
      group?.kernel ? h("p", {}, "Kernel ", kernelLink(group.kernel)) : null,
      h("h3", {}, "Reads"), inputs.length
        ? h("ul", {}, inputs.map((edge) => row(edge, edge.from))) : h("p", {}, "no other node"),
      h("h3", {}, "Read by"), outputs.length
        ? h("ul", {}, outputs.map((edge) => row(edge, edge.to))) : h("p", {}, "no other node"),
    ].filter(Boolean);
  }

  #ofGroup(group) {
    const time = this.model.times.get(group.kernel);
    const members = this.graph.nodes.filter((node) => node.group === group.id);
    return [
      h("h2", { class: "name" }, group.name),
      group.kernel ? h("p", {}, link(format({ kernel: group.kernel }),
        "Open its kernel →", { class: "button" })) : missing("No kernel", "was recorded for it."),
      time ? facts([["Time", `${microseconds(time.us)} in ${count(time.calls, "call")}`],
        ["Share", percent(time.us / (this.model.totalTime || 1))],
        ["Of the peak", time.peak === null ? null : percent(time.peak)],
        ["Of the bandwidth", time.bandwidth === null ? null : percent(time.bandwidth)],
        ["Moved", time.bytes === null ? null : bytes(time.bytes)]])
        : missing("Not measured:", "the record has no time of this kernel."),
      h("h3", {}, count(members.length, "operator")),
      h("ul", {}, members.map((node) => h("li", {}, link(format({
        tab: "graph", graph: this.graph.name, node: node.id,
      }), nameOf(node)), " ", h("span", { class: "note" }, shape(node.type))))),
      this.#whyForm(group.id, this.state.why ?? null),
    ];
  }

  #whyForm(producer, consumer) {
    const { groups } = this.graph;
    if (!groups.length) return h("p", { class: "note" }, "This graph has no groups yet.");
    const reason = refusals(this.model, this.graph);
    const other = groups.find((group) => String(group.id) === String(consumer)) ?? null;
    const choose = (name, value, change) => h("label", {}, name, h("select", {
      on: { change: (event) => change(event.target.value) },
    }, h("option", { value: "" }, "choose…"), groups.map((group) => h("option", {
      value: String(group.id), selected: String(group.id) === String(value),
    }, group.name))));
    const answer = producer !== null && other
      ? reason(producer, other.id) ?? reason(other.id, producer) : null;
    const recorded = this.model.fusion.map((pair) => [pair, ...this.#pairOf(pair)])
      .filter(([pair, from, to]) => from && to && (producer === null
        || [pair.producer, pair.consumer].some((name) => name === String(producer)
          || from.id === producer || to.id === producer)));
    return h("section", { class: "why" },
      h("h3", {}, "Why were these two not fused?"),
      choose("producer", producer, (id) => this.#go(id === "" ? {} : { group: id })),
      choose("consumer", consumer, (id) => this.#go({
        group: producer ?? id, why: producer === null || id === "" ? undefined : id,
      })),
      producer !== null && other ? h("p", { class: "answer", role: "status" },
        answer ?? "No reason was recorded: no value goes from one straight to the other.") : null,
      recorded.length ? h("ul", { class: "pairs" }, recorded.map(([pair, from, to]) => h("li", {},
        link(format({ tab: "graph", graph: this.graph.name, group: from.id, why: to.id }),
          `${from.name} → ${to.name}`), h("span", { class: "note" }, ` ${pair.reason}`))))
        : h("p", { class: "note" }, "No refusal was recorded here."));
  }

  #pairOf(pair) {
    const find = (name) => this.graph.groups.find((group) => String(group.id) === name
      || group.name === name);
    return [find(pair.producer), find(pair.consumer)];
  }
}
