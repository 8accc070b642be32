/** What differs between two texts, line by line; runs of equal lines folded. */

import { diffArrays, diffLines } from "diff";

const TIME = 1500; // milliseconds: a rewritten text of 10,000 lines is not worth more
const CONTEXT = 3;

function lines(text) {
  const all = text.split("\n");
  if (all[all.length - 1] === "") all.pop();
  return all;
}

/** All but the common beginning and end differs: what is said when comparing takes too long. */
function roughly(before, after) {
  const [a, b] = [lines(before), lines(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head
    && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const part = (from, to, all, mark) => ({ ...mark, value: all.slice(from, to).join("\n") });
  return [
    part(0, head, a, {}), part(head, a.length - tail, a, { removed: true }),
    part(head, b.length - tail, b, { added: true }), part(a.length - tail, a.length, a, {}),
  ].filter((piece) => piece.value !== "");
}

/** Lines {kind: " " | "+" | "-", text, before, after}: numbers from 1, 0 on the other side. */
export function compare(before, after) {
  const parts = before === after
    ? [{ value: before }]
    : diffLines(before, after, { timeout: TIME }) ?? roughly(before, after);
  const result = [];
  let [a, b] = [0, 0];
  for (const part of parts) {
    const kind = part.added ? "+" : part.removed ? "-" : " ";
    for (const text of lines(part.value)) {
      if (kind !== "+") a += 1;
      if (kind !== "-") b += 1;
      result.push({ kind, text, before: kind === "+" ? 0 : a, after: kind === "-" ? 0 : b });
    }
  }
  return result;
}

/** How many lines came and went. */
export function counts(compared) {
  return {
    added: compared.filter((line) => line.kind === "+").length,
    removed: compared.filter((line) => line.kind === "-").length,
  };
}

/** The lines with runs of equal ones, far from any change, as {fold, from, to}. */
export function folded(compared) {
  const near = new Uint8Array(compared.length);
  compared.forEach((line, index) => {
    if (line.kind === " ") return;
    const end = Math.min(compared.length - 1, index + CONTEXT);
    for (let at = Math.max(0, index - CONTEXT); at <= end; at += 1) near[at] = 1;
  });
  const result = [];
  for (let at = 0; at < compared.length;) {
    if (near[at]) {
      result.push(compared[at]);
      at += 1;
      continue;
    }
    let end = at;
    while (end < compared.length && !near[end]) end += 1;
    if (end - at < 2 * CONTEXT) result.push(...compared.slice(at, end));
    else result.push({ fold: end - at, from: at, to: end });
    at = end;
  }
  return result;
}

/** The part of two lines in which they differ: [start, end of the first, end of the second]. */
export function changedPart(first, second) {
  const length = Math.min(first.length, second.length);
  let start = 0;
  while (start < length && first[start] === second[start]) start += 1;
  const fromEnd = (text, place) => text[text.length - 1 - place];
  let tail = 0;
  while (tail < length - start && fromEnd(first, tail) === fromEnd(second, tail)) tail += 1;
  return [start, first.length - tail, second.length - tail];
}

/** Which items of two sequences stayed: parts {added?, removed?, value: items}. */
export function compareItems(before, after, isEqual) {
  return diffArrays(before, after, { comparator: isEqual, timeout: TIME })
    ?? [{ removed: true, value: before }, { added: true, value: after }];
}
