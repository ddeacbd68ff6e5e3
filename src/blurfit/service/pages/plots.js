// Plots: people over time towards a quorum, and effects with their intervals.

import { number } from "./language.js";
import { h, svg } from "./page.js";

const HOUR = 3_600_000;
const [HEIGHT, LEFT, BELOW, ABOVE] = [190, 52, 22, 8];

/** Upwards over time until now, and a dashed line at the quorum. `hours`: [{hour, count}], since
 * 1970. One unit of the picture is about one pixel, so that its words can be read. */
export function arrivalsPlot(hours, quorum, now = Date.now() / HOUR) {
  const width = Math.max(240, Math.min(640, document.documentElement.clientWidth - 70));
  const first = hours[0].hour;
  const last = Math.max(now, hours.at(-1).hour + 1 / 60);
  const total = hours.reduce((sum, { count }) => sum + count, 0);
  const top = Math.max(total, quorum) * 1.08;
  const x = (hour) => (LEFT + ((width - LEFT - 4) * (hour - first)) / (last - first)).toFixed(1);
  const y = (count) => (HEIGHT - BELOW - ((HEIGHT - BELOW - ABOVE) * count) / top).toFixed(1);
  let sum = 0;
  const corners = [`${x(first)},${y(0)}`];
  for (const { hour, count } of hours) {
    corners.push(`${x(hour)},${y(sum)}`);
    corners.push(`${x(Math.min(hour + 1, last))},${y((sum += count))}`);
  }
  corners.push(`${x(last)},${y(total)}`); // nobody since, up to now
  const line = corners.join(" ");
  const label =
    `${number(total)} contributors from ${when(first)} to now; the quorum is ${number(quorum)}`;
  return h("figure.arrivals",
    h("figcaption",
      h("span.dashes", { "aria-hidden": "true" }, "– – – "),
      `the quorum, ${number(quorum)}`,
    ),
    svg("svg.plot", { role: "img", viewBox: `0 0 ${width} ${HEIGHT}`, "aria-label": label },
      ticks(top).flatMap((count) => [
        svg("line.rule", { x1: LEFT, x2: width - 4, y1: y(count), y2: y(count) }),
        svg("text.tick", { x: LEFT - 6, y: Number(y(count)) + 4, "text-anchor": "end" }, short(count)),
      ]),
      svg("polygon.cloud.faint", { points: `${line} ${x(last)},${y(0)}` }),
      svg("polyline.line", { points: line }),
      svg("line.axis", { x1: LEFT, x2: width - 4, y1: y(0), y2: y(0) }),
      svg("line.goal", { x1: LEFT, x2: width - 4, y1: y(quorum), y2: y(quorum) }),
      svg("text.tick", { x: LEFT, y: HEIGHT - 5 }, when(first)),
      svg("text.tick", { x: width - 4, y: HEIGHT - 5, "text-anchor": "end" }, "now"),
    ),
  );
}

/** Three to five round numbers from zero on. */
function ticks(top) {
  const power = 10 ** Math.floor(Math.log10(top));
  const step = [0.2, 0.5, 1, 2].map((one) => one * power).find((one) => top / one <= 5) ?? power;
  const whole = Math.max(1, step);
  return Array.from({ length: Math.floor(top / whole) + 1 }, (_, i) => i * whole);
}

const short = (count) => new Intl.NumberFormat("en", { notation: "compact" }).format(count);

function when(hour) {
  return new Date(hour * HOUR).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

/** How far the picture of some effects reaches: as far as all intervals, unless that would make the
 * effects themselves too small to see. */
export function scaleOf(effects) {
  const values = Math.max(...effects.map(({ value }) => Math.abs(value)));
  const bounds = effects.flatMap(({ value, lower = value, upper = value }) => [lower, upper]);
  return Math.min(Math.max(...bounds.map(Math.abs)), 4 * values) * 1.05 || 1;
}

/** One effect on the scale that all share: its interval, if any, and its value as a dot. Where an
 * interval goes on beyond the picture, an arrow says so. */
export function effectPlot({ value, lower, upper }, reach) {
  const x = (effect) => (100 + (92 * Math.max(-reach, Math.min(reach, effect))) / reach).toFixed(1);
  const arrow = (isBeyond, points) => (isBeyond ? svg("polygon.beyond", { points }) : null);
  return svg("svg.effect", { viewBox: "0 0 200 22", "aria-hidden": "true" },
    [
      svg("line.zero", { x1: 100, x2: 100, y1: 0, y2: 22 }),
      lower === undefined
        ? null
        : svg("line.interval", { x1: x(lower), x2: x(upper), y1: 11, y2: 11 }),
      arrow(lower < -reach, "8,4 0,11 8,18"),
      arrow(upper > reach, "192,4 200,11 192,18"),
      svg("line", {
        class: value < 0 ? "from minus" : "from plus",
        x1: 100,
        x2: x(value),
        y1: 11,
        y2: 11,
      }),
      svg("circle", { class: value < 0 ? "minus" : "plus", cx: x(value), cy: 11, r: 5 }),
    ],
  );
}
