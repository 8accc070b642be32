/** What of a recorded graph is drawn: groups as boxes, or each as one node while it is closed. */

import { count, microseconds } from "./format.js";
import { sized, titled } from "./draw_graph.js";

/** From this many groups on, groups begin closed. */
export const MANY_GROUPS = 100;

/** Ids in drawings: a closed group is a node, and must not meet a node's own id. */
export const closedId = (group) => `group ${group.id}`;

/** Answers the reason why the groups of two nodes were not fused, by the pairs of the record. */
export function refusals(model, graph) {
  const names = new Map(graph.groups.flatMap((group) => [
    [String(group.id), group.id], [group.name, group.id],
  ]));
  const reasons = new Map();
  for (const pair of model.fusion) {
    const [from, to] = [names.get(pair.producer), names.get(pair.consumer)];
    if (from !== undefined && to !== undefined) reasons.set(`${from} ${to}`, pair.reason);
  }
  return (from, to) => (from === null || to === null ? null : reasons.get(`${from} ${to}`) ?? null);
}

/** What a node is called: its operator, or the function that it calls. */
export function nameOf(node) {
  const operator = node.op.replace(/^relax\.(?:op\.)?/, "");
  return !operator || operator.startsWith("call_") ? node.label || operator : operator;
}

function nodeLines(node) {
  const lines = [nameOf(node)];
  if (node.label && node.label !== lines[0]) lines.push(node.label);
  if (node.constants) lines.push(count(node.constants, "weight"));
  return lines;
}

function heats(model, groups) {
  const times = groups.map((group) => model.times.get(group.kernel)?.us ?? 0);
  const most = Math.max(...times, 0);
  return new Map(groups.map((group, index) => [group.id, most ? times[index] / most : 0]));
}

function closedNode(model, group, members, heat) {
  const time = model.times.get(group.kernel);
  const lines = [group.name, [count(members, "operator"), time ? microseconds(time.us) : ""]
    .filter(Boolean).join(" · ")];
  return sized({
    id: closedId(group), group: group.id, cluster: null, closed: true, lines, heat,
    title: `${group.name}: click to open`, class: "call closed",
  });
}

/** A group of one operator is one box, not a box in a box. */
function aloneNode(model, node, group, heat) {
  const time = model.times.get(group.kernel);
  const name = nameOf(node);
  const about = [name === group.name ? "" : name,
    node.constants ? count(node.constants, "weight") : "", time ? microseconds(time.us) : ""];
  return sized({
    id: node.id, group: group.id, cluster: null, heat, class: `${node.kind} alone`,
    lines: [group.name, about.filter(Boolean).join(" · ")].filter(Boolean),
    title: [node.label, node.op, node.type].filter(Boolean).join("\n"),
  });
}

function openCluster(model, group, heat) {
  const time = model.times.get(group.kernel);
  return titled({
    id: group.id, title: group.name, note: time ? microseconds(time.us) : "", heat,
    class: time ? "measured" : "",
  });
}

function joined(edges, placeOf, groupOf, refused) {
  const kept = new Map();
  for (const edge of edges) {
    const [from, to] = [placeOf(edge.from), placeOf(edge.to)];
    const key = `${from} ${to}`;
    if (from === to || kept.has(key)) continue;
    const [producer, consumer] = [groupOf.get(edge.from), groupOf.get(edge.to)];
    const refusal = producer === consumer ? null : refused(producer, consumer);
    kept.set(key, { from, to, type: edge.type, refusal, producer, consumer });
  }
  return [...kept.values()];
}

/** The drawing of `graph` in which the groups of the set `closed` are one node each. */
export function viewOf(model, graph, closed) {
  const heat = heats(model, graph.groups);
  const members = new Map(graph.groups.map((group) => [group.id, 0]));
  const groupOf = new Map();
  for (const node of graph.nodes) {
    groupOf.set(node.id, node.group);
    if (node.group !== null) members.set(node.group, members.get(node.group) + 1);
  }
  const byId = new Map(graph.groups.map((group) => [group.id, group]));
  const isAlone = (id) => members.get(id) === 1;
  const isClosed = (id) => id !== null && closed.has(id) && members.get(id) > 1;
  const shownAs = (id) => {
    const group = groupOf.get(id);
    return isClosed(group) ? closedId(byId.get(group)) : id;
  };
  const nodes = graph.nodes.filter((node) => !isClosed(node.group))
    .map((node) => (isAlone(node.group)
      ? aloneNode(model, node, byId.get(node.group), heat.get(node.group)) : sized({
        id: node.id, cluster: node.group, lines: nodeLines(node), class: node.kind,
        title: [node.label, node.op, node.type].filter(Boolean).join("\n"),
      })));
  for (const group of graph.groups.filter(({ id }) => isClosed(id))) {
    nodes.push(closedNode(model, group, members.get(group.id), heat.get(group.id)));
  }
  const open = graph.groups.filter(({ id }) => members.get(id) > 1 && !isClosed(id));
  return {
    nodes, clusters: open.map((group) => openCluster(model, group, heat.get(group.id))),
    edges: joined(graph.edges, shownAs, groupOf, refusals(model, graph)),
  };
}
