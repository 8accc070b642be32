/** The record of a compile: decoded from the page, checked once, with its indexes. */

const list = (value) => (Array.isArray(value) ? value.filter((item) => item !== null) : []);
const text = (value, otherwise = "") => (value === null || value === undefined
  ? otherwise : String(value));
const real = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const record = (value) => (value && typeof value === "object" ? value : {});

/** The object that stands in the page: base64 of gzip of JSON. */
export async function decode(base64) {
  const packed = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function graphOf(raw) {
  const nodes = list(raw.nodes).map((node) => ({
    id: node.id, label: text(node.label, "?"), op: text(node.op), type: text(node.type),
    kind: text(node.kind, "call"), group: node.group ?? null, constants: real(node.constants) ?? 0,
  }));
  const known = new Set(nodes.map((node) => node.id));
  const edges = list(raw.edges)
    .filter((edge) => Array.isArray(edge) && known.has(edge[0]) && known.has(edge[1]))
    .map(([from, to, type]) => ({ from, to, type: text(type) }));
  const groups = list(raw.groups).map((group) => ({
    id: group.id, name: text(group.name, String(group.id)),
    kernel: group.kernel === null || group.kernel === undefined ? null : String(group.kernel),
  }));
  const groupIds = new Set(groups.map((group) => group.id));
  for (const node of nodes) if (!groupIds.has(node.group)) node.group = null;
  return { name: text(raw.name, "graph"), after: real(raw.after), nodes, edges, groups };
}

function scheduleOf(raw) {
  return {
    rule: raw.rule ?? null, start: raw.start ?? null,
    refused: list(raw.refused).map((row) => ({ rule: text(row.rule), reason: text(row.reason) })),
    steps: list(raw.steps).map((step) => ({ text: text(step.text), script: step.script ?? null })),
  };
}

function kernelOf(raw) {
  return {
    name: text(raw.name, "?"),
    scheduled: raw.scheduled ?? null, lowered: raw.lowered ?? null,
    llvm_before: raw.llvm_before ?? null, llvm: raw.llvm ?? null, assembly: raw.assembly ?? null,
    links: list(raw.links).filter(Array.isArray),
    loops: list(raw.loops).map((loop) => ({
      var: text(loop.var), extent: text(loop.extent), trip: real(loop.trip),
      kind: text(loop.kind, "serial"), depth: real(loop.depth) ?? 0, line: real(loop.line) ?? 0,
      bytes: real(loop.bytes), flops: real(loop.flops),
    })),
    vectorBits: real(raw.vector_bits), registers: real(raw.registers), spills: real(raw.spills),
    weights: list(raw.weights).map((row) => ({
      parameter: text(row.parameter, "?"), weight: text(row.weight, "?"), kind: text(row.kind),
    })),
    schedule: scheduleOf(record(raw.schedule)),
  };
}

function memoryOf(raw) {
  return {
    arena: real(raw.arena_bytes) ?? 0, bound: real(raw.live_bound_bytes),
    steps: list(raw.steps).map(String),
    buffers: list(raw.buffers).map((buffer) => ({
      name: text(buffer.name, "?"), bytes: real(buffer.bytes) ?? 0,
      offset: real(buffer.offset) ?? 0, first: real(buffer.first) ?? 0,
      last: Math.max(real(buffer.last) ?? 0, real(buffer.first) ?? 0),
      producer: text(buffer.producer), users: list(buffer.users).map(String),
    })),
    weights: list(raw.weights).map((weight) => ({
      name: text(weight.name, "?"), bytes: real(weight.bytes) ?? 0,
      kind: text(weight.kind, "as given"), kernel: weight.kernel ?? null,
    })),
  };
}

function callOf(raw, position) {
  return {
    kernel: text(raw.kernel, "?"), index: real(raw.index) ?? position, us: real(raw.us) ?? 0,
    gflop: real(raw.gflop), bytes: real(raw.bytes), peak: real(raw.share_of_peak),
    bandwidth: real(raw.share_of_bandwidth), wasted: real(raw.wasted_us),
    threads: real(raw.threads),
  };
}

function profileOf(raw) {
  if (!raw || typeof raw !== "object") return null;
  return {
    threads: real(raw.threads), runs: real(raw.runs), peak: real(raw.peak_gflops),
    bandwidth: real(raw.bandwidth_gbs), calls: list(raw.calls).map(callOf),
    activity: Array.isArray(raw.activity)
      ? list(raw.activity).map((span) => ({
        thread: real(span.thread) ?? 0, kernel: text(span.kernel, "?"),
        begin: real(span.begin_us) ?? 0, end: real(span.end_us) ?? 0,
      })) : null,
  };
}

const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
const sumOrNull = (values) => (values.every((value) => value === null) ? null : sum(values));

/** What one kernel took in one run of the model: its calls added up. */
function totals(calls) {
  const us = sum(calls.map((call) => call.us));
  const weighted = (key) => {
    const measured = calls.filter((call) => call[key] !== null);
    const time = sum(measured.map((call) => call.us));
    return measured.length && time > 0
      ? sum(measured.map((call) => call[key] * call.us)) / time : null;
  };
  return {
    kernel: calls[0].kernel, calls: calls.length, us,
    gflop: sumOrNull(calls.map((call) => call.gflop)),
    bytes: sumOrNull(calls.map((call) => call.bytes)),
    peak: weighted("peak"), bandwidth: weighted("bandwidth"),
    wasted: sumOrNull(calls.map((call) => call.wasted)),
    threads: Math.max(...calls.map((call) => call.threads ?? 0)) || null,
  };
}

function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** The functions by name of a state, with their texts; none for a state that was not recorded. */
function functionsOf(states, index) {
  const state = index === null ? undefined : states[index];
  return new Map(Object.entries(record(state && state.functions)));
}

/** The checked record: every list is a list, every value that is missing is null. */
export function modelOf(given) {
  const raw = record(given);
  const summary = record(raw.summary);
  const texts = new Map(Object.entries(record(raw.texts)));
  const states = list(raw.states);
  const profile = profileOf(raw.profile);
  const times = new Map();
  for (const [name, calls] of grouped(profile ? profile.calls : [], (call) => call.kernel)) {
    times.set(name, totals(calls));
  }
  const kernels = list(raw.kernels).map(kernelOf);
  const compile = record(raw.compile);
  return {
    title: text(raw.title, "model"), target: text(raw.target), created: text(raw.created),
    summary: {
      weights: real(summary.weight_bytes), arena: real(summary.arena_bytes),
      compile: real(summary.compile_seconds), call: real(summary.call_us),
    },
    text: (hash) => (hash === null || hash === undefined ? null : texts.get(String(hash)) ?? null),
    functions: (index) => functionsOf(states, index),
    passes: list(raw.passes).map((pass, index) => ({
      index, name: text(pass.name, "?"), phase: text(pass.phase, "graph"),
      depth: real(pass.depth) ?? 0, ms: real(pass.ms), before: real(pass.before),
      after: real(pass.after), changed: pass.before !== pass.after,
    })),
    graphs: list(raw.graphs).map(graphOf),
    fusion: list(raw.fusion).map((pair) => ({
      producer: text(pair.producer), consumer: text(pair.consumer), reason: text(pair.reason),
    })),
    kernels, kernel: new Map(kernels.map((kernel) => [kernel.name, kernel])),
    memory: memoryOf(record(raw.memory)), profile,
    times, totalTime: sum([...times.values()].map((time) => time.us)),
    phases: list(compile.phases).map((phase) => ({
      name: text(phase.name, "?"), seconds: real(phase.seconds) ?? 0,
    })),
    cache: list(compile.cache).map((row) => ({
      kernel: text(row.kernel, "?"), hit: Boolean(row.hit), reason: text(row.reason),
    })),
    report: list(raw.report).map((row) => ({
      topic: text(row.topic, "other"), text: text(row.text), kernel: row.kernel ?? null,
    })),
  };
}

export { grouped, sum };
