// One thread of a model: it has an instance of the module, and runs parts of loops for ever.
async function serve(port, { code, memory, stack }) {
  const { exports } = await WebAssembly.instantiate(code, { Math, weft: { memory, stack } });
  exports.weft_enter();
  port.postMessage("ready");
  try {
    exports.weft_serve();
  } catch {
    exports.weft_leave();
  }
}

if (globalThis.postMessage) onmessage = ({ data }) => serve(globalThis, data);
else {
  const { parentPort } = await import("node:worker_threads");
  parentPort.once("message", (data) => serve(parentPort, data));
}
