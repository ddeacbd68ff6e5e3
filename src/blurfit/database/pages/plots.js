// Plots: people over time towards a quorum, and effects with their intervals.

import { svg } from "./page.js";
import { number } from "./words.js";

/** Steps upwards over time, and a dashed line at the quorum. `hours`: [{hour, count}], since 1970. */
export function arrivalsPlot(hours, quorum) {
  const [width, height, left, bottom] = [640, 220, 12, 24];
  const first = hours[0].hour;
  const last = Math.max(hours.at(-1).hour + 1, first + 1);
  const total = hours.reduce((sum, { count }) => sum + count, 0);
  const top = Math.max(total, quorum) * 1.08;
  const x = (hour) => left + ((width - 2 * left) * (hour - first)) / (last - first);
  const y = (count) => height - bottom - ((height - bottom - 8) * count) / top;
  let sum = 0;
  const corners = [[x(first), y(0)]];
  for (const { hour, count } of hours) {
    corners.push([x(hour), y(sum)], [x(hour + 1), y((sum += count))]);
  }
  corners.push([x(last), y(sum)]);
  const line = corners.map((corner) => corner.map((one) => one.toFixed(1)).join(",")).join(" ");
  return svg(
    "svg",
    {
      class: "plot",
      role: "img",
      viewBox: `0 0 ${width} ${height}`,
      "aria-label": `${number(total)} contributors from ${when(first)} to ${when(last)}; the quorum is ${number(quorum)}`,
    },
    svg("polygon", { class: "cloud faint", points: `${line} ${x(last)},${y(0)}` }),
    svg("polyline", { class: "line", points: line }),
    svg("line", { class: "axis", x1: left, x2: width - left, y1: y(0), y2: y(0) }),
    svg("line", { class: "goal", x1: left, x2: width - left, y1: y(quorum), y2: y(quorum) }),
    svg("text", { x: left, y: y(quorum) + (y(quorum) < 30 ? 18 : -6) }, `quorum ${number(quorum)}`),
    svg("text", { x: left, y: height - 6 }, when(first)),
    svg("text", { x: width - left, y: height - 6, "text-anchor": "end" }, when(last)),
  );
}

function when(hour) {
  return new Date(hour * 3_600_000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

/** One effect on the scale that all share: its interval, if any, and its value as a dot. */
export function effectPlot({ value, lower, upper }, reach) {
  const x = (effect) => (100 + (96 * Math.max(-reach, Math.min(reach, effect))) / reach).toFixed(1);
  return svg(
    "svg",
    { class: "effect", viewBox: "0 0 200 22", "aria-hidden": "true" },
    svg("line", { class: "zero", x1: 100, x2: 100, y1: 0, y2: 22 }),
    lower === undefined ? null : svg("line", { class: "interval", x1: x(lower), x2: x(upper), y1: 11, y2: 11 }),
    svg("line", { class: value < 0 ? "from minus" : "from plus", x1: 100, x2: x(value), y1: 11, y2: 11 }),
    svg("circle", { class: value < 0 ? "minus" : "plus", cx: x(value), cy: 11, r: 5 }),
  );
}
