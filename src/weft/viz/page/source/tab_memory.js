/** Memory: the arena as rectangles over the steps of a run, and the weights. */

import { axisBottom, axisLeft } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { card, h, link, missing, s, tip } from "./dom.js";
import { grouped, sum } from "./data.js";
import { bytes, count, percent, shorten } from "./format.js";
import { format } from "./route.js";
import { SortedTable } from "./table.js";

export const title = "Memory";

const EDGE = { left: 66, right: 16, top: 14, bottom: 34 };
const HUES = 8;

/** Bytes in use at each step. */
function inUse(memory) {
  const steps = memory.buffers.reduce((most, buffer) => Math.max(most, buffer.last + 1),
    memory.steps.length);
  const difference = new Float64Array(steps + 1);
  for (const buffer of memory.buffers) {
    difference[buffer.first] += buffer.bytes;
    difference[buffer.last + 1] -= buffer.bytes;
  }
  let live = 0;
  return Array.from({ length: steps }, (_, step) => {
    live += difference[step];
    return live;
  });
}

export class MemoryTab {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.side = h("aside", { class: "side", "aria-label": "what is selected" });
    this.picture = s("svg", { class: "chart arena", role: "group",
      "aria-label": "buffers of the arena over the steps of a run" });
    this.live = inUse(model.memory);
    this.element = h("div", { class: "page-tab scrolls" });
    this.selected = -1;
  }

  show(state) {
    this.state = state;
    if (!this.element.childElementCount) this.#fill();
    const wanted = this.model.memory.buffers[Number(state.buffer ?? NaN)];
    this.#select(wanted ? Number(state.buffer) : -1);
  }

  #fill() {
    const { memory } = this.model;
    const peak = Math.max(...this.live, 0);
    const total = sum(memory.buffers.map((buffer) => buffer.bytes));
    const head = h("div", { class: "facts" }, [["arena", bytes(memory.arena)],
      ["largest live set", bytes(memory.bound ?? peak)],
      ["buffers without reuse", bytes(total)],
      ["buffers", String(memory.buffers.length)],
      ["weights", bytes(sum(memory.weights.map((weight) => weight.bytes)))],
    ].map(([name, value]) => h("div", { class: "fact" }, h("span", {}, name), h("b", {}, value))));
    this.element.append(head);
    if (memory.buffers.length) {
      this.element.append(h("div", { class: "split with-side arena-split" },
        h("div", { class: "frame" }, this.picture), this.side));
      new ResizeObserver(() => this.#draw()).observe(this.picture.parentNode);
      this.#draw();
    } else {
      this.element.append(card("Arena", missing("No buffers were recorded.",
        "The model keeps nothing between its kernels, or it runs as bytecode.")));
    }
    this.element.append(this.#weights());
  }

  #draw() {
    const { memory } = this.model;
    const { clientWidth: width, clientHeight: height } = this.picture.parentNode;
    if (!width || !height) return;
    const top = Math.max(memory.arena, memory.bound ?? 0,
      ...memory.buffers.map((buffer) => buffer.offset + buffer.bytes), 1);
    const x = scaleLinear([0, Math.max(this.live.length, 1)], [EDGE.left, width - EDGE.right]);
    const y = scaleLinear([0, top * 1.04], [height - EDGE.bottom, EDGE.top]);
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const axes = s("g", { class: "axes" });
    const wide = x(1) - x(0);
    const every = Math.max(1, Math.ceil(28 / wide));
    const ticks = this.live.map((_, step) => step).filter((step) => step % every === 0);
    const names = (at) => (wide < 70 ? String(Math.floor(at))
      : shorten(memory.steps[Math.floor(at)] ?? String(Math.floor(at)), Math.floor(wide / 6.4)));
    select(axes).append("g").attr("transform", `translate(0,${height - EDGE.bottom})`)
      .call(axisBottom(x).tickValues(ticks.map((step) => step + 0.5)).tickFormat(names));
    select(axes).append("g").attr("transform", `translate(${EDGE.left},0)`)
      .call(axisLeft(y).ticks(6).tickFormat(bytes).tickSize(-(width - EDGE.left - EDGE.right)));
    this.rectangles = memory.buffers.map((buffer, index) => this.#rectangle(buffer, index, x, y));
    this.picture.replaceChildren(axes, this.#profile(x, y), ...this.rectangles,
      ...this.#lines(x, y, width),
      s("text", { class: "axis-name", x: width - EDGE.right, y: height - 4,
        "text-anchor": "end" }, "step of a run"));
    this.#paint(this.selected);
  }

  #profile(x, y) {
    const points = this.live.flatMap((value, step) => [
      `${x(step)},${y(value)}`, `${x(step + 1)},${y(value)}`]);
    return s("path", { class: "live", d: `M${x(0)},${y(0)}L${points.join("L")}L`
      + `${x(this.live.length)},${y(0)}Z` }, tip("bytes in use"));
  }

  #lines(x, y, width) {
    const { memory } = this.model;
    const line = (value, kind, text, above) => [
      s("line", { class: kind, x1: EDGE.left, x2: width - EDGE.right, y1: y(value),
        y2: y(value) }),
      s("text", { class: `line-name ${kind}`, x: width - EDGE.right - 4,
        y: y(value) + (above ? -5 : 13), "text-anchor": "end" }, `${text} ${bytes(value)}`)];
    if (memory.bound !== null && Math.abs(memory.bound - memory.arena) < 0.02 * memory.arena) {
      return line(memory.arena, "bound-line", "arena and live bound", true);
    }
    return [
      ...line(memory.arena, "arena-line", "arena", true),
      ...(memory.bound === null ? [] : line(memory.bound, "bound-line", "live bound", false)),
    ];
  }

  #rectangle(buffer, index, x, y) {
    const [left, right] = [x(buffer.first), x(buffer.last + 1)];
    const [high, low] = [y(buffer.offset + buffer.bytes), y(buffer.offset)];
    const width = Math.max(1, right - left - 2);
    const height = Math.max(1.5, low - high - 1);
    const room = Math.floor((width - 12) / 6.2);
    const label = [`${buffer.name} · ${bytes(buffer.bytes)}`, buffer.name]
      .find((text) => text.length <= room);
    return s("g", {
      class: "buffer", role: "button", tabindex: index === 0 ? "0" : "-1",
      "aria-label": `${buffer.name}, ${bytes(buffer.bytes)}, steps ${buffer.first} to `
        + `${buffer.last}`,
      style: { "--hue": `var(--hue-${index % HUES})` },
      on: {
        click: () => this.page.go({ tab: "memory", buffer: index }),
        mouseenter: () => this.#paint(index), mouseleave: () => this.#paint(this.selected),
        keydown: (event) => this.#key(event, index),
      },
    }, tip(`${buffer.name}: ${bytes(buffer.bytes)} at ${buffer.offset}, `
      + `steps ${buffer.first} to ${buffer.last}`),
    s("rect", { x: left + 1, y: high, width, height, rx: Math.min(3, height / 3) }),
    height > 14 && label ? s("text", { x: left + 7, y: (high + low) / 2 + 4 }, label) : null);
  }

  #key(event, index) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      this.page.go({ tab: "memory", buffer: index });
    } else if (step) {
      const length = this.rectangles.length;
      this.rectangles[(index + step + length) % length].focus();
      this.#paint((index + step + length) % length);
    } else {
      return;
    }
    event.preventDefault();
  }

  #select(index) {
    this.selected = index;
    this.#paint(index);
  }

  /** Mark a buffer, those whose producers read it and the one it was computed from. */
  #paint(index) {
    const { buffers } = this.model.memory;
    const buffer = buffers[index] ?? null;
    (this.rectangles ?? []).forEach((element, position) => {
      const other = buffers[position];
      const kind = !buffer ? "" : position === index ? "chosen"
        : buffer.users.includes(other.producer) ? "reader"
          : other.users.includes(buffer.producer) ? "source" : "other";
      element.setAttribute("class", `buffer ${kind}`);
    });
    this.side.replaceChildren(...(buffer ? this.#about(buffer) : [
      h("h2", {}, "Nothing selected"),
      h("p", {}, "Point at a buffer for its producer and its users; a click keeps it. Height is"
        + " bytes, width the steps in which it lives."),
      h("h3", {}, "Largest"), h("ul", {}, buffers.map((item, position) => [item, position])
        .sort(([a], [b]) => b.bytes - a.bytes).slice(0, 8).map(([item, position]) => h("li", {},
          link(format({ tab: "memory", buffer: position }), item.name), " ",
          h("span", { class: "note" }, bytes(item.bytes)))))]));
  }

  #about(buffer) {
    const named = (kernel) => (this.model.kernel.has(kernel)
      ? link(format({ kernel }), kernel) : kernel || "not recorded");
    const step = (at) => {
      const name = this.model.memory.steps[at];
      return name === undefined ? String(at) : `${at}, ${name}`;
    };
    const share = buffer.bytes / (this.model.memory.arena || 1);
    return [
      h("h2", { class: "name" }, buffer.name),
      h("dl", {}, [["Size", `${bytes(buffer.bytes)}, ${percent(share)} of the arena`],
        ["Offset", bytes(buffer.offset)], ["From", `step ${step(buffer.first)}`],
        ["To", `step ${step(buffer.last)}`], ["Written by", named(buffer.producer)]]
        .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("h3", {}, "Read by"),
      buffer.users.length ? h("ul", {}, buffer.users.map((user) => h("li", {}, named(user))))
        : h("p", { class: "note" }, "nobody: it is a result, or not recorded"),
    ];
  }

  #weights() {
    const { weights } = this.model.memory;
    if (!weights.length) return card("Weights", missing("No weights were recorded."));
    const total = sum(weights.map((weight) => weight.bytes)) || 1;
    const kinds = [...grouped(weights, (weight) => weight.kind)].map(([kind, rows]) => (
      { kind, rows: rows.length, bytes: sum(rows.map((row) => row.bytes)) }));
    const stack = h("div", { class: "stack" }, kinds.map((item) => h("span", {
      class: `kind ${item.kind.replace(/\W+/g, "-")}`, style: { "flex-grow": String(item.bytes) },
      title: `${item.kind}: ${bytes(item.bytes)}`,
    })));
    const legend = h("div", { class: "stack-legend" }, kinds.map((item) => h("span", {},
      h("span", { class: `kind ${item.kind.replace(/\W+/g, "-")}` }), ` ${item.kind} `,
      h("span", { class: "note" }, `${bytes(item.bytes)}, ${count(item.rows, "weight")}`))));
    const table = new SortedTable("weights", [
      { name: "weight", value: (row) => row.name, kind: "name" },
      { name: "bytes", value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
      { name: "share", value: (row) => row.bytes / total,
        text: (row) => percent(row.bytes / total) },
      { name: "kind", value: (row) => row.kind },
      { name: "kernel", value: (row) => row.kernel ?? "", kind: "name",
        cell: (row) => (row.kernel === null ? "–"
          : link(format({ kernel: row.kernel }), row.kernel)) },
    ], 1);
    table.setRows(weights);
    return card("Weights", stack, legend, table.element);
  }
}
