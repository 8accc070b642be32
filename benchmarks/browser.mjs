// measured(...) on a page of benchmarks/browser.py: times the model in ./weft-N/ on N threads and, where
// ./ort/ has onnxruntime-web, that on ./model.onnx, in turns.
const TURN = 100, SAMPLE = 1; // milliseconds of a turn, and of the calls that are timed together at least

async function weft(threads, data, shape) {
  const { load } = await import(`./weft-${threads}/model.js`);
  const model = await load({ threads });
  const call = async () => model.run({ data, shape })[0].data;
  return { call, threads: model.threads ?? 1, module: model.module };
}

async function peer(threads, data, shape) {
  const ort = await import("./ort/ort.wasm.bundle.min.mjs");
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "fatal";
  const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
  const session = await ort.InferenceSession.create("./model.onnx", options);
  const inputs = { [session.inputNames[0]]: new ort.Tensor("float32", data, shape) };
  const call = async () => Object.values(await session.run(inputs))[0].data;
  return { call, threads: ort.env.wasm.numThreads };
}

/** Milliseconds of a call in a turn: a number for each sample of calls. */
async function turn(engine) {
  const times = [], end = performance.now() + TURN;
  do {
    const begin = performance.now();
    let calls = 0, now;
    do {
      engine.result = await engine.call();
      calls += 1;
    } while ((now = performance.now()) < begin + SAMPLE);
    times.push((now - begin) / calls);
  } while (performance.now() < end);
  return times;
}

export async function measured({ shape, rounds, threads, hasPeer }) {
  const size = shape.reduce((a, b) => a * b, 1);
  const data = Float32Array.from({ length: size }, (_, i) => Math.sin(i * 1.7) / 2);
  const engines = { weft: await weft(threads, data, shape) };
  if (hasPeer) engines.peer = await peer(threads, data, shape);
  const times = { weft: [], peer: [] };
  for (let round = -2; round < rounds; round++)
    for (const [name, engine] of Object.entries(engines)) {
      const own = await turn(engine);
      if (round >= 0) times[name].push(...own);
    }
  const [first, second] = Object.values(engines).map((engine) => engine.result);
  const apart = second ? first.reduce((most, x, i) => Math.max(most, Math.abs(x - second[i])), 0) : null;
  const counts = Object.values(engines).map((engine) => engine.threads);
  return { ...times, apart, threads: counts, module: engines.weft.module, isolated: crossOriginIsolated };
}
