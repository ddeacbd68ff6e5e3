// What would leave this device, and what could be read from it, before anything does.

import { formOf } from "./forms.js";
import { noiseFor } from "./grid.js";
import { number, percent, t } from "./language.js";
import { h, show, svg } from "./page.js";
import { exactly } from "./perturb.js";
import { askedOf, isLabel, unscale } from "./schema.js";
import { answerOf, attributes, questionOf, titleOf } from "./texts.js";
import {
  conditionInWords, eitherInWords, isShared, modelInShort, modelInWords,
  names, proofInWords, strengthOf,
} from "./words.js";

/** Into #preview; `send` gets the buttons, `change` goes back to the answers. */
export function showPreview(agreement, mu, { record, sent, bytes }, { send, change }) {
  const sending = h("button.primary", { type: "button", id: "send" }, t("preview.send"));
  const back = h("button", { type: "button", click: change }, t("preview.change"));
  sending.addEventListener("click", () => send([sending, back]));
  const heading = h("h2", { tabindex: "-1" }, t("preview.label"));
  const found = Array.isArray(record) ? [] : beliefs(agreement, record, sent); // or a diary
  show("preview",
    heading,
    h("p", whatOf(agreement, record)),
    h("div.beliefs", found.map((one) => beliefPicture(one, record, t(isShared(agreement) ? "belief.from.two" : "belief.from.one")))),
    risk(agreement, mu, found),
    veryNumbers(agreement, sent, bytes),
    h("div.buttons", sending, back),
  );
  heading.focus();
}

/** What was done, in a sentence: a diary's entries are told together. */
function whatOf(agreement, record) {
  if (Array.isArray(record)) return t("diary.preview", { count: record.length });
  return isShared(agreement) ? t("preview.what.two", names(agreement)) : t("preview.what");
}

/** What follows from the pictures, and never less than the worst case of the noise. */
function risk(agreement, mu, found) {
  const shared = isShared(agreement);
  const read = found.filter(isRead).map(({ column }) => t("quoted", { words: headingOf(column) }));
  const strength = read.length ? "weak" : strengthOf(mu);
  // of a diary there are no pictures, so the worst case speaks
  const open = t(`${found.length ? "preview" : "local"}.${strength}`);
  const told = read.length ? t("preview.read", { read: read.join(", ") }) : open;
  const together = found.length ? t(read.length ? "preview.together" : "preview.together.open") : t(`together.${strength}`);
  const range = found.some((one) => typeof one.candidates[0] === "number" && isRead(one));
  return h("div", { class: `note ${shared ? "strong" : strength}` },
    h("strong", shared ? eitherInWords(agreement) : told),
    shared ? h("p", `${conditionInWords(agreement)} ${together}`) : null,
    shared || strength === "strong" ? null : h("p", `${range ? `${t("preview.range")} ` : ""}${t("preview.sum")}`),
    agreement.proofs ? h("p", proofInWords(agreement)) : null,
    h("p",
      h("strong", t("preview.model", { little: modelInShort(agreement) })),
      ` ${modelInWords(agreement)}`,
    ),
  );
}

function veryNumbers(agreement, sent, bytes) {
  const counts = { count: sent.numbers.length, bytes: number(bytes.length) };
  return h("details",
    h("summary", t(agreement.proofs ? "preview.numbers.proof" : "preview.numbers", counts)),
    numbersPicture(agreement, sent),
    h("p.hint", t("preview.squares")),
    h("pre", { tabindex: "0", "aria-label": t("preview.leaving") },
      sent.numbers.map((one) => one.toPrecision(6)).join("  "),
    ),
    h("p.hint", t(agreement.proofs ? "preview.besides.proof" : "preview.besides")),
  );
}

// ---- How much the blurred numbers give away: for each answer, what someone could believe who sees
// the submission and knows everything else about the person. This is the strongest reader that
// differential privacy is about; anyone real knows less.
//
// For each value that the answer could have, the numbers that it would give are compared with
// those that leave. The noise is normal and known, so the probability of the value, if all were
// alike beforehand, is ∝ exp(−½Σ((sent − would be)/deviation)²). An illustration of one draw; the
// promise is the ε of the agreement.

const POINTS = 121;
const SAID = Symbol("said"); // some answer, whatever it is

/** [{column, candidates, probabilities}] for each question that was asked. */
function beliefs(agreement, record, sent) {
  const exact = exactly(agreement);
  const { deviations } = noiseFor(agreement);
  const misfit = (numbers) =>
    numbers.reduce((sum, one, i) => sum + ((sent.numbers[i] - one) / deviations[i]) ** 2, 0) / 2;
  return askedOf(agreement.schema).map((column) => {
    const candidates = candidatesOf(column);
    const misfitOf = (value) => misfit(exact({ ...record, [column.name]: value }));
    const misfits = candidates.map(misfitOf);
    if (record[column.name] === null && typeof candidates[0] === "number") {
      return unsaid(column, misfits, misfitOf(null));
    }
    return { column, candidates, probabilities: normalised(misfits) };
  });
}

/** Of a number that was not said: whether there is one at all, if that were as likely as not. */
function unsaid(column, misfits, silent) {
  const least = Math.min(silent, ...misfits);
  const said = misfits.reduce((sum, one) => sum + Math.exp(least - one), 0) / misfits.length;
  const total = said + Math.exp(least - silent);
  const probabilities = [said / total, Math.exp(least - silent) / total];
  return { column, candidates: [SAID, null], probabilities };
}

/** The shortest run of candidates that holds so much of the probability: [lowest, highest]. */
function likelyRange({ candidates, probabilities }, share = 0.95) {
  let [best, end, sum] = [[0, candidates.length - 1], 0, 0];
  for (let start = 0; start < candidates.length; start++) {
    while (end < candidates.length && sum < share) sum += probabilities[end++];
    if (sum < share) break;
    if (end - 1 - start < best[1] - best[0]) best = [start, end - 1];
    sum -= probabilities[start];
  }
  return best.map((place) => candidates[place]);
}

