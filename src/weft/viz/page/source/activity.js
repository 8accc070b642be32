/** What each thread did during one run; its export in the format of chrome://tracing. */

import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { s, tip } from "./dom.js";
import { microseconds, shorten } from "./format.js";

const ROW = 30;
const EDGE = { left: 74, right: 16, top: 6, bottom: 34 };

/** Spans {thread, kernel, begin, end}; without recorded ones the calls one after the other. */
export function spansOf(profile) {
  if (profile.activity && profile.activity.length) {
    return { spans: profile.activity, isRecorded: true };
  }
  let at = 0;
  const spans = [...profile.calls].sort((a, b) => a.index - b.index).map((call) => {
    const begin = at;
    at += call.us;
    return { thread: 0, kernel: call.kernel, begin, end: at };
  });
  return { spans, isRecorded: false };
}

/** The picture of the spans over a width in pixels; `choose(kernel)` hears of clicks. */
export function activity(spans, width, hueOf, choose) {
  const threads = [...new Set(spans.map((span) => span.thread))].sort((a, b) => a - b);
  const row = new Map(threads.map((thread, index) => [thread, index]));
  const height = EDGE.top + ROW * threads.length + EDGE.bottom;
  const begin = spans.reduce((least, span) => Math.min(least, span.begin), Infinity);
  const end = spans.reduce((most, span) => Math.max(most, span.end), begin + 1e-9);
  const x = scaleLinear([0, end - begin], [EDGE.left, width - EDGE.right]);
  const axis = s("g", { class: "axes" });
  select(axis).append("g").attr("transform", `translate(0,${height - EDGE.bottom})`)
    .call(axisBottom(x).ticks(8).tickFormat(microseconds));
  const busy = new Map(threads.map((thread) => [thread, 0]));
  for (const span of spans) busy.set(span.thread, busy.get(span.thread) + span.end - span.begin);
  const lanes = threads.map((thread) => {
    const y = EDGE.top + ROW * row.get(thread);
    const share = Math.min(1, busy.get(thread) / (end - begin));
    return s("g", {}, s("rect", {
      class: "lane", x: EDGE.left, y: y + 2, width: width - EDGE.left - EDGE.right,
      height: ROW - 6, rx: 3,
    }), s("text", { class: "lane-name", x: EDGE.left - 8, y: y + 12, "text-anchor": "end" },
      `thread ${thread}`), s("text", { class: "axis-name", x: EDGE.left - 8, y: y + 24,
      "text-anchor": "end" }, `${(share * 100).toFixed(0)} % busy`));
  });
  const bars = spans.map((span) => {
    const y = EDGE.top + ROW * row.get(span.thread) + 2;
    const left = x(span.begin - begin);
    const wide = Math.max(0.6, x(span.end - begin) - left - 0.5);
    const room = Math.floor((wide - 8) / 6);
    return s("g", {
      class: "span", "data-kernel": span.kernel, style: { "--hue": hueOf(span.kernel) },
      on: { click: () => choose(span.kernel) },
    }, tip(`${span.kernel}: ${microseconds(span.end - span.begin)}, begins at `
      + microseconds(span.begin - begin)),
    s("rect", { x: left, y, width: wide, height: ROW - 6, rx: Math.min(2, wide / 3) }),
    room > 4 ? s("text", { x: left + 5, y: y + 16 }, shorten(span.kernel, room)) : null);
  });
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `activity of ${threads.length} threads` }, lanes, bars, axis);
}

/** The text of a trace file: complete events ("X") by thread, in microseconds. */
export function chromeTrace(model) {
  const { spans } = spansOf(model.profile);
  const events = spans.map((span) => {
    const time = model.times.get(span.kernel);
    return {
      name: span.kernel, cat: "kernel", ph: "X", pid: 1, tid: span.thread, ts: span.begin,
      dur: span.end - span.begin,
      args: time ? { gflop: time.gflop, bytes: time.bytes, share_of_peak: time.peak } : {},
    };
  });
  const name = { name: "process_name", ph: "M", pid: 1, args: { name: model.title } };
  return JSON.stringify({ displayTimeUnit: "ns", traceEvents: [name, ...events] });
}
