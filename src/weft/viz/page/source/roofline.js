/** The roofline: operations a second over operations per byte, under the machine's two limits. */

import { axisBottom, axisLeft } from "d3-axis";
import { scaleLog } from "d3-scale";
import { select } from "d3-selection";
import { missing, s, tip } from "./dom.js";
import { microseconds, number, shorten } from "./format.js";

const EDGE = { left: 52, right: 18, top: 18, bottom: 40 };
const NAMED = 10; // of the kernels with the longest times, those for which there is room
const NAME_HEIGHT = 13;
const PEAK_LENGTH = 120; // pixels that the words at the peak take
const LETTER = 6.6; // pixels, of a letter of a name in the mean
const RADIUS = { least: 4, most: 15 };

/** The powers of ten within a domain. */
function decades([low, high]) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, step) => 10 ** (first + step));
}

const plain = (value) => String(Number(value.toPrecision(3)));

const powers = (low, high) => [
  10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high)),
];

function pointsOf(times) {
  return [...times.values()]
    .filter((time) => time.gflop > 0 && time.bytes > 0 && time.us > 0)
    .map((time) => ({
      ...time, intensity: (time.gflop * 1e9) / time.bytes, speed: (time.gflop * 1e6) / time.us,
    }))
    .sort((a, b) => b.us - a.us);
}

function axes(x, y, width, height) {
  const group = s("g", { class: "axes" });
  select(group).append("g").attr("transform", `translate(0,${height - EDGE.bottom})`)
    .call(axisBottom(x).tickValues(decades(x.domain())).tickFormat(plain));
  select(group).append("g").attr("transform", `translate(${EDGE.left},0)`)
    .call(axisLeft(y).tickValues(decades(y.domain())).tickFormat(plain)
      .tickSize(-(width - EDGE.left - EDGE.right)));
  group.append(
    s("text", { class: "axis-name", x: width - EDGE.right, y: height - 6, "text-anchor": "end" },
      "operations per byte"),
    s("text", { class: "axis-name", x: EDGE.left, y: 11 }, "GFLOP/s"));
  return group;
}

function roof(profile, x, y) {
  const { peak, bandwidth } = profile;
  if (peak === null || bandwidth === null) return null;
  const [low, high] = x.domain();
  const knee = Math.min(high, Math.max(low, peak / bandwidth));
  return s("g", { class: "roof" },
    s("path", { d: `M${x(low)},${y(low * bandwidth)}L${x(knee)},${y(knee * bandwidth)}`
      + `L${x(high)},${y(peak)}` }),
    s("text", { x: x(high) - 4, y: y(peak) - 6, "text-anchor": "end" },
      `peak ${number(peak)} GFLOP/s`),
    s("text", { x: x(low) + 8, y: y(low * bandwidth) - 10,
      transform: `rotate(${(Math.atan2(y(knee * bandwidth) - y(low * bandwidth),
        x(knee) - x(low)) * 180) / Math.PI} ${x(low) + 8} ${y(low * bandwidth) - 10})` },
    `${number(bandwidth)} GB/s`));
}

/** Names beside the points, where they cover neither a point nor another name. */
function named(points, width, drawn) {
  const taken = [...drawn,
    ...points.map(({ x, y, radius }) => [x - radius, y - radius, x + radius, y + radius])];
  const names = [];
  for (const { text, x, y, radius } of points) {
    if (names.length === NAMED) break;
    const long = text.length * LETTER;
    const places = [
      [x + radius + 4, y], [x - radius - 4 - long, y], [x - long / 2, y + radius + NAME_HEIGHT / 2],
      [x - long / 2, y - radius - NAME_HEIGHT / 2], [x + radius, y + NAME_HEIGHT],
      [x + radius, y - NAME_HEIGHT], [x - radius - long, y + NAME_HEIGHT],
    ];
    const free = places.find(([left, middle]) => left > EDGE.left && left + long < width
      && !taken.some((box) => left < box[2] && left + long > box[0]
        && middle - NAME_HEIGHT / 2 < box[3] && middle + NAME_HEIGHT / 2 > box[1]));
    if (!free) continue;
    taken.push([free[0], free[1] - NAME_HEIGHT / 2, free[0] + long, free[1] + NAME_HEIGHT / 2]);
    names.push(s("text", { class: "point-name", x: free[0], y: free[1] + 3.5 }, text));
  }
  return names;
}

/** The picture, `width` by `height` pixels; `choose(kernel)` hears of clicks. */
export function roofline(profile, times, width, height, choose) {
  const points = pointsOf(times);
  if (!points.length) {
    return missing("No roofline:", "operations and bytes of the kernels were not recorded.");
  }
  const peak = profile.peak ?? Math.max(...points.map((point) => point.speed));
  const knee = profile.bandwidth ? peak / profile.bandwidth : 1;
  const across = points.map((point) => point.intensity);
  const up = points.map((point) => point.speed);
  const x = scaleLog(powers(Math.min(...across, knee / 2), Math.max(...across, knee * 4)),
    [EDGE.left, width - EDGE.right]);
  const y = scaleLog([powers(Math.min(...up, peak / 10), 1)[0], Math.max(peak, ...up) * 1.8],
    [height - EDGE.bottom, EDGE.top]).clamp(true);
  const most = Math.sqrt(points[0].us);
  const radius = (point) => RADIUS.least
    + (RADIUS.most - RADIUS.least) * (Math.sqrt(point.us) / most);
  const share = (point) => `${(point.us / points[0].us) * 100}%`;
  const circles = points.map((point) => s("g", {
    class: "point", role: "button", tabindex: "0", "data-kernel": point.kernel,
    "aria-label": `${point.kernel}: ${number(point.speed)} GFLOP/s, ${microseconds(point.us)}`,
    style: { "--heat-share": share(point) },
    on: {
      click: () => choose(point.kernel),
      keydown: (event) => (event.key === "Enter" ? choose(point.kernel) : null),
    },
  }, tip(`${point.kernel}\n${microseconds(point.us)}, ${number(point.speed)} GFLOP/s, `
    + `${number(point.intensity)} FLOP per byte`),
  s("circle", { cx: x(point.intensity), cy: y(point.speed), r: radius(point) })));
  const names = named(points.map((point) => ({
    text: shorten(point.kernel, 34), x: x(point.intensity), y: y(point.speed),
    radius: radius(point),
  })), width, [[x(knee), y(peak) - 2, width, y(peak) + 2],
    [width - EDGE.right - PEAK_LENGTH, y(peak) - 20, width, y(peak)]]);
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group",
    "aria-label": "roofline" }, axes(x, y, width, height), roof(profile, x, y), circles, names);
}
