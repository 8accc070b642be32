/** Questions that one asks of a compiled model, answered from the record, with a link each. */

import { grouped, sum } from "./data.js";
import { bytes, count, microseconds, milliseconds, percent, seconds } from "./format.js";
import { format } from "./route.js";

const most = (items, valueOf) => items.reduce((best, item) => (
  valueOf(item) !== null && (best === null || valueOf(item) > valueOf(best)) ? item : best), null);

/** Why a kernel takes its time, as far as the record tells. */
function because(model, time) {
  const kernel = model.kernel.get(time.kernel);
  const reasons = [];
  if (time.bandwidth !== null && time.bandwidth > 0.6) reasons.push("memory is its limit");
  if (time.peak !== null) reasons.push(`it reaches ${percent(time.peak)} of the peak`);
  if (kernel?.spills) reasons.push(`${count(kernel.spills, "spill")} of registers`);
  if (kernel?.vectorBits === 0) reasons.push("it has no vectors");
  if (time.threads === 1) reasons.push("it runs on one thread");
  return reasons.length ? `: ${reasons.join(", ")}` : "";
}

function slowest(model) {
  const time = most([...model.times.values()], (item) => item.us);
  if (!time) return null;
  return [`${time.kernel}, ${microseconds(time.us)} of ${microseconds(model.totalTime)}`
    + because(model, time), format({ kernel: time.kernel })];
}

function waste(model) {
  const time = most([...model.times.values()], (item) => item.wasted);
  if (!time || time.wasted === null) return null;
  return [`${time.kernel}: ${microseconds(time.wasted)} above the machine's limits`, "#time"];
}

function unfused(model) {
  const [pair] = model.fusion;
  if (!pair) return null;
  const graph = model.graphs.find((item) => item.groups.length);
  const group = graph?.groups.find((item) => String(item.id) === pair.producer
    || item.name === pair.producer);
  return [`${count(model.fusion.length, "pair")}; first ${group?.name ?? pair.producer}: `
    + pair.reason, format({ tab: "graph", graph: graph?.name, group: group?.id,
    why: pair.consumer })];
}

function passes(model) {
  const callsOthers = ({ index, depth }) => model.passes[index + 1]?.depth > depth;
  const pass = most(model.passes.filter((item) => item.changed && !callsOthers(item)),
    (item) => item.ms);
  if (!pass) return null;
  const changed = model.passes.filter((item) => item.changed).length;
  return [`${changed} of ${model.passes.length} changed the program; the longest of these was `
    + `${pass.name}, ${milliseconds(pass.ms)}`, format({ tab: "passes", pass: pass.index })];
}

function holders(model) {
  const { buffers } = model.memory;
  const buffer = most(buffers, (item) => item.bytes);
  if (!buffer) return null;
  return [`${bytes(model.memory.arena)} in the arena; the largest buffer is ${buffer.name}, `
    + bytes(buffer.bytes), format({ tab: "memory", buffer: buffers.indexOf(buffer) })];
}

function compile(model) {
  const phase = most(model.phases, (item) => item.seconds);
  if (!phase) return null;
  return [`${phase.name}: ${seconds(phase.seconds)} of `
    + seconds(sum(model.phases.map((item) => item.seconds))), "#time&view=compile"];
}

function weights(model) {
  const rows = model.memory.weights.filter((weight) => weight.kind !== "as given");
  if (!model.memory.weights.length) return null;
  if (!rows.length) return ["none: all are used as they were given", "#memory"];
  const kinds = [...grouped(rows, (row) => row.kind)].map(([kind, items]) =>
    `${items.length} ${kind} (${bytes(sum(items.map((item) => item.bytes)))})`);
  return [kinds.join(", "), "#memory"];
}

function alone(model) {
  if (!model.profile || !(model.profile.threads > 1)) return null;
  const rows = [...model.times.values()].filter((time) => time.threads === 1);
  const share = sum(rows.map((row) => row.us)) / (model.totalTime || 1);
  return [rows.length ? `${count(rows.length, "kernel")}, ${percent(share)} of the time`
    : "no kernel", "#time"];
}

function spills(model) {
  const known = model.kernels.filter((kernel) => kernel.spills !== null);
  if (!known.length) return null;
  const spilled = known.filter((kernel) => kernel.spills > 0);
  const worst = most(spilled, (kernel) => kernel.spills);
  return [worst ? `in ${count(spilled.length, "kernel")}, most in ${worst.name}: ${worst.spills}`
    : `none of ${count(known.length, "kernel")}`, format({ kernel: (worst ?? known[0]).name })];
}

function misses(model) {
  if (!model.cache.length) return null;
  const missed = model.cache.filter((row) => !row.hit);
  return [missed.length ? `${missed.length} of ${model.cache.length}: ${missed[0].reason}`
    : `none of ${model.cache.length}`, "#time&view=compile"];
}

const QUESTIONS = [
  ["Which kernel is slowest, and why?", slowest],
  ["Where is the most time to win?", waste],
  ["What was not fused, and why?", unfused],
  ["What did the passes change?", passes],
  ["How much memory, and who holds it?", holders],
  ["What took the compile time?", compile],
  ["Which weights were copied or packed?", weights],
  ["What runs on one thread?", alone],
  ["Is an inner loop spilled?", spills],
  ["What was not in the cache?", misses],
];

/** Rows [question, answer, address]; answer null where the record does not tell. */
export function answers(model) {
  return QUESTIONS.map(([question, answer]) => [question, ...(answer(model) ?? [null, null])]);
}