function widthOf(belief) {
  const [low, high] = likelyRange(belief);
  return (high - low) / (belief.column.upper - belief.column.lower);
}

/** Whether an answer can be read back: a number to a tenth of its range, another with 90 %. */
function isRead(belief) {
  if (typeof belief.candidates[0] === "number") return widthOf(belief) <= 0.1;
  return Math.max(...belief.probabilities) >= 0.9;
}

/** Whether most answers of a middling person could be read back by whoever gets the submission: each of
 * them as well as two answers that are 2.6 deviations apart, which tells them apart 9 times in 10. */
export function mostCouldBeRead(agreement) {
  const exact = exactly(agreement);
  const { deviations } = noiseFor(agreement);
  const asked = askedOf(agreement.schema);
  const middle = (some) => some[Math.floor(some.length / 2)];
  const record = Object.fromEntries(asked.map((one) => [one.name, middle(candidatesOf({ ...one, optional: false }))]));
  const isClear = ({ name, ...column }) => {
    const candidates = candidatesOf({ ...column, optional: false });
    const [one, other] = [candidates[0], candidates.at(-1)].map((value) => exact({ ...record, [name]: value }));
    return Math.hypot(...one.map((number, i) => (number - other[i]) / deviations[i])) >= 2.6;
  };
  return asked.filter(isClear).length >= asked.length / 2;
}

function candidatesOf(column) {
  const silence = column.optional ? [null] : [];
  if (column.kind === "categorical") return [...column.levels, ...silence];
  if (isLabel(column)) return [false, true, ...silence];
  return Array.from({ length: POINTS }, (_, i) => unscale(column, (2 * i) / (POINTS - 1) - 1));
}

function normalised(misfits) {
  const least = Math.min(...misfits);
  const weights = misfits.map((one) => Math.exp(least - one));
  const total = weights.reduce((sum, one) => sum + one, 0);
  return weights.map((one) => one / total);
}

// ---- Pictures for people: what was typed beside what could be read from it, and the very numbers
// that leave, before and after.

/** One answer: the curve of what a reader could believe, a dot where the truth is, and words. */
function beliefPicture(belief, record, from) {
  const { column, candidates } = belief;
  const typed = record[column.name];
  const isNumber = typeof candidates[0] === "number";
  return h("div.belief",
    h("h3", attributes(column.title ?? column.question), headingOf(column)),
    h("p.typed", h("span.key", t("belief.yours")), h("b", { dir: "auto" }, answerOf(column, typed))),
    isNumber ? curve(belief, Math.min(Math.max(typed, column.lower), column.upper)) : bars(belief, typed),
    h("p.read", isNumber ? rangeInWords(belief, from) : levelInWords(belief, from)),
  );
}

const headingOf = (column) => (column.title === undefined ? questionOf(column) : titleOf(column));
const inWords = (column, value) => (value === SAID ? t("belief.said") : answerOf(column, value));

function rangeInWords(belief, from) {
  const { column } = belief;
  const [low, high] = likelyRange(belief);
  if (widthOf(belief) > 0.9) return t("belief.anything", { from });
  return t("belief.range", { from, low: number(low, 3), high: answerOf(column, high, 3) });
}

function levelInWords({ column, candidates, probabilities }, from) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  const share = probabilities[best];
  const answer = inWords(column, candidates[best]);
  if (share < 1.2 / candidates.length) return t("belief.any", { from });
  if (share > 0.995) return t("belief.surely", { from, answer });
  return t("belief.likely", { from, answer, percent: percent(share) });
}

function curve({ column, probabilities }, typed) {
  const [width, height] = [300, 56];
  const highest = Math.max(...probabilities);
  const x = (i) => (width * i) / (probabilities.length - 1);
  const y = (p) => height - 4 - (height - 14) * (p / highest);
  const line = probabilities.map((p, i) => `${x(i).toFixed(1)},${y(p).toFixed(1)}`);
  const dot = (width * (typed - column.lower)) / (column.upper - column.lower);
  return h("div.strip", { "aria-hidden": "true" },
    svg("svg", { viewBox: `-6 0 ${width + 12} ${height}` },
      svg("polygon.cloud", { points: `0,${height - 4} ${line.join(" ")} ${width},${height - 4}` }),
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
      h("span.percent", percent(probabilities[i])),
    ),
  );
  return h("div.strip", { "aria-hidden": "true" }, rows);
}

function numbersPicture(agreement, { exact, numbers }) {
  const largest = Math.max(...[...exact, ...numbers].map(Math.abs));
  const places = formOf(agreement).sent;
  const panel = (title, values) =>
    h("figure",
      squares(places, values, largest, t("picture.colours", { title, count: values.length })),
      h("figcaption", title),
    );
  return h("div.panels", panel(t("picture.exact"), exact), panel(t("picture.sent"), numbers));
}

function squares(places, values, largest, label) {
  const strength = (value) => Math.sqrt(Math.min(1, Math.abs(value) / largest)).toFixed(3);
  const cells = values.map((value, i) => {
    const [y, x] = places[i].map((one) => one + 0.05);
    const square = { x, y, width: 0.9, height: 0.9, "fill-opacity": strength(value) };
    return svg(value < 0 ? "rect.minus" : "rect.plus", square);
  });
  const [height, width] = [0, 1].map((axis) => Math.max(...places.map((one) => one[axis])) + 1);
  const viewBox = `0 0 ${width} ${height}`;
  return svg("svg.squares", { role: "img", "aria-label": label, viewBox }, cells);
}
