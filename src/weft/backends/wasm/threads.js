// The threads of a model: workers that run parts of its loops, each an instance on one shared memory.
const isNode = typeof process === "object" && !globalThis.window;

/** Whether threads may share memory: in a browser, where the page is isolated. */
const canShare = () => globalThis.SharedArrayBuffer && (globalThis.crossOriginIsolated ?? isNode);

/** Starts a worker; resolves once it has an instance of the module. */
async function started(workers, message) {
  const { Worker } = isNode ? await import("node:worker_threads") : globalThis;
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  workers.push(worker);
  worker.unref?.(); // node may end while it waits for loops
  await new Promise((resolve, reject) => {
    if (isNode) worker.once("message", resolve).once("error", reject);
    else Object.assign(worker, { onmessage: resolve, onerror: reject });
    worker.postMessage(message);
  });
}

/**
 * The first instance of a module and the workers of the others; null where there is one thread.
 * read gives the module's bytes. Its memory has so many pages at first, with stacks of so many bytes
 * for at most so many threads; wanted is their number, by default that of the processors.
 */
export async function start(read, { wanted, most, pages, stack }) {
  const count = Math.min(most, wanted ?? globalThis.navigator?.hardwareConcurrency ?? most);
  const workers = [];
  if (!(count > 1 && canShare())) return null;
  try {
    const memory = new WebAssembly.Memory({ initial: pages, maximum: 65536, shared: true });
    const code = await WebAssembly.compile(await read());
    // Every instance writes the data into the memory, so the model waits for all of them.
    const instance = await WebAssembly.instantiate(code, { Math, weft: { memory, stack } });
    const others = Array.from({ length: count - 1 }, (_, i) => ({ code, memory, stack: stack * (i + 2) }));
    await Promise.all(others.map((message) => started(workers, message)));
    return { instance, workers, count };
  } catch {
    workers.forEach((worker) => worker.terminate());
    return null;
  }
}
