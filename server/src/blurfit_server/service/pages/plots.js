// Plots: people over time towards as many as there must be, and effects with their intervals.

import { locale, number, t } from "./language.js";
import { h, svg } from "./page.js";

const HOUR = 3_600_000;
const [HEIGHT, LEFT, BELOW, ABOVE] = [190, 52, 22, 8];

/** Upwards over time from the first who came until now, and a dashed line at how many there must be.
 * `hours` are [{hour, count}] since 1970, and `seen` is what this page has seen itself, [{at, count}]:
 * the service does not keep when within its hour somebody came, so what is seen here is drawn instead.
 * One unit of the picture is about one pixel, so that its words can be read. */
export function arrivalsPlot(hours, quorum, seen) {
  const width = Math.max(240, Math.min(640, document.documentElement.clientWidth - 70));
  const points = pointsOf(hours, seen);
  const [[first], [last, total]] = [points[0], points.at(-1)];
  const top = Math.max(total, quorum) * 1.08;
  const x = (hour) => (LEFT + ((width - LEFT - 4) * (hour - first)) / (last - first)).toFixed(1);
  const y = (count) => (HEIGHT - BELOW - ((HEIGHT - BELOW - ABOVE) * count) / top).toFixed(1);
  const line = [`${x(first)},${y(0)}`, ...points.map(([hour, count]) => `${x(hour)},${y(count)}`)].join(" ");
  const values = { count: number(total), quorum: number(quorum) };
  return h("figure.arrivals",
    h("figcaption", h("span.dashes", { "aria-hidden": "true" }, "– – – "), t("plot.enough", values)),
    svg("svg.plot", { role: "img", viewBox: `0 0 ${width} ${HEIGHT}`, "aria-label": t("plot.label", values) },
      ticks(top).flatMap((count) => [
        svg("line.rule", { x1: LEFT, x2: width - 4, y1: y(count), y2: y(count) }),
        svg("text.tick", { x: LEFT - 6, y: Number(y(count)) + 4, "text-anchor": "end" }, short(count)),
      ]),
      svg("polygon.cloud.faint", { points: `${line} ${x(last)},${y(0)}` }),
      svg("polyline.line", { points: line }),
      svg("line.axis", { x1: LEFT, x2: width - 4, y1: y(0), y2: y(0) }),
      svg("line.goal", { x1: LEFT, x2: width - 4, y1: y(quorum), y2: y(quorum) }),
      svg("text.tick", { x: LEFT, y: HEIGHT - 5 }, briefly(first * HOUR)),
      svg("text.tick", { x: width - 4, y: HEIGHT - 5, "text-anchor": "end" }, t("plot.now")),
    ),
  );
}

/** [hour, how many had come by then], at least two of them. */
function pointsOf(hours, seen) {
  const now = Date.now() / HOUR;
  const since = seen.length > 1 ? seen[0].at / HOUR : Infinity;
  let sum = 0;
  const steps = hours.filter(({ hour }) => hour + 1 <= since || since === Infinity).flatMap(({ hour, count }) => [
    [hour, sum],
    [Math.min(hour + 1, now), (sum += count)],
  ]);
  if (since < Infinity) return [...steps, ...seen.map(({ at, count }) => [at / HOUR, Math.max(sum, count)])];
  return [...steps, [Math.max(now, hours.at(-1).hour + 1 / 60), sum]]; // nobody since, up to now
}

function ticks(top) {
  const power = 10 ** Math.floor(Math.log10(top));
  const step = [0.2, 0.5, 1, 2].map((one) => one * power).find((one) => top / one <= 5) ?? power;
  const whole = Math.max(1, step);
  return Array.from({ length: Math.floor(top / whole) + 1 }, (_, i) => i * whole);
}

const BRIEF = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
const briefly = (at) => new Date(at).toLocaleString(locale, BRIEF);
const short = (count) => new Intl.NumberFormat(locale, { notation: "compact" }).format(count);

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
  const sign = value < 0 ? "minus" : "plus";
  const arrow = (isBeyond, points) => (isBeyond ? svg("polygon.beyond", { points }) : null);
  return svg("svg.effect", { viewBox: "0 0 200 22", "aria-hidden": "true" },
    [
      svg("line.zero", { x1: 100, x2: 100, y1: 0, y2: 22 }),
      lower === undefined ? null : svg("line.interval", { x1: x(lower), x2: x(upper), y1: 11, y2: 11 }),
      arrow(lower < -reach, "8,4 0,11 8,18"),
      arrow(upper > reach, "192,4 200,11 192,18"),
      svg(`line.from.${sign}`, { x1: 100, x2: x(value), y1: 11, y2: 11 }),
      svg(`circle.${sign}`, { cx: x(value), cy: 11, r: 5 }),
    ],
  );
}

export function intervalPlot({ value, lower, upper }, low, high) {
  const x = (one) => (4 + (192 * (Math.min(Math.max(one, low), high) - low)) / (high - low)).toFixed(1);
  return svg("svg.effect", { viewBox: "0 0 200 22", "aria-hidden": "true" },
    svg("line.zero", { x1: 4, x2: 196, y1: 11, y2: 11 }),
    svg("line.interval", { x1: x(lower), x2: x(upper), y1: 11, y2: 11 }),
    svg("circle.plus", { cx: x(value), cy: 11, r: 5 }),
  );
}

/** A mean along a number, as a line in the band of its intervals: [[x, value, lower, upper]]. */
export function curvePlot(points, label) {
  const [width, height] = [300, 110];
  const scale = (some) => [Math.min(...some), Math.max(...some) - Math.min(...some) || 1];
  const [left, wide] = scale(points.map(([x]) => x));
  const [low, high] = scale(points.flatMap(([, ...three]) => three));
  const at = (x, y) => `${((width * (x - left)) / wide).toFixed(1)},${(height - (height * (y - low)) / high).toFixed(1)}`;
  const [line, lower, upper] = [1, 2, 3].map((which) => points.map((one) => at(one[0], one[which])));
  return svg("svg.plot", { role: "img", viewBox: `-3 -3 ${width + 6} ${height + 6}`, "aria-label": label },
    svg("polygon.cloud.faint", { points: [...lower, ...upper.reverse()].join(" ") }),
    svg("polyline.line", { points: line.join(" ") }),
  );
}
