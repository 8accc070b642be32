/** A graph that layout.js placed, as SVG: nodes, groups around them, edges with their shapes. */

import { s, tip } from "./dom.js";
import { shape, shorten } from "./format.js";

const PAD = 22;
const LINE = 15;
const TITLE_HEIGHT = 20;
const LABEL_AT = 10; // pixels from the node that computes a value to its shape
const REFUSAL_AT = 27; // below the lower edge of the group
const REFUSAL_BEFORE = 13; // pixels from the node that takes the value
const REFUSAL_SIZE = 8; // half of its width
const LONGEST = 42; // letters of a name in a node
const FONT = "12px system-ui, sans-serif";
const TITLE_FONT = "600 11px system-ui, sans-serif";
const NOTE_FONT = "11px system-ui, sans-serif";

const pen = document.createElement("canvas").getContext("2d");

function widthOf(text, font = FONT) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** The size of a node with these lines, and the lines as they are written. */
export function sized(node) {
  const texts = node.lines.map((line) => shorten(line, LONGEST));
  const width = Math.max(44, ...texts.map((line, row) =>
    widthOf(line, row ? "10.5px system-ui, sans-serif" : "600 12px system-ui, sans-serif"))) + PAD;
  return { ...node, texts, width, height: 12 + LINE * texts.length };
}

/** The size of a group's title. */
export function titled(cluster) {
  const title = shorten(cluster.title, LONGEST);
  return {
    ...cluster, text: title, height: TITLE_HEIGHT,
    width: widthOf(title, TITLE_FONT)
      + (cluster.note ? widthOf(cluster.note, NOTE_FONT) + 14 : 0) + 22,
  };
}

function activated(act) {
  return {
    click: (event) => act(event),
    keydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      act(event);
    },
  };
}

function drawNode(node, at, listeners) {
  const [x, y] = [at.x - node.width / 2, at.y - node.height / 2];
  const round = node.class.includes("input") || node.class.includes("output")
    ? node.height / 2 : 5;
  return s("g", {
    class: `node ${node.class}`, role: "button", tabindex: "0", "data-id": String(node.id),
    "aria-label": node.lines.join(", "), transform: `translate(${x},${y})`,
    style: node.heat === undefined ? {} : { "--heat-share": `${node.heat * 100}%` },
    on: activated((event) => listeners.node(node, event)),
  },
    tip(node.title),
    s("rect", { width: node.width, height: node.height, rx: round }),
    node.texts.map((line, row) => s("text", {
      class: row ? "small" : "name", x: node.width / 2, y: 6 + LINE * row + 11,
    }, line)));
}

function drawCluster(cluster, at, listeners) {
  return s("g", {
    class: `cluster ${cluster.class ?? ""}`, role: "button", tabindex: "0",
    "data-id": String(cluster.id),
    "aria-label": `group ${cluster.title} ${cluster.note ?? ""}`,
    transform: `translate(${at.x},${at.y})`,
    style: { "--heat-share": `${(cluster.heat ?? 0) * 100}%` },
    on: activated((event) => listeners.cluster(cluster, event)),
  },
    tip(cluster.title),
    s("rect", { width: at.width, height: at.height, rx: 8 }));
}

/** A group's title: above the edges, which may pass behind it. */
function drawTitle(cluster, at) {
  return s("g", {
    class: "cluster-title", transform: `translate(${at.x},${at.y})`,
    style: { "--heat-share": `${(cluster.heat ?? 0) * 100}%` },
  },
    s("text", { class: "title", x: 10, y: 17 }, cluster.text),
    cluster.note
      ? s("text", { class: "note", x: at.width - 10, y: 17 }, cluster.note) : null);
}

function curve(points) {
  if (points.length < 2) return "";
  const text = ([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`;
  const [first, ...rest] = points;
  return rest.length % 3 === 0
    ? `M${text(first)}C${rest.map(text).join(" ")}` : `M${points.map(text).join("L")}`;
}

function arrow(points) {
  const [x, y] = points[points.length - 1];
  const [fromX, fromY] = points[Math.max(0, points.length - 2)];
  const angle = (Math.atan2(y - fromY, x - fromX) * 180) / Math.PI;
  return s("path", {
    class: "arrow", d: "M0,0L-7,-3.2L-5.5,0L-7,3.2Z",
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)}) rotate(${angle.toFixed(1)})`,
  });
}

/** The curve as short straight pieces. */
function traced(points) {
  if ((points.length - 1) % 3) return points;
  const result = [points[0]];
  for (let at = 0; at + 3 < points.length; at += 3) {
    const [a, b, c, d] = points.slice(at, at + 4);
    for (let step = 1; step <= 8; step += 1) {
      const t = step / 8;
      const r = 1 - t;
      result.push([0, 1].map((axis) => r * r * r * a[axis] + 3 * r * r * t * b[axis]
        + 3 * r * t * t * c[axis] + t * t * t * d[axis]));
    }
  }
  return result;
}

