/**
 * Builds bundle.js and bundle.css of source/, with the licences of what went in and the hashes of
 * all of it: `npm ci --ignore-scripts && npm run build`. tests/viz/test_page.py compares them.
 */

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const LARGEST = 1_000_000; // bytes of bundle.js and bundle.css together

const sha256 = (path) => createHash("sha256").update(readFileSync(join(here, path))).digest("hex");

async function bundled() {
  const result = await build({
    absWorkingDir: here, bundle: true, minify: true, metafile: true, legalComments: "none",
    entryPoints: { bundle: "source/main.js", style: "source/style.css" },
    outdir: here, entryNames: "[name]", format: "iife", target: ["es2022"], charset: "utf8",
    platform: "browser", external: ["node:*"], logLevel: "warning", write: false,
  });
  for (const file of result.outputFiles) {
    const name = file.path.endsWith(".css") ? "bundle.css" : "bundle.js";
    writeFileSync(join(here, name), file.contents);
  }
  return result.metafile;
}

/** The packages of which code went in, in alphabetical order. */
function packagesOf(metafile) {
  const outputs = Object.values(metafile.outputs);
  const names = outputs.flatMap((output) => Object.entries(output.inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]));
  return [...new Set(names.filter(Boolean))].sort();
}

function licenceOf(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version} (${license})\n${"-".repeat(78)}\n${text}\n`;
}

const metafile = await bundled();
const packages = packagesOf(metafile);
const native = readFileSync(join(here, "licences-of-graphviz.txt"), "utf8").trim();
writeFileSync(join(here, "bundle.licences.txt"),
  `bundle.js holds parts of these works.\n\n${packages.map(licenceOf).join("\n")}\n${native}\n`);

const sources = ["build.mjs", "package.json", "package-lock.json", "licences-of-graphviz.txt",
  ...readdirSync(join(here, "source")).sort().map((name) => `source/${name}`)];
const outputs = ["bundle.js", "bundle.css", "bundle.licences.txt"];
const hashes = Object.fromEntries([...sources, ...outputs].map((path) => [path, sha256(path)]));
writeFileSync(join(here, "bundle.sha256.json"), `${JSON.stringify(hashes, null, 1)}\n`);

const size = outputs.slice(0, 2)
  .reduce((sum, path) => sum + readFileSync(join(here, path)).length, 0);
console.log(`${size} bytes of ${packages.join(", ")} and ${sources.length - 4} sources`);
if (size > LARGEST) throw new Error(`the bundle has ${size} bytes; at most ${LARGEST} are wanted`);
