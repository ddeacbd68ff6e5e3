// What a contributor sends, as one form whatever it is made of:
//
//   sent      the place [row, column] of each number in a table
//   counts    how often each counts in the norm in which noise is alike in all directions: 1, 2
//             beside the diagonal, 1/τ² for Newton's slopes
//   size      a number that is off by a step each is off by at most so many steps in that norm
//   products  the numbers of a record's columns v, before they are blurred
//   reach     how far two records can be apart in that norm, by the neighbouring relation

import { columnsFor, INTERCEPT, isLabel, questionsOf, scaled } from "./schema.js";

let [later, coded, events] = [null, null, null]; // modules that come when needed

export const isLater = ({ wave }) => wave !== null && wave.map !== null;
export const isExit = ({ schema }) => schema.target.kind === "exit";
const isCoded = (agreement) =>
  ["groups", "overlap", "weighting", "factors"].some((name) => name in agreement);

/** What few agreements need comes when one does; a wave's map is refused unless it can do no harm,
 * and so are groups and weights. */
export async function ready(agreement) {
  if (isCoded(agreement)) {
    coded = await import("./codedform.js");
    coded.verifyCoded(agreement);
  }
  if (isExit(agreement)) {
    events = await import("./eventform.js");
    events.verifyExits(agreement);
  }
  if (!isLater(agreement)) return;
  later = await import("./waveform.js");
  later.verifyMap(agreement.wave.map, agreement.schema);
}

/** The form of an agreement, once it is `ready`. */
export const formOf = (agreement) => isLater(agreement) ? later.waveForm(agreement) : jointForm(agreement);

export const widthOf = (agreement) => formOf(agreement).sent.length;

function jointForm(agreement) {
  const whole = productsOf(agreement);
  if (isExit(agreement)) return events.eventForm(agreement, whole);
  const reach = (neighbours) => reachFor(agreement, neighbours);
  const form = { ...whole, reach };
  const made = {
    ...form,
    counts: form.sent.map(([row, column]) => (row === column ? 1 : 2)),
    size: form.columns.length + 1,
    products: (values) => products(form, values),
  };
  return isCoded(agreement) ? coded.codedForm(agreement, made) : made;
}

/** The questions whose columns are multiplied with each other: all but the one that says the group,
 * and the time until an event. */
export const multiplied = ({ schema, groups }) =>
  questionsOf(schema).filter(({ name }) => name !== groups && name !== schema.target.time);

// ---- the one vector z = (c, ω·v) that a record becomes under `moment`, which of its products are
// sent, and how far they reach: mirrors `blurfit.schema.schema`, `blurfit.theory.forms` and
// `blurfit.theory.moments`, whose proofs it rests upon. Products are made operation by operation as
// in Python, so that both round alike.

export const NUDGE = 1 + 1e-12;

/** {constant, columns, sent}: the columns of z after the constant, and the places [row, column] of
 * zzᵀ that are sent. Left out is what everybody knows: the constant's own entry, the squares of
 * signs (neither of a group or of weights), and zeros. */
function productsOf(agreement) {
  const { weights } = agreement;
  const isCounted = !isCoded(agreement);
  const columns = multiplied(agreement).flatMap((question) => {
    const isCategorical = question.kind === "categorical";
    const group = question.levels || question.optional ? question.name : null;
    const first = isLabel(question) && !question.optional ? "sign" : "numeric"; // unsaid is no sign
    const level = question.knots ? "hat" : question.levels && !isCategorical ? "numeric" : "level";
    return columnsFor(question).map((name, i) => ({
      name,
      weight: weights[question.name],
      kind: isCategorical || i > 0 ? level : first,
      group,
    }));
  });
  const all = [{ kind: "sign", group: null }, ...columns];
  const isKnown = ([row, column]) => row === column && all[row].kind === "sign" && isCounted;
  const sent = unknownPairs(all).filter((pair) => !isKnown(pair));
  return { constant: weights[INTERCEPT], columns, sent };
}

/** The places [row, column] of an upper triangle, but for the zeros between two columns of one question;
 * hats that are neighbours overlap. */
export const unknownPairs = (all) =>
  triangle(all.length).filter(([row, column]) => {
    const [{ group, kind }, apart] = [all[row], column - row];
    const isHat = kind === "hat" && apart === 1;
    return apart === 0 || group === null || group !== all[column].group || isHat;
  });

/** The places [row, column] of an upper triangle, row by row. */
export const triangle = (rows) =>
  Array.from({ length: rows }, (_, row) =>
    Array.from({ length: rows - row }, (_unused, i) => [row, row + i]),
  ).flat();

export const sumOf = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

/** The products of a record's columns v, in the order in which they are sent. */
function products({ constant, columns, sent }, values) {
  const z = [constant, ...values.map((value, i) => value * columns[i].weight)];
  return sent.map(([row, column]) => z[row] * z[column]);
}

export const valuesOf = (schema, record) =>
  questionsOf(schema).flatMap((question) => scaled(question, record));

/** ρ, which no ‖(ωv)‖ exceeds: one ω² for each question, however many levels it has. */
export const radiusOf = (agreement) =>
  Math.sqrt(sumOf(multiplied(agreement).map(({ name }) => agreement.weights[name] ** 2)));

/** Δ: how far one person can move Σzzᵀ in the Frobenius norm. */
export function sensitivity(constant, radius, neighbours) {
  if (neighbours === "zero-out") return radius * Math.hypot(Math.SQRT2 * constant, radius) * NUDGE;
  if (constant <= radius) return Math.SQRT2 * (constant ** 2 + radius ** 2) * NUDGE;
  return 2 * Math.SQRT2 * constant * radius * NUDGE;
}

const reachFor = (agreement, neighbours) =>
  sensitivity(agreement.weights[INTERCEPT], radiusOf(agreement), neighbours);
