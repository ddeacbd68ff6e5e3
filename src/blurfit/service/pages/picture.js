// Pictures for people: what was typed beside what could be read from it, and the very numbers
// that leave, before and after.

import { SAID, likelyRange } from "./beliefs.js";
import { formOf } from "./forms.js";
import { t } from "./language.js";
import { number } from "./numerals.js";
import { h, svg } from "./page.js";
import { answerOf, attributes, questionOf, titleOf } from "./texts.js";

/** One answer: the curve of what a reader could believe, a dot where the truth is, and words. */
export function beliefPicture(belief, record) {
  const { column, candidates } = belief;
  const typed = record[column.name];
  const isNumber = typeof candidates[0] === "number";
  return h("div.belief",
    h("h3", attributes(column.title ?? column.question), headingOf(column)),
    h("p.typed",
      h("span.key", t("belief.yours")),
      h("b", { dir: "auto" }, answerOf(column, typed)),
    ),
    isNumber
      ? curve(belief, Math.min(Math.max(typed, column.lower), column.upper))
      : bars(belief, typed),
    h("p.read", isNumber ? rangeInWords(belief) : levelInWords(belief)),
  );
}

const headingOf = (column) => (column.title === undefined ? questionOf(column) : titleOf(column));
const inWords = (column, value) => (value === SAID ? t("belief.said") : answerOf(column, value));

function rangeInWords(belief) {
  const { column } = belief;
  const [low, high] = likelyRange(belief);
  const share = (high - low) / (column.upper - column.lower);
  if (share > 0.9) return t("belief.anything");
  return t("belief.range", { low: number(low, 3), high: answerOf(column, high, 3) });
}

function levelInWords({ column, candidates, probabilities }) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  const percent = 100 * probabilities[best];
  const answer = inWords(column, candidates[best]);
  if (percent < 120 / candidates.length) return t("belief.any");
  if (percent > 99.9) return t("belief.surely", { answer });
  return t("belief.likely", { answer, percent: number(percent, 2) });
}

function curve({ column, probabilities }, typed) {
  const [width, height] = [300, 56];
  const highest = Math.max(...probabilities);
  const x = (i) => (width * i) / (probabilities.length - 1);
  const line = probabilities.map(
    (p, i) => `${x(i).toFixed(1)},${(height - 4 - (height - 14) * (p / highest)).toFixed(1)}`,
  );
  const dot = (width * (typed - column.lower)) / (column.upper - column.lower);
  return h("div.strip", { "aria-hidden": "true" },
    svg("svg", { viewBox: `-6 0 ${width + 12} ${height}` },
      svg("polygon.cloud", {
        points: `0,${height - 4} ${line.join(" ")} ${width},${height - 4}`,
      }),
      svg("line.axis", { x1: 0, x2: width, y1: height - 4, y2: height - 4 }),
      svg("circle.truth", { cx: dot, cy: height - 4, r: 4 }),
    ),
    h("div.ends", h("span", number(column.lower)), h("span", number(column.upper))),
  );
}

function bars({ column, candidates, probabilities }, typed) {
  const rows = candidates.map((value, i) =>
    h("div", { class: value === typed ? "bar true" : "bar" },
      h("span.level", { dir: "auto" }, inWords(column, value)),
      svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none" },
        svg("rect.track", { width: 100, height: 8 }),
        svg("rect.cloud", { width: 100 * probabilities[i], height: 8 }),
      ),
      h("span.percent", `${Math.round(100 * probabilities[i])} %`),
    ),
  );
  return h("div.strip", { "aria-hidden": "true" }, rows);
}

/** All numbers as coloured squares: as they were, and as they leave. */
export function numbersPicture(agreement, { exact, numbers }) {
  const largest = Math.max(...[...exact, ...numbers].map(Math.abs));
  const places = placesOf(agreement);
  const panel = (title, values) =>
    h("figure",
      squares(places, values, largest, t("picture.colours", { title, count: values.length })),
      h("figcaption", title),
    );
  return h("div.panels", panel(t("picture.exact"), exact), panel(t("picture.sent"), numbers));
}

/** Where each number stands: q above p, or a table of products, of which one half is sent. */
function placesOf(agreement) {
  const { mechanism, setting } = agreement.calibration;
  if (mechanism === "moment") return formOf(agreement).sent;
  const rows = [0, 1.3].map((row) =>
    Array.from({ length: setting.dimension }, (_, column) => [row, column]),
  );
  return rows.flat();
}

function squares(places, values, largest, label) {
  const cells = values.map((value, i) =>
    svg("rect", {
      class: value < 0 ? "minus" : "plus",
      x: places[i][1] + 0.05,
      y: places[i][0] + 0.05,
      width: 0.9,
      height: 0.9,
      "fill-opacity": Math.sqrt(Math.min(1, Math.abs(value) / largest)).toFixed(3),
    }),
  );
  const [height, width] = [0, 1].map((axis) => Math.max(...places.map((one) => one[axis])) + 1);
  const viewBox = `0 0 ${width} ${height}`;
  return svg("svg.squares", { role: "img", "aria-label": label, viewBox }, cells);
}
