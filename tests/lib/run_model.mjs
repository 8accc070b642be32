// Runs the calls in calls.json on the model in the folder that the first argument names. Outputs go
// to files; what they are is printed. What the model throws is printed, with the exit code 9.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, int8: Int8Array,
  uint8: Uint8Array, bool: Uint8Array, int16: Int16Array, uint16: Uint16Array, float16: Uint16Array,
  uint32: Uint32Array, uint64: BigUint64Array,
};
const array = ({ file, dtype, shape }) => {
  const bytes = readFileSync(join(folder, file));
  const own = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return { data: new ARRAYS[dtype](own), shape };
};
try {
  const { load } = await import(pathToFileURL(join(folder, "model.js")));
  const model = await load();
  const results = JSON.parse(readFileSync(join(folder, "calls.json"))).map((inputs, call) =>
    model.run(...inputs.map(array)).map(({ data, shape, dtype }, index) => {
      const file = `out_${call}_${index}.bin`;
      writeFileSync(join(folder, file), new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      return { file, shape, dtype };
    }));
  console.log(JSON.stringify({ module: model.module, memoryBytes: model.memoryBytes, results }));
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
  process.exit(9);
}
