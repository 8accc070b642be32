/** Numbers as text. Every function takes null, which reads "–". */

const NONE = "–";

function digits(value) {
  if (value === 0) return "0";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value, units) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  const [factor, unit] = units.find(([least]) => size >= least) ?? units[units.length - 1];
  return `${value < 0 ? "−" : ""}${digits(size / factor)} ${unit}`;
}

/** Microseconds. */
export const microseconds = (value) =>
  (value === 0 ? "0 µs" : scaled(value, [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]));

/** Seconds. */
export const seconds = (value) =>
  microseconds(value === null || value === undefined ? null : value * 1e6);

/** Milliseconds. */
export const milliseconds = (value) =>
  microseconds(value === null || value === undefined ? null : value * 1e3);

/** Bytes, by powers of 1,000. */
export function bytes(value) {
  if (value !== null && value !== undefined && Math.abs(value) < 1e3) return `${value} B`;
  return scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]);
}

/** Floating-point operations. */
export function flops(value) {
  if (value !== null && value !== undefined && Math.abs(value) < 1e3) return `${value} FLOP`;
  return scaled(value, [[1e9, "GFLOP"], [1e6, "MFLOP"], [1e3, "kFLOP"]]);
}

/** A share from 0 to 1 as per cent. */
export function percent(value) {
  if (value === null || value === undefined) return NONE;
  return `${digits(value * 100)} %`;
}

/** A plain number. */
export function number(value, unit = "") {
  if (value === null || value === undefined) return NONE;
  const text = Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
  return unit ? `${text} ${unit}` : text;
}

/** A number in a few letters: 12,544 as "12.5k". */
export function compact(value) {
  if (value === null || value === undefined) return NONE;
  if (Math.abs(value) < 1e4) return value.toLocaleString("en");
  return scaled(value, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]).replace(" ", "");
}

/** `count(1, "kernel")`, `count(2, "kernel")`. */
export const count = (value, noun) =>
  `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

/** The text cut at `length` characters, its end kept: kernels differ in their last letters. */
export function shorten(text, length) {
  if (text.length <= length) return text;
  const end = Math.floor(length / 3);
  return `${text.slice(0, length - end - 1)}…${text.slice(-end)}`;
}

/** "float32[1, 64, 56]" as "1×64×56"; another type than float32 is named, of a tuple the first. */
export function shape(type) {
  const tuple = /^\((\w*\[[^\]]*\]),\s*(.*)\)$/.exec(type);
  if (tuple) {
    const others = tuple[2].split("[").length - 1;
    return `(${shape(tuple[1])}${others ? `, ${others} more` : ""})`;
  }
  const match = /^(\w*)\[(.*)\]$/.exec(type);
  if (!match) return type;
  const [, dtype, sizes] = match;
  const text = sizes.split(",").map((size) => size.trim()).join("×") || "scalar";
  return dtype === "float32" ? text : `${dtype} ${text}`;
}
