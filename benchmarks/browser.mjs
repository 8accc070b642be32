// node browser.mjs FOLDER PACKAGES SHAPE ROUNDS: times the model in FOLDER/weft and onnxruntime-web on
// FOLDER/model.onnx in turns, on one thread; the figures go to FOLDER/figures.json.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, packages, extents, rounds] = process.argv.slice(2);
const shape = extents.split(",").map(Number), size = shape.reduce((a, b) => a * b, 1);
const dist = join(packages, "node_modules", "onnxruntime-web", "dist");
const script = join(dist, "ort.wasm.bundle.min.mjs");
const ort = await import(pathToFileURL(script));
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";
const { load } = await import(pathToFileURL(join(folder, "weft", "model.js")));
const model = await load();
const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(join(folder, "model.onnx"))), {
  executionProviders: ["wasm"], graphOptimizationLevel: "all",
});
const data = Float32Array.from({ length: size }, (_, i) => Math.sin(i * 1.7) / 2);
const tensor = new ort.Tensor("float32", data, shape);
const engines = {
  weft: async () => model.run({ data, shape })[0].data,
  peer: async () => Object.values(await session.run({ [session.inputNames[0]]: tensor }))[0].data,
};
const times = { weft: [], peer: [] }, results = {};
for (let round = -2; round < Number(rounds); round++)
  for (const [name, call] of Object.entries(engines)) {
    const end = performance.now() + 100;
    do {
      const begin = performance.now();
      results[name] = await call();
      if (round >= 0) times[name].push(performance.now() - begin);
    } while (performance.now() < end);
  }
let apart = 0;
results.weft.forEach((value, i) => (apart = Math.max(apart, Math.abs(value - results.peer[i]))));
const bytes = (...files) => files.reduce((sum, file) => sum + statSync(file).size, 0);
writeFileSync(join(folder, "figures.json"), JSON.stringify({
  ...times, apart, module: model.module,
  weftBytes: bytes(join(folder, "weft", model.module), join(folder, "weft", "model.js")),
  peerBytes: bytes(script, join(dist, "ort-wasm-simd-threaded.wasm")),
}));
process.exit(0);