/** The point so many pixels from the beginning of an edge; the middle of a short one. */
function pointAt(points, distance) {
  const path = traced(points);
  const lengths = path.slice(1).map(([x, y], at) => Math.hypot(x - path[at][0], y - path[at][1]));
  const whole = lengths.reduce((sum, length) => sum + length, 0);
  let left = Math.min(distance, whole / 2);
  for (let at = 0; at < lengths.length; at += 1) {
    if (left <= lengths[at] && lengths[at] > 0) {
      const share = left / lengths[at];
      return [0, 1].map((axis) => path[at][axis] + share * (path[at + 1][axis] - path[at][axis]));
    }
    left -= lengths[at];
  }
  return path[path.length - 1];
}

/** Where the two texts of a group's title stand: [left, top, right, bottom]. */
function titleTexts(cluster, at) {
  const [top, bottom] = [at.y + 7, at.y + 21];
  const right = at.x + at.width - 10;
  return [
    [at.x + 10, top, at.x + 10 + widthOf(cluster.text, TITLE_FONT), bottom],
    ...(cluster.note ? [[right - widthOf(cluster.note, NOTE_FONT), top, right, bottom]] : []),
  ];
}

/** The place of a refusal on an edge, beside the texts of titles. */
function refusalAt(points, titles) {
  const places = [pointAt(points, REFUSAL_AT), pointAt([...points].reverse(), REFUSAL_BEFORE)];
  const isFree = ([x, y]) => titles.every(([left, top, right, bottom]) =>
    x < left - REFUSAL_SIZE || x > right + REFUSAL_SIZE
    || y < top - REFUSAL_SIZE || y > bottom + REFUSAL_SIZE);
  return places.find(isFree) ?? places[0];
}

function drawEdge({ edge, points }, label, titles, listeners) {
  if (points.length < 2) return null;
  const refusal = edge.refusal ?? null;
  const [labelX, labelY] = pointAt(points, LABEL_AT);
  const [x, y] = refusalAt(points, titles);
  const isNear = refusal && Math.hypot(x - labelX, y - labelY) < 14;
  return s("g", { class: `edge ${edge.class ?? ""}` },
    s("path", { class: "curve", d: curve(points) }, tip(edge.type ?? "")), arrow(points),
    label ? s("text", { class: "small", x: labelX + (isNear ? 14 : 6), y: labelY + 3.5 }, label)
      : null,
    refusal ? s("g", {
      class: "refusal", role: "button", tabindex: "0", transform: `translate(${x},${y})`,
      "aria-label": `why not fused: ${refusal}`,
      on: activated((event) => listeners.refusal(edge, event)),
    }, tip(`not fused: ${refusal}`), s("circle", { r: 7.5 }),
    s("text", { y: 3.8 }, "≠")) : null);
}

/** How steeply an edge leaves its node: 1 is straight down. */
function steepness(points) {
  if (points.length < 2) return -1;
  const [[x, y], [nextX, nextY]] = [points[0], pointAt(points, 2 * LABEL_AT)];
  return (nextY - y) / (Math.hypot(nextX - x, nextY - y) || 1);
}

/** The shapes on edges: one for each value, at the steepest edge, where no node hides it. */
function labelsOf(edges) {
  const chosen = new Map();
  edges.forEach(({ edge, points }, index) => {
    if (!edge.type) return;
    const key = `${edge.from} ${edge.type}`;
    const steep = steepness(points);
    if (steep > (chosen.get(key)?.steep ?? -2)) chosen.set(key, { steep, index });
  });
  const written = new Set([...chosen.values()].map(({ index }) => index));
  return edges.map(({ edge }, index) =>
    (written.has(index) ? shorten(shape(edge.type), 30) : ""));
}

/** Draw into `content`: nodes, groups, edges with the shapes of their values. */
export function drawGraph(content, graph, places, listeners) {
  const labels = labelsOf(places.edges);
  const clusters = graph.clusters.filter((cluster) => places.clusters.has(cluster.id));
  const each = (draw) => clusters.map((cluster) => draw(cluster, places.clusters.get(cluster.id),
    listeners));
  const titles = each(titleTexts).flat();
  content.replaceChildren(
    ...each(drawCluster),
    s("g", {}, places.edges.map((edge, index) =>
      drawEdge(edge, labels[index], titles, listeners))),
    ...each(drawTitle),
    ...graph.nodes.map((node) => drawNode(node, places.nodes.get(node.id), listeners)));
}
