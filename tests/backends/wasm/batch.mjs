// Runs every function of a batch on the memory in before.bin, and writes that memory to after.bin.
// Printed: the number and name of each function, then its fault or "done", as batch.c does.
import { readFileSync, writeFileSync } from "node:fs";

const rows = JSON.parse(readFileSync("rows.json"));
const { exports } = (await WebAssembly.instantiate(readFileSync("batch.wasm"), { Math })).instance;
const before = readFileSync("before.bin");
const base = exports.aligned_alloc(64n, BigInt(before.byteLength)) >>> 0;
new Uint8Array(exports.memory.buffer, base, before.byteLength).set(before);
const text = () => {
  const at = exports.weft_fault() >>> 0, view = new DataView(exports.memory.buffer);
  const begin = view.getUint32(at + 4, true), all = new Uint8Array(exports.memory.buffer);
  return `${view.getInt32(at, true)} ${new TextDecoder().decode(all.subarray(begin, all.indexOf(0, begin)))}`;
};
rows.forEach(([symbol, name, places], number) => {
  let said = "done";
  try {
    if (exports[symbol](...places.map((at) => base + at))) said = `fault ${text()}`;
  } catch (error) {
    said = `trap ${error.message}`;
  }
  console.log(`${number} ${name} ${said}`);
});
writeFileSync("after.bin", new Uint8Array(exports.memory.buffer, base, before.byteLength));
