// Plots: people over time towards a quorum, and effects with their intervals.

import { h, svg } from "./page.js";
import { number } from "./words.js";

/** Upwards over time, and a dashed line at the quorum. `hours`: [{hour, count}], since 1970. */
export function arrivalsPlot(hours, quorum) {
  const [width, height] = [640, 200];
  const first = hours[0].hour;
  const last = hours.at(-1).hour + 1;
  const total = hours.reduce((sum, { count }) => sum + count, 0);
  const top = Math.max(total, quorum) * 1.05;
  const x = (hour) => ((width * (hour - first)) / (last - first)).toFixed(1);
  const y = (count) => (height - 2 - ((height - 4) * count) / top).toFixed(1);
  let sum = 0;
  const corners = [`0,${y(0)}`];
  for (const { hour, count } of hours) {
    corners.push(`${x(hour)},${y(sum)}`);
    corners.push(`${x(hour + 1)},${y((sum += count))}`);
  }
  const line = corners.join(" ");
  return h(
    "figure",
    { class: "arrivals" },
    h(
      "figcaption",
      {},
      h("span", { class: "dashes", "aria-hidden": "true" }, "– – – "),
      `the quorum, ${number(quorum)}`,
    ),
    svg(
      "svg",
      {
        class: "plot",
        role: "img",
        preserveAspectRatio: "none",
        viewBox: `0 0 ${width} ${height}`,
        "aria-label": `${number(total)} contributors from ${when(first)} to ${when(last)}; the quorum is ${number(quorum)}`,
      },
      svg("polygon", { class: "cloud faint", points: `${line} ${width},${y(0)}` }),
      svg("polyline", { class: "line", points: line }),
      svg("line", { class: "axis", x1: 0, x2: width, y1: y(0), y2: y(0) }),
      svg("line", { class: "goal", x1: 0, x2: width, y1: y(quorum), y2: y(quorum) }),
    ),
    h("div", { class: "ends" }, h("span", {}, when(first)), h("span", {}, when(last))),
  );
}

function when(hour) {
  return new Date(hour * 3_600_000).toLocaleString("en", {
    dateStyle: "medium",
    timeStyle: "short",
  });
}

/** One effect on the scale that all share: its interval, if any, and its value as a dot. */
export function effectPlot({ value, lower, upper }, reach) {
  const x = (effect) => (100 + (96 * Math.max(-reach, Math.min(reach, effect))) / reach).toFixed(1);
  return svg(
    "svg",
    { class: "effect", viewBox: "0 0 200 22", "aria-hidden": "true" },
    svg("line", { class: "zero", x1: 100, x2: 100, y1: 0, y2: 22 }),
    lower === undefined
      ? null
      : svg("line", { class: "interval", x1: x(lower), x2: x(upper), y1: 11, y2: 11 }),
    svg("line", {
      class: value < 0 ? "from minus" : "from plus",
      x1: 100,
      x2: x(value),
      y1: 11,
      y2: 11,
    }),
    svg("circle", { class: value < 0 ? "minus" : "plus", cx: x(value), cy: 11, r: 5 }),
  );
}
