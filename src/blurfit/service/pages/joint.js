// The one vector z = (c, ω·v) that a record becomes under `moment`, which of its products are sent,
// and how far they reach: mirrors `blurfit.schema.vectors`, `blurfit.theory.forms` and
// `blurfit.theory.moments`, whose proofs it rests upon. Products are made operation by operation as
// in Python, so that both round alike.

import { INTERCEPT, columnsFor, isLabel, questionsOf, scaled } from "./schema.js";

export const NUDGE = 1 + 1e-12;

/** {constant, columns, sent}: the columns of z after the constant, and the places [row, column] of
 * zzᵀ that are sent. Left out is what everybody knows: the constant's own entry, the squares of
 * signs, and the zeros between two columns of one question. */
export function formOf({ schema, weights }) {
  const columns = questionsOf(schema).flatMap((question) => {
    const isCategorical = question.kind === "categorical";
    const group = isCategorical || question.optional ? question.name : null;
    const first = isLabel(question) && !question.optional ? "sign" : "numeric"; // unsaid is no sign
    return columnsFor(question).map((name, i) => ({
      name,
      weight: weights[question.name],
      kind: isCategorical || i > 0 ? "level" : first,
      group,
    }));
  });
  const all = [{ kind: "sign", group: null }, ...columns];
  const sent = [];
  all.forEach((one, row) => {
    for (let column = row; column < all.length; column++) {
      const isKnown =
        column === row
          ? one.kind === "sign"
          : one.group !== null && one.group === all[column].group;
      if (!isKnown) sent.push([row, column]);
    }
  });
  return { constant: weights[INTERCEPT], columns, sent };
}

/** The products of a record's columns v, in the order in which they are sent. */
export function products({ constant, columns, sent }, values) {
  const z = [constant, ...values.map((value, i) => value * columns[i].weight)];
  return sent.map(([row, column]) => z[row] * z[column]);
}

/** The columns v of all questions of a record. */
export function valuesOf(schema, record) {
  return questionsOf(schema).flatMap((question) => scaled(question, record));
}

/** ρ, which no ‖(ωv)‖ exceeds: one ω² for each question, however many levels it has. */
export function radiusOf({ schema, weights }) {
  const squares = questionsOf(schema).map(({ name }) => weights[name] ** 2);
  return Math.sqrt(squares.reduce((sum, one) => sum + one, 0));
}

/** Δ: how far one person can move Σzzᵀ in the Frobenius norm. */
export function sensitivity(constant, radius, neighbours) {
  if (neighbours === "zero-out") {
    return radius * Math.hypot(Math.SQRT2 * constant, radius) * NUDGE;
  }
  if (constant <= radius) return Math.SQRT2 * (constant ** 2 + radius ** 2) * NUDGE;
  return 2 * Math.SQRT2 * constant * radius * NUDGE;
}

/** Δ of an agreement's columns and weights. */
export function reachFor(agreement, neighbours) {
  return sensitivity(agreement.weights[INTERCEPT], radiusOf(agreement), neighbours);
}
