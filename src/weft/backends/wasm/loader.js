const elements = (shape) => shape.reduce((a, b) => a * b, 1);
const bytes = (dtype, shape) => elements(shape) * TYPES[dtype].BYTES_PER_ELEMENT;
const div = (a, b) => Math.floor(a / b), mod = (a, b) => a - b * Math.floor(a / b); //? divisions
const fail = (what, expected, found, Kind = Error) => {
  throw new Kind(`${what}: expected ${expected}, found ${found}`);
};
const shown = (x) => (Object(x) === x ? x.constructor.name : `${x}`);

async function read(name) {
  const from = new URL(name, import.meta.url);
  if (from.protocol === "file:") return (await import("node:fs/promises")).readFile(from);
  const answer = await fetch(from);
  if (!answer.ok) throw new Error(`${from}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

// The lowest place for each tensor that none alive at the same time has. //? planned
function placed(sizes, lives) { //? planned
  const at = []; //? planned
  sizes.forEach((size, i) => { //? planned
    const [first, last] = lives[i]; //? planned
    const near = at.map((begin, j) => [begin, begin + sizes[j], ...lives[j]]) //? planned
      .filter((other) => other[2] <= last && first <= other[3]).sort((a, b) => a[0] - b[0]); //? planned
    at.push(near.reduce((place, [begin, end]) => (begin < place + size && place < end ? end : place), 0)); //? planned
  }); //? planned
  return at; //? planned
} //? planned

function taken(x, row) {
  const { name, dtype, shape } = row, Type = TYPES[dtype];
  if (!shape.length && typeof x !== "object") x = Type.of(x); //? scalars
  if (ArrayBuffer.isView(x)) {
    if (shape.some((n) => typeof n === "string")) fail(name, `{data, shape} of shape (${shape})`, shown(x)); //? symbols
    x = { data: x, shape };
  }
  if (!(x?.data instanceof Type)) fail(name, Type.name, shown(x?.data ?? x), TypeError);
  if (x.shape?.length !== shape.length) fail(name, `the shape (${shape})`, `(${x.shape})`);
  if (x.data.length !== elements(x.shape)) fail(name, `${elements(x.shape)} elements`, x.data.length);
  return { ...row, data: x.data, shape: x.shape };
}

/** Loads the model; files: {wasm, weights}, bytes in the place of the files beside this one. */
export async function load(files = {}) {
  const variant = WebAssembly.validate(RELAXED) ? "-relaxed.wasm" : ".wasm";
  let module = `model${variant}`, pool;
  let isOpen = true; //? threads
  const { start } = await import("./threads.js"); //? threads
  if (!files.wasm) pool = await start(() => read(`model-threads${variant}`), { ...THREADS, wanted: files.threads }); //? threads
  if (pool) module = `model-threads${variant}`; //? threads
  const own = async () => (await WebAssembly.instantiate(files.wasm ?? (await read(module)), { Math })).instance;
  const [{ exports }, raw] = await Promise.all([pool?.instance ?? own(), files.weights ?? read("weights.bin")]);
  const array = (Type, at, length) => new Type(exports.memory.buffer, at, length);
  const take = (size) => exports.aligned_alloc(64n, BigInt(size)) >>> 0 || fail(NAME, `${size} bytes of memory`, "less", RangeError);
  const weights = take(raw.byteLength);
  array(Uint8Array, weights).set(new Uint8Array(raw.buffer ?? raw, raw.byteOffset ?? 0, raw.byteLength));
  const table = array(Uint32Array, weights, TENSORS).map((offset) => weights + offset);
  array(Uint32Array, weights, TENSORS).set(table);
  const kept = [...table.slice(-STATES.length)]; //? states
  const initial = array(Uint8Array, kept[0], weights + raw.byteLength - kept[0]).slice(); //? states
  const explain = () => {
    const at = exports.weft_fault() >>> 0, fault = new DataView(exports.memory.buffer, at);
    const text = array(Uint8Array, fault.getUint32(4, true));
    return new TextDecoder().decode(text.slice(0, text.indexOf(0)))
      .replaceAll("{a}", fault.getBigInt64(8, true)).replaceAll("{b}", fault.getBigInt64(16, true));
  };
  function call(x) {
    const s = sizes(x.map((t) => (t.scalar ? Number(t.data[0]) : t.shape)));
    x.forEach((t, i) => String(t.shape) === String(s.inputs[i]) || fail(t.name, `the shape (${s.inputs[i]})`, `(${t.shape})`));
    for (const [what, wanted, found] of s.same) if (wanted !== found) fail(what, wanted, found); //? casts
    for (const [what, low, high, n] of s.limits) if (n < low || n > high) fail(what, `${low} to ${high}`, n); //? limits
    [s.sizes ?? [], s.outputs, s.results].flat(2).forEach((n) => (Number.isSafeInteger(n) && n >= 0) || fail(NAME, "sizes of 0 or more", n)); //? symbols
    const at = x.map((t) => t.at ?? take(t.data.byteLength));
    const out = s.outputs.map((shape, i) => take(bytes(natives[i], shape)));
    const { arena } = s, places = []; //? fixed
    const sized = s.sizes.map((n) => Math.ceil(Math.max(n, 1) / 64) * 64); //? planned
    const places = placed(sized, LIVES); //? planned
    const arena = Math.max(0, ...places.map((begin, i) => begin + sized[i])); //? planned
    const handles = { arena: take(arena), offsets: take(8 * places.length), constants: weights };
    array(BigInt64Array, handles.offsets, places.length).set(places.map(BigInt)); //? planned
    x.forEach((t, i) => t.data && array(t.data.constructor, at[i], t.data.length).set(t.data));
    const own = at.map((address, i) => (x[i].scalar ? x[i].data[0] : address));
    if (exports[ENTRY](...own, ...out, ...HANDLES.map((name) => handles[name]), ...s.symbols)) throw new Error(explain());
    for (const [i, k] of WRITTEN) x[i].data.set(array(x[i].data.constructor, out[k], x[i].data.length)); //? written
    const results = outputs.map((tensor, k) => {
      const { dtype, from, index = k } = tensor, shape = s.results[k];
      if (from === "value") return { data: BigInt64Array.of(BigInt(s.values[index])), shape, dtype }; //? values
      const begin = (from === "input" ? at : out)[index];
      return { data: array(TYPES[dtype], begin, elements(shape)).slice(), shape, dtype };
    });
    const next = STATES.map(({ size, from, index }) => //? states
      from === "input" ? array(Uint8Array, at[index], size).slice() : array(Uint8Array, out[index], size)); //? states
    next.forEach((value, k) => array(Uint8Array, kept[k], value.length).set(value)); //? states
    return results;
  }
  /** One inference: an argument for each of inputs; gives {data, shape, dtype} for each of outputs. */
  function run(...given) {
    if (given.length !== inputs.length) fail(NAME, `${inputs.length} inputs (${inputs.map((t) => t.name)})`, given.length);
    if (!isOpen) fail(NAME, "an open model", "a closed one"); //? threads
    exports.memory.grow(0); //? threads
    const x = given.map((item, i) => taken(item, inputs[i])), start = take(0);
    STATES.forEach(({ input, name, shape }, k) => x.splice(input, 0, { name, shape, at: kept[k] })); //? states
    try {
      return call(x);
    } finally {
      exports.weft_close?.(); //? threads
      exports.free(start);
    }
  }
  return {
    threads: pool?.count ?? 1, //? threads
    close() { isOpen = false; pool?.workers.forEach((worker) => worker.terminate()); }, //? threads
    reset: () => array(Uint8Array, kept[0], initial.length).set(initial), //? states
    run, inputs, outputs, module, get memoryBytes() { return exports.memory.buffer.byteLength; },
  };
}
