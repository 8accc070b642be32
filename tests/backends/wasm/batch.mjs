// Runs every function of a batch on the memory in before.bin, and writes that memory to after.bin.
// Printed: the number and name of each function, then its fault or "done", as batch.c does.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const rows = JSON.parse(readFileSync("rows.json"));
const [threads, pages, stack] = process.argv.slice(2).map(Number);
const shared = async () => (await import(pathToFileURL("threads.js"))).start(() => code, { wanted: threads, most: threads, pages, stack });
const code = readFileSync("batch.wasm");
const { exports } = (threads > 1 ? await shared() : await WebAssembly.instantiate(code, { Math })).instance;
const before = readFileSync("before.bin");
const base = exports.aligned_alloc(64n, BigInt(before.byteLength)) >>> 0;
new Uint8Array(exports.memory.buffer, base, before.byteLength).set(before);
const text = () => {
  const at = exports.weft_fault() >>> 0, view = new DataView(exports.memory.buffer);
  const begin = view.getUint32(at + 4, true), all = new Uint8Array(exports.memory.buffer);
  return `${view.getInt32(at, true)} ${new TextDecoder().decode(all.slice(begin, all.indexOf(0, begin)))}`;
};
rows.forEach(([symbol, name, places], number) => {
  let said = "done";
  try {
    if (exports[symbol](...places.map((at) => base + at))) said = `fault ${text()}`;
  } catch (error) {
    said = `trap ${error.message}`;
    exports.weft_close?.();
  }
  console.log(`${number} ${name} ${said}`);
});
writeFileSync("after.bin", new Uint8Array(exports.memory.buffer, base, before.byteLength));
