/** Places for a graph's nodes, computed by graphviz (in WebAssembly); nothing is drawn here. */

import { Graphviz } from "@hpcc-js/wasm-graphviz";

const POINTS = 72; // an inch of graphviz; one point is one pixel here
const ROW_WIDTH = 700; // pixels
const GAP = 20;
const MANY = 600; // nodes from which on straight edges and fewer rounds keep the page quick

let loading = null;

/** The layout engine, loaded at first use. */
export function engine() {
  loading ??= Graphviz.load();
  return loading;
}

const inches = (pixels) => (pixels / POINTS).toFixed(3);

function room(width, height) {
  return `<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="${Math.round(width)}" `
    + `HEIGHT="${Math.round(height)}"><TR><TD></TD></TR></TABLE>>`;
}

/** The graph in graphviz' language; all names are numbers, so nothing needs quotes. */
function dot(graph) {
  const quick = graph.nodes.length > MANY ? ' splines=line nslimit=1 mclimit=0.3' : "";
  const out = [
    `digraph { graph [rankdir=TB nodesep=0.28 ranksep=0.36 compound=true${quick}]`,
    'node [shape=box fixedsize=true label=""] edge [dir=none]',
  ];
  const index = new Map(graph.nodes.map((node, position) => [node.id, position]));
  const node = (item) => `n${index.get(item.id)} [width=${inches(item.width)} `
    + `height=${inches(item.height)}]`;
  const inside = new Map(graph.clusters.map((cluster) => [cluster.id, []]));
  const outside = [];
  for (const item of graph.nodes) (inside.get(item.cluster) ?? outside).push(item);
  graph.clusters.forEach((cluster, position) => {
    const members = inside.get(cluster.id);
    if (!members.length) return;
    out.push(`subgraph cluster_${position} { margin=15 labeljust=l `
      + `label=${room(cluster.width, cluster.height)}`, ...members.map(node), "}");
  });
  out.push(...outside.map(node));
  graph.edges.forEach((edge, position) => {
    out.push(`n${index.get(edge.from)} -> n${index.get(edge.to)} [id=e${position}]`);
  });
  out.push("}");
  return out.join("\n");
}

const numbers = (text) => text.split(/[\s,]+/).map(Number);

function placed(result, graph) {
  const [, , width, height] = numbers(result.bb ?? "0,0,0,0");
  const flip = (y) => height - y;
  const nodes = new Map();
  const clusters = new Map();
  for (const object of result.objects ?? []) {
    const position = Number(object.name.replace(/\D+/g, ""));
    if (object.name.startsWith("cluster")) {
      const [left, low, right, high] = numbers(object.bb);
      clusters.set(graph.clusters[position].id, {
        x: left, y: flip(high), width: right - left, height: high - low,
      });
    } else {
      const [x, y] = numbers(object.pos);
      nodes.set(graph.nodes[position].id, { x, y: flip(y) });
    }
  }
  const edges = (result.edges ?? []).map((edge) => {
    const points = (edge.pos ?? "").split(" ").filter((pair) => /^-?[\d.]/.test(pair))
      .map(numbers).map(([x, y]) => [x, flip(y)]);
    return { edge: graph.edges[Number(edge.id.slice(1))], points };
  });
  return { width, height, nodes, clusters, edges };
}

/** Nodes without any edge in rows below the others: side by side they would be all one sees. */
function below(places, loose) {
  const widest = Math.max(places.width, ROW_WIDTH);
  const nodes = new Map(places.nodes);
  let [x, y] = [0, places.height + (places.height ? 2 * GAP : 0)];
  let [width, row] = [places.width, 0];
  for (const node of loose) {
    if (x > 0 && x + node.width > widest) {
      [x, y, row] = [0, y + row + GAP, 0];
    }
    nodes.set(node.id, { x: x + node.width / 2, y: y + node.height / 2 });
    x += node.width + GAP;
    row = Math.max(row, node.height);
    width = Math.max(width, x - GAP);
  }
  return { ...places, nodes, width, height: loose.length ? y + row : places.height };
}

/**
 * Places for `graph`: nodes {id, width, height, cluster}, clusters {id, width, height of the
 * title}, edges {from, to}. The answer has a centre for each node, a rectangle for each cluster
 * and the points of a Bézier curve for each edge.
 */
export async function layout(graph) {
  const graphviz = await engine();
  const tied = new Set(graph.edges.flatMap((edge) => [edge.from, edge.to]));
  const isLoose = (node) => node.cluster === null && !tied.has(node.id);
  const main = { ...graph, nodes: graph.nodes.filter((node) => !isLoose(node)) };
  const places = main.nodes.length
    ? placed(JSON.parse(graphviz.layout(dot(main), "json0", "dot")), main)
    : { width: 0, height: 0, nodes: new Map(), clusters: new Map(), edges: [] };
  return below(places, graph.nodes.filter(isLoose));
}
