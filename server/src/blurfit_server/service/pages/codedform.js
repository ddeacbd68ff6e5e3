// Products of each group, or times a weight: w·zzᵀ ⊗ a. Mirrors `blurfit.theory.coded`, whose proofs
// it rests upon, operation by operation, so that both round alike.

import { NUDGE, radiusOf, sensitivity, sumOf } from "./forms.js";
import { INTERCEPT, NOT_SAID, columnsFor, questionsOf } from "./schema.js";
import { demand, finite } from "./checks.js";

const LESS = 1 - 2 ** -40;
const [MOST_OVERLAP, MOST_GROUPS, APART] = [0.9, 256, 0.5]; // apart: of two tables in a picture

/** Refuse groups and weights that the noise is not made for, or that do not go with other terms. */
export function verifyCoded(agreement) {
  const { schema, wave } = agreement;
  const { groups, overlap, weighting, factors } = agreement;
  demand(wave === null, "groups or weights", groups ?? weighting);
  const features = new Map(questionsOf(schema).slice(0, -1).map((one) => [one.name, one]));
  const isList = (name) => features.get(name)?.kind === "categorical" && !features.get(name).knots;
  if (groups !== undefined) {
    demand(isList(groups), "groups", groups);
    const count = columnsFor(features.get(groups)).length;
    demand(count <= MOST_GROUPS, "number of groups", count);
  }
  const isOverlap =
    overlap === undefined || (finite(overlap) && overlap > 0 && overlap <= MOST_OVERLAP);
  demand(isOverlap, "overlap", overlap);
  demand(overlap === undefined || groups !== undefined, "overlap", overlap);
  demand(factors === undefined || weighting !== undefined, "factors", factors);
  if (weighting === undefined) return;
  const one = features.get(weighting);
  if (factors === undefined) {
    demand(one?.kind === "numeric" && !one.optional && one.lower === 0, "weighting", weighting);
    return;
  }
  const isPair = (pair) =>
    Array.isArray(pair) && pair.length === 2 && finite(pair[1]) && pair[1] >= 0 && pair[1] <= 1;
  const isFine = Array.isArray(factors) && factors.every(isPair) && isList(weighting);
  demand(isFine && factors.some(([, factor]) => factor > 0), "factors", factors);
  const named = factors.map(([level]) => level);
  const levels = answersOf(one);
  const isEach = named.length === levels.length && levels.every((level) => named.includes(level));
  demand(isEach, "factors", named.join(", "));
}

export function codedForm(agreement, inner) {
  const { schema, weights, groups, overlap = 0 } = agreement;
  const questions = questionsOf(schema);
  const columns = questions.flatMap(columnsFor);
  const placesOf = (names) => names.map((name) => columns.indexOf(name));
  const kept = placesOf(inner.columns.map(({ name }) => name));
  const labels =
    groups === undefined ? ["weight"] : columnsFor(questions.find(({ name }) => name === groups));
  const code = codeOf(labels.length, overlap);
  const members = groups === undefined ? [] : placesOf(labels);
  const weightOf = weigher(agreement, questions, placesOf);
  const rows = inner.columns.length + 1 + APART;
  const counts = labels.flatMap(() => inner.counts);
  const t = (weights[INTERCEPT] ** 2 + radiusOf(agreement) ** 2) * NUDGE;
  const apart =
    groups === undefined
      ? Math.max(sensitivity(weights[INTERCEPT], radiusOf(agreement), "replace"), t)
      : Math.SQRT2 * t;
  return {
    ...inner,
    labels,
    counts,
    sent: labels.flatMap((_, block) => inner.sent.map(([row, column]) => [row + block * rows, column])),
    size: Math.ceil(Math.sqrt(sumOf(counts))),
    reach: (neighbours) => (neighbours === "replace" ? apart : t),
    products: (values) => {
      const own = inner.products(kept.map((place) => values[place]));
      const vector = members.length === 0 ? [1] : code[members.findIndex((place) => values[place] === 1)];
      const weight = weightOf(values);
      return vector.flatMap((entry) => own.map((product) => entry * weight * product));
    },
  };
}

/** A vector for each group: of length 1, and any two with the product `overlap`. */
function codeOf(groups, overlap) {
  const own = Math.sqrt(1 - overlap);
  const beside = (Math.sqrt(1 + (groups - 1) * overlap) - own) / groups;
  const [diagonal, other] =
    overlap === 0 || groups === 1 ? [1, 0] : [(own + beside) * LESS, beside * LESS];
  return Array.from({ length: groups }, (_, g) =>
    Array.from({ length: groups }, (_, h) => (g === h ? diagonal : other)),
  );
}

/** From a record's columns to its weight, by the agreement's rule. */
function weigher({ weighting, factors }, questions, placesOf) {
  if (weighting === undefined) return () => 1;
  const one = questions.find(({ name }) => name === weighting);
  const places = placesOf(columnsFor(one));
  if (factors === undefined) return (values) => (1 + values[places[0]]) / 2;
  const given = new Map(factors);
  const each = answersOf(one).map((level) => given.get(level));
  return (values) => each[places.findIndex((place) => values[place] === 1)];
}

const answersOf = ({ levels, optional }) => (optional ? [...levels, NOT_SAID] : levels);
