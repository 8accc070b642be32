/** The graph that a printed Relax function says, and what differs between two of them. */

import { compareItems } from "./diff.js";

const BINDING = /^\s+([A-Za-z_]\w*)(?:: (.*?))? = (.+)$/;
const PARAMETER = /(\w+): (R\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)/g;
const TENSOR = /R\.Tensor\(\((.*?),?\)(?:, dtype="(\w+)")?/;
const NAME = /[A-Za-z_]\w*/g;

/** 'R.Tensor((4, 8), dtype="float32")' as "float32[4, 8]"; another type as it is written. */
export function typeOf(text) {
  const match = TENSOR.exec(text ?? "");
  return match ? `${match[2] ?? "?"}[${match[1]}]` : (text ?? "").replace(/^R\./, "");
}

function operatorOf(value) {
  const called = /^R\.call_\w+\(\s*(?:cls\.)?([\w.]+|"[^"]*")/.exec(value);
  if (called) return called[1].replace(/"/g, "");
  const head = /^(?:cls\.|R\.)?([\w.]+)\(/.exec(value);
  if (head) return head[1];
  return /^\w+$/.test(value) ? "alias" : value.startsWith("(") ? "tuple"
    : /^\w+\[\d+\]$/.test(value) ? "item" : "value";
}

function used(value, known) {
  const names = value.replace(/"[^"]*"/g, "").match(NAME) ?? [];
  return [...new Set(names)].filter((name) => known.has(name)).map((name) => known.get(name));
}

/** Nodes {key, op, type, kind, from: positions} as the text has them; null for loop programs. */
export function graphOfText(text) {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^\s*def /.test(line));
  if (start < 0 || !lines.slice(0, start).some((line) => line.includes("@R.function"))) {
    return null;
  }
  const nodes = [];
  const known = new Map();
  const add = (name, node) => {
    nodes.push({ ...node, key: `${node.kind} ${node.op} ${node.type}` });
    if (name) known.set(name, nodes.length - 1);
  };
  for (const [, name, type] of lines[start].matchAll(PARAMETER)) {
    add(name, { op: name, type: typeOf(type), kind: "input", from: [] });
  }
  for (const line of lines.slice(start + 1)) {
    const returned = /^\s+return (.+)$/.exec(line);
    if (returned) {
      add("", { op: "return", type: "", kind: "output", from: used(returned[1], known) });
      continue;
    }
    const match = BINDING.exec(line);
    if (!match || match[1] === "cls") continue;
    const [, name, annotation, value] = match;
    const type = typeOf(annotation ?? /out_sinfo=(.*)\)$/.exec(value)?.[1] ?? "");
    add(name, { op: operatorOf(value), type, kind: "call", from: used(value, known) });
  }
  return nodes;
}

/** Both graphs in one: each node {status: "" | "added" | "removed"}, edges by position in it. */
export function compareGraphs(before, after) {
  const nodes = [];
  const [oldPlace, newPlace] = [[], []];
  const keep = (items, status, ...places) => {
    for (const item of items) {
      for (const place of places) place.push(nodes.length);
      nodes.push({ ...item, id: nodes.length, status });
    }
  };
  for (const part of compareItems(before, after, (a, b) => a.key === b.key)) {
    if (part.added) keep(part.value, "added", newPlace);
    else if (part.removed) keep(part.value, "removed", oldPlace);
    else keep(part.value, "", oldPlace, newPlace);
  }
  const edges = new Map();
  const connect = (items, place, status) => items.forEach((item, position) => {
    for (const from of item.from) {
      const key = `${place[from]} ${place[position]}`;
      edges.set(key, edges.has(key) ? { ...edges.get(key), status: "" }
        : { from: place[from], to: place[position], type: items[from].type, status });
    }
  });
  connect(before, oldPlace, "removed");
  connect(after, newPlace, "added");
  return { nodes, edges: [...edges.values()] };
}

/** The nodes that changed, and those beside them; all where nothing did. */
export function neighbourhood(graph) {
  const near = new Set(graph.nodes.filter((node) => node.status).map((node) => node.id));
  if (!near.size) return graph;
  const changed = new Set(near);
  for (const edge of graph.edges) {
    if (edge.status || changed.has(edge.from) || changed.has(edge.to)) {
      near.add(edge.from);
      near.add(edge.to);
    }
  }
  return {
    nodes: graph.nodes.filter((node) => near.has(node.id)),
    edges: graph.edges.filter((edge) => near.has(edge.from) && near.has(edge.to)),
  };
}
